"""What embedding models were trained to find before a question and before a passage."""

import re
from hashlib import sha256
from typing import NamedTuple

from memlog.service.providers.settings import EmbeddingProvider

_INSTRUCTION = "Instruct: Given a question, retrieve passages that answer it\nQuery: "


class Prefixes(NamedTuple):
    """The two texts."""

    query: str
    passage: str


_KNOWN = (
    (("nomic", "embed", "text"), Prefixes("search_query: ", "search_document: ")),
    (("e5", "instruct"), Prefixes(_INSTRUCTION, "")),
    (("e5",), Prefixes("query: ", "passage: ")),
)
"""By words of the name: https://huggingface.co/nomic-ai/nomic-embed-text-v1.5,
https://huggingface.co/intfloat/multilingual-e5-large-instruct, https://huggingface.co/intfloat/e5-small-v2."""

_OF_BEFORE = (_KNOWN[0][1], _KNOWN[2][1])
"""Those that memlog always put there: their vectors keep their name."""


def prefixes_of(provider: EmbeddingProvider, model: str) -> Prefixes:
    """The prefixes of a model, where the provider has no others."""
    words = re.split(r"[^a-z0-9]+", model.lower())
    known = next((both for name, both in _KNOWN if {*name} <= {*words}), Prefixes("", ""))
    given = (provider.query_prefix, provider.passage_prefix)
    return Prefixes(*(own if own is not None else usual for own, usual in zip(given, known, strict=True)))


def mark_of(prefixes: Prefixes) -> str:
    """Return what the name of vectors has of their prefixes: vectors of others are not compared with them."""
    if not any(prefixes):
        return ""
    if prefixes in _OF_BEFORE:
        return "/prefixed"
    return f"/prefixed-{sha256(repr(tuple(prefixes)).encode()).hexdigest()[:8]}"

"""What an examination of a store finds."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from memlog.eventlog.errors import DatabaseError, EmbeddingError, ProviderError
from memlog.projector.embedding.models import Embedder, is_bundled
from memlog.projector.sqlite import Connection, wrapped
from memlog.query.context.background import count_not_english
from memlog.service.engine.embedding_models import EmbeddingModel, NoModel
from memlog.service.engine.read_model import ReadModel
from memlog.service.engine.settings import LanguageModelProvider
from memlog.service.llm.model import LanguageModel
from memlog.service.retrieval.search import reranker_of

State = Literal["ok", "warning", "problem", "fixed"]


class Finding(msgspec.Struct, frozen=True):
    """The result of one check.

    state: a `warning` may stay; with a `problem` memlog does not work well.
    remedy: what a person can do; "" where nothing need be done.
    """

    check: str
    state: State
    finding: str
    remedy: str = ""


def or_ok(check: str, findings: Iterable[Finding], message: str) -> list[Finding]:
    """Return the findings of a check; if there are none, one that says `message`."""
    return [*findings] or [Finding(check, "ok", message)]


def numbered(count: int, one: str, many: str) -> str:
    """Return a number with `one` or with `many`: `1 segment is`, `2 segments are`."""
    return f"{count:,} {one if count == 1 else many}"


INSTALL = "pip install 'memlog-store[multilingual]'"
_FEW, _PART = 5, 0.1
"""Texts, and the share of all, from which on a model that reads them is worth 90 MB."""


def examine_models(read_model: ReadModel, language_model: LanguageModelProvider | None) -> list[Finding]:
    """Return the findings about the embedding model, the reranker and the language model, if any."""
    return [
        _model(read_model),
        *_multilingual(read_model),
        *_rerank(read_model),
        *_language(read_model, language_model),
    ]


def _model(read_model: ReadModel) -> Finding:
    try:
        embedder = read_model.model.embedder("once")
    except EmbeddingError as error:
        if isinstance(read_model.model, NoModel):
            return Finding("model", "ok", error.message)
        return Finding(
            "model", "warning", error.message, error.hint or "name a model that works: model=FOLDER"
        )
    if embedder.is_remote:
        try:
            embedder.embed(["Does it answer?"], "query")
        except EmbeddingError as error:
            return Finding("model", "warning", error.message, error.hint)
    return Finding("model", "ok", embedder.id)


def why_multilingual(db: Connection, model: EmbeddingModel) -> str | None:
    """Say how many texts only words find, since the multilingual model is not installed; None for few."""
    known = model.known()
    if model.multilingual is not None or known is None or not is_bundled(known):
        return None
    foreign, every = count_not_english(db)
    if foreign < max(_FEW, _PART * every):
        return None
    return f"{foreign} of {every} texts are not in English, and only words find them: {INSTALL}"


def why_not_multilingual(embedder: Embedder) -> EmbeddingError | None:
    """Have the multilingual model embed a question; return why it cannot."""
    try:
        embedder.embed(["Does it answer?"], "query")
    except EmbeddingError as error:
        return error
    return None


def _multilingual(read_model: ReadModel) -> list[Finding]:
    """Return the findings about the multilingual model; [] where it is not needed."""
    embedder = read_model.model.multilingual
    if embedder is not None:
        if problem := why_not_multilingual(embedder):
            return [Finding("multilingual model", "warning", problem.message, problem.hint)]
        return [Finding("multilingual model", "ok", embedder.id)]
    projector = read_model.projector
    try:
        if projector.generations.current() is None or projector.why_unusable() is not None:
            return []
        with wrapped("the read model"):
            found = why_multilingual(projector.live(), read_model.model)
    except (DatabaseError, OSError):
        return []  # other checks name it
    return [] if found is None else [Finding("multilingual model", "warning", found, INSTALL)]


def _language(read_model: ReadModel, provider: LanguageModelProvider | None) -> list[Finding]:
    """Test the language model with a minimal request; [] without one."""
    if provider is None:
        return []
    try:
        LanguageModel(provider, read_model.path).complete_once("Answer with {}", "{}", {"type": "object"})
    except ProviderError as error:
        return [Finding("language model", "warning", error.message, error.hint)]
    return [Finding("language model", "ok", f"{provider.name} answers")]


def _rerank(read_model: ReadModel) -> list[Finding]:
    """Test the reranker with one request; [] without one."""
    rerank = reranker_of(read_model, lambda _: True, has_key=False)
    if rerank is None:
        return []
    try:
        rerank.order("Does it answer?", ["It does.", "It does not."], though_it_rests=True)
    except ProviderError as error:
        return [Finding("rerank", "warning", error.message, error.hint)]
    return [Finding("rerank", "ok", "it answers")]

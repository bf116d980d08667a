"""Content hashes of events, and ids of memories derived from their content."""

import re
import unicodedata

from memlog.eventlog.codec.decode import encode_canonical
from memlog.eventlog.codec.hashing import sha256, short_sha256
from memlog.eventlog.events import Event
from memlog.eventlog.text import nfkc, split_into_pieces

_WHITE_SPACE = re.compile(r"\s+")
_RAISED = ("<super>", "<sub>", "<circle>", "<fraction>")
_UNIT = re.compile(r"(?<=\d)\s?[^\W\d_]{1,4}(?![^\W_])")
"""Letters after a number, whose case matters: mW and MW are different units."""


def content_hash(event: Event) -> bytes:
    """Return the sha256 of `encode_canonical(event)`, equal for copies of one event. Raises BadLine."""
    return sha256(encode_canonical(event)).digest()


def content_hash_without_openssl(event: Event) -> bytes:
    """Return the `content_hash` of a single event; faster than loading OpenSSL first. Raises BadLine."""
    return short_sha256(encode_canonical(event)).digest()


def derive_memory_id(chat_id: str | None, content: str) -> str:
    """Return the id of a memory that was saved without one; the same text in the same chat gets the same id.

    It is the first 32 hex digits of sha256(chat_id, NUL, content in NFKC, case-folded, white space
    collapsed).
    """
    # The log refuses an unpaired surrogate later, with a better message.
    return short_sha256(
        f"{chat_id or ''}\0{fold_content(content)}".encode(errors="surrogatepass")
    ).hexdigest()[:32]


def fold_content(content: str) -> str:
    """Return `content` in NFKC, case-folded, with white space collapsed: equal for texts of one memory."""
    parts = []
    has_space = True
    for piece in split_into_pieces(content):
        part = _WHITE_SPACE.sub(" ", nfkc(piece).casefold())
        # White space may continue from one piece to the next.
        parts.append(part.removeprefix(" ") if has_space else part)
        has_space = part.endswith(" ")
    return "".join(parts).rstrip(" ")


def mark_quantities(content: str) -> str:
    """Return `content` in NFKC, with `^` where folding would lose meaning: 5² is not 52, and mW is not MW.

    Two texts are the same memory if their results are equal after `fold_content`. Ids do not use this form.
    """
    return "".join(map(_mark_quantities_in_piece, split_into_pieces(content)))


def _mark_quantities_in_piece(piece: str) -> str:
    raised = {char for char in {*piece} if unicodedata.decomposition(char).startswith(_RAISED)}
    plain = nfkc(piece.translate({ord(char): f"^{char}" for char in raised}))
    if plain.isupper():  # in an all-capitals text, so are the units
        return plain
    return _UNIT.sub(lambda unit: "".join(f"^{char}" if char.isupper() else char for char in unit[0]), plain)

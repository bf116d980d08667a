"""Computes event content hashes, and derives memory ids from content."""

import re
import unicodedata

from memlog.eventlog.codec.decode import encode_canonical
from memlog.eventlog.codec.hashing import sha256, short_sha256
from memlog.eventlog.events import Event
from memlog.eventlog.text import normalise_to_nfkc, split_into_pieces

_WHITE_SPACE = re.compile(r"\s+")
_RAISED = ("<super>", "<sub>", "<circle>", "<fraction>")
_UNIT = re.compile(r"(?<=\d)\s?[^\W\d_]{1,4}(?![^\W_])")
"""Letters after a number; their case matters, since mW and MW are different units."""


def content_hash(event: Event) -> bytes:
    """Return the SHA-256 digest of `encode_canonical(event)`, the same for all copies. Raises BadLine."""
    return sha256(encode_canonical(event)).digest()


def content_hash_without_openssl(event: Event) -> bytes:
    """Return `content_hash(event)` without loading OpenSSL, which is faster for one event. Raises BadLine."""
    return short_sha256(encode_canonical(event)).digest()


def derive_memory_id(chat_id: str | None, content: str) -> str:
    """Return the id of a memory saved without one: equal content in the same chat gives the same id.

    The id is the first 32 hex digits of sha256(chat_id, NUL, content), with the content in NFKC, case-folded,
    and its white space collapsed.
    """
    # The log refuses an unpaired surrogate later, with a better message.
    return short_sha256(
        f"{chat_id or ''}\0{fold_content(content)}".encode(errors="surrogatepass")
    ).hexdigest()[:32]


def fold_content(content: str) -> str:
    """Return `content` in NFKC, case-folded, with white space collapsed, for comparing memories."""
    parts = []
    has_space = True
    for piece in split_into_pieces(content):
        part = _WHITE_SPACE.sub(" ", normalise_to_nfkc(piece).casefold())
        # White space may continue from one piece to the next.
        parts.append(part.removeprefix(" ") if has_space else part)
        has_space = part.endswith(" ")
    return "".join(parts).rstrip(" ")


def mark_quantities(content: str) -> str:
    """Return `content` in NFKC, with `^` where folding would change the meaning: 5² is not 52, mW is not MW.

    Two texts are the same memory if the results are equal after `fold_content`. Ids do not use this form.
    """
    return "".join(map(_mark_quantities_in_piece, split_into_pieces(content)))


def _mark_quantities_in_piece(piece: str) -> str:
    raised = {char for char in {*piece} if unicodedata.decomposition(char).startswith(_RAISED)}
    plain = normalise_to_nfkc(piece.translate({ord(char): f"^{char}" for char in raised}))
    if plain.isupper():  # in an all-capitals text, so are the units
        return plain
    return _UNIT.sub(lambda unit: "".join(f"^{char}" if char.isupper() else char for char in unit[0]), plain)

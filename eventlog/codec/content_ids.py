"""Identity by content: the hash of an event, and the id of a memory without one."""

import re
import unicodedata

from memlog.eventlog.codec.decode import canonical
from memlog.eventlog.codec.hashing import sha256, short_sha256
from memlog.eventlog.events import Event
from memlog.eventlog.text import nfkc, pieces

_WHITE_SPACE = re.compile(r"\s+")
_RAISED = ("<super>", "<sub>", "<circle>", "<fraction>")
_UNIT = re.compile(r"(?<=\d)\s?[^\W\d_]{1,4}(?![^\W_])")
"""Letters behind a number: mW and MW are two units."""


def content_hash(event: Event) -> bytes:
    """sha256 of `canonical`: equal for two lines of one event that was appended twice. Raises BadLine."""
    return sha256(canonical(event)).digest()


def content_hash_of_one(event: Event) -> bytes:
    """As `content_hash`, by a command that hashes little else."""
    return short_sha256(canonical(event)).digest()


def derived_memory_id(chat_id: str | None, content: str) -> str:
    """Return the id of a memory without one: equal for the same text in the same chat.

    The first 32 hex digits of sha256(chat_id, NUL, content in NFKC, case-folded, white space collapsed).
    """
    # The log refuses half a surrogate pair with a better message.
    return short_sha256(f"{chat_id or ''}\0{folded(content)}".encode(errors="surrogatepass")).hexdigest()[:32]


def folded(content: str) -> str:
    """Return `content` in NFKC, case-folded, with white space collapsed: equal for texts of one memory."""
    parts = []
    has_space = True
    for piece in pieces(content):
        part = _WHITE_SPACE.sub(" ", nfkc(piece).casefold())
        # White space may continue from one piece to the next.
        parts.append(part.removeprefix(" ") if has_space else part)
        has_space = part.endswith(" ")
    return "".join(parts).rstrip(" ")


def with_quantities(content: str) -> str:
    """Return `content` in NFKC, with a sign before what folding would change: 5² is not 52, and mW not MW.

    Two texts are of one memory where these are equal when `folded`. An id does not depend on it.
    """
    return "".join(map(_with_quantities, pieces(content)))


def _with_quantities(piece: str) -> str:
    raised = {char for char in {*piece} if unicodedata.decomposition(char).startswith(_RAISED)}
    plain = nfkc(piece.translate({ord(char): f"^{char}" for char in raised}))
    if plain.isupper():  # a text in capitals has them in its units, too
        return plain
    return _UNIT.sub(lambda unit: "".join(f"^{char}" if char.isupper() else char for char in unit[0]), plain)

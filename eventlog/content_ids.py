"""Identity by content: the hash of an event, and the id of a memory without one."""

import re

from memlog.eventlog.decode import canonical
from memlog.eventlog.envelope import Event
from memlog.eventlog.hashing import sha256, short_sha256
from memlog.eventlog.text import nfkc, pieces

_WHITE_SPACE = re.compile(r"\s+")


def content_hash(event: Event) -> bytes:
    """sha256 of `canonical`: equal for two lines of one event that was appended twice. Raises BadLine."""
    return sha256(canonical(event)).digest()


def content_hash_of_one(event: Event) -> bytes:
    """As `content_hash`, by a command that hashes little else."""
    return short_sha256(canonical(event)).digest()


def derived_memory_id(chat_id: str | None, content: str) -> str:
    """The id of a memory without one: equal for the same text in the same chat.

    The first 32 hex digits of sha256(chat_id, NUL, content in NFKC, case-folded, white space collapsed).
    """
    # The log refuses half a surrogate pair with a better message.
    return short_sha256(f"{chat_id or ''}\0{folded(content)}".encode(errors="surrogatepass")).hexdigest()[:32]


def folded(content: str) -> str:
    """`content` in NFKC, case-folded, with white space collapsed: equal for texts of one memory."""
    parts = []
    has_space = True
    for piece in pieces(content):
        part = _WHITE_SPACE.sub(" ", nfkc(piece).casefold())
        # White space may continue from one piece to the next.
        parts.append(part.removeprefix(" ") if has_space else part)
        has_space = part.endswith(" ")
    return "".join(parts).rstrip(" ")

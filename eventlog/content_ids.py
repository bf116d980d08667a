"""When two lines are the same event, and two texts the same memory."""

import re
from hashlib import sha256

from memlog.eventlog.decode import canonical
from memlog.eventlog.events import Event
from memlog.eventlog.text import nfkc, pieces

_WHITE_SPACE = re.compile(r"\s+")


def content_hash(event: Event) -> bytes:
    """sha256 of what the event says, 32 bytes: of its canonical JSON without id, ts, at, v and crc.

    Two lines with one id are the same event, appended twice, where this is equal.

    Raises:
        BadLine: see `canonical`.
    """
    return sha256(canonical(event)).digest()


def derived_memory_id(chat_id: str | None, content: str) -> str:
    """The id of a memory that names none: two processes that save one text in one chat name one memory.

    The first 32 hex digits of sha256(chat_id, NUL, content in NFKC, case-folded, white space collapsed).
    """
    # Half a surrogate pair is refused by the log, which says so better.
    return sha256(f"{chat_id or ''}\0{folded(content)}".encode(errors="surrogatepass")).hexdigest()[:32]


def folded(content: str) -> str:
    """`content` in NFKC, case-folded, with white space collapsed: of texts that are one memory the same."""
    parts = []
    has_space = True
    for piece in pieces(content):
        part = _WHITE_SPACE.sub(" ", nfkc(piece).casefold())
        # White space may go on from one piece to the next.
        parts.append(part.removeprefix(" ") if has_space else part)
        has_space = part.endswith(" ")
    return "".join(parts).rstrip(" ")

"""When two lines are the same event."""

from hashlib import sha256

from memlog.eventlog.events import Event
from memlog.eventlog.line import canonical


def content_hash(event: Event) -> bytes:
    """sha256 of what the event says, 32 bytes: of its canonical JSON without id, ts, at, v and crc.

    Two lines with one id are the same event, appended twice, where this is equal.

    Raises:
        BadLine: see `canonical`.
    """
    return sha256(canonical(event)).digest()

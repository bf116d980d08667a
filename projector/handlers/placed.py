"""An accepted event and where it stands, and which of two events wins."""

from typing import Any

import msgspec

from memlog.eventlog.events import Event
from memlog.eventlog.segment import Line
from memlog.eventlog.streams import SegmentName
from memlog.projector.rows import Row, upsert
from memlog.projector.sqlite import Connection

Order = tuple[str, int, int]
"""(ts, segment, offset): the one order of events."""

FIRST: Order = ("", 0, 0)
"""Before every event."""

_json = msgspec.json.Encoder(order="deterministic")


class Placed(msgspec.Struct, frozen=True, gc=False):
    """An accepted event and where it stands."""

    id: str
    event: Event
    stream: str
    segment: SegmentName
    line: Line
    content_sha256: bytes
    order: Order

    def order_as(self, time: str) -> Row:
        """The same as columns, of which `time` is the first."""
        return dict(zip((time, "segment_no", "offset"), self.order, strict=True))


def as_json(value: Any) -> str:  # noqa: ANN401 - whatever an event can hold
    """`value` as JSON, the same for equal values."""
    return _json.encode(value).decode()


def bury(db: Connection, thing: str, placed: Placed) -> None:
    """Leave a tombstone: no event older than `placed` makes `thing` stand any more."""
    row = {"stream": placed.stream, "thing": thing} | placed.order_as("ts")
    upsert(db, "tombstones", ("stream", "thing"), row, newer_by="ts")


def buried(db: Connection, stream: str, *things: str) -> Order:
    """The order of the newest tombstone of any of `things`."""
    found: list[Order] = [
        db.execute(
            "SELECT ts, segment_no, offset FROM tombstones WHERE stream = ? AND thing = ?", (stream, thing)
        ).fetchone()
        or FIRST
        for thing in things
    ]
    return max(found)

"""Accepted events with their positions, and the precedence of changes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from memlog.eventlog.events import Event
from memlog.eventlog.log.order import compute_precedence
from memlog.eventlog.log.reader import Line
from memlog.eventlog.log.streams import SegmentName
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import Connection, Row, upsert_row

_json = msgspec.json.Encoder(order="deterministic")


class PositionedEvent(msgspec.Struct, frozen=True, gc=False):
    """An accepted event and its position.

    place: (day, number, writer, offset), which sorts by position in the stream.
    """

    id: str
    ts: str
    event: Event
    stream: str
    segment: SegmentName
    line: Line
    content_sha256: bytes
    place: tuple[str, int, str, int]

    @property
    def precedence(self) -> str:
        """Text that sorts highest for the winning change: its time of precedence, then its position."""
        time = compute_precedence(self.event, self.segment)
        day, number, writer, offset = self.place
        # Segment numbers have at most 18 digits, and so do offsets.
        return f"{time} {day} {number:018} {writer:6} {offset:018}"

    def make_row(self, *fields: str, **values: Any) -> Row:  # noqa: ANN401 - whatever a column holds
        """Return a row with the event's `fields`, `values`, and the event's stream, id and precedence."""
        event = dict(zip(fields, self.list_values(*fields), strict=True))
        return {"stream": self.stream, "event_id": self.id, "precedence": self.precedence, **event, **values}

    def list_values(self, *fields: str) -> tuple[Any, ...]:
        """Return the values of the event's `fields`."""
        return tuple(getattr(self.event, field) for field in fields)

    def write_tombstone(self, db: Connection, thing: str) -> None:
        """Write a tombstone for `thing`: events older than this one no longer set any of its fields."""
        source = getattr(self.event, "source", None)
        row = {"stream": self.stream, "thing": thing, "source": source, "precedence": self.precedence}
        upsert_row(db, "tombstones", ("stream", "thing"), row, newer_by="precedence")


Handler = Callable[[Connection, Sequence[PositionedEvent], ChunkSizes], None]
Handlers = Mapping[Handler, Sequence[type[Event]]]
"""The handlers of a subject, with the types of events that each folds."""


def encode_as_json(value: Any) -> str:  # noqa: ANN401 - whatever an event can hold
    """Encode `value` as deterministic JSON."""
    return _json.encode(value).decode()


def find_highest_tombstone_precedence(db: Connection, stream: str, *things: str) -> str:
    """Return the highest precedence among the tombstones of `things`; "" (the lowest) if they have none."""
    marks = ", ".join("?" * len(things))
    (newest,) = db.execute(
        f"SELECT coalesce(max(precedence), '') FROM tombstones WHERE stream = ? AND thing IN ({marks})",
        (stream, *things),
    ).fetchone()
    return str(newest)

"""The request of `store.append`."""

from collections.abc import Iterable
from typing import Annotated, Any

from memlog.eventlog.errors import BadInput, shown_value
from memlog.eventlog.events import Event
from memlog.eventlog.fields import Reads
from memlog.query.request import Request

EventLike = Event | dict[str, Any] | bytes
"""An event as callers give it: a struct, its members, or a line of JSON."""


def _events(given: EventLike | Iterable[EventLike]) -> Iterable[EventLike]:
    if isinstance(given, Event | dict | bytes):
        return [given]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadInput(
            f"not an event: {shown_value(given)}",
            hint="give a struct such as memlog.Message, or a list of them",
        )
    return given


class AppendEvents(Request, frozen=True):
    """Append events, or one, and answer their positions, once all are durable.

    `warnings` of a position tell what is odd about its event; if another event has its id, as far as the read
    model knows, `conflict` names it. An event with an id is stored once: to append it again is harmless.

    Raises:
        BadInput: an event cannot be stored; none was written.
        NotFound: a redaction does not say where it goes, and no stream has its target; none was written.
        Busy: another writer held the stream for too long.
        LogError: the log could not be written. Safe to try again with the same ids.
    """

    events: Annotated[
        EventLike | Iterable[EventLike],
        Reads(_events, wire=list[dict[str, Any]]),
        "Events: structs, members by name, or lines of JSON.",
    ]

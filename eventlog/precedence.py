"""The precedence of changes: of two changes of one thing the greater one wins.

docs/storage/jsonl-format.md, "The order of changes", has the rule and its reasons. It is a hybrid logical
clock (Kulkarni et al., "Logical Physical Clocks and Consistent Snapshots in Globally Distributed Databases").
"""

from memlog.eventlog import timestamps
from memlog.eventlog.envelope import Change, Event
from memlog.eventlog.streams import SegmentName

CAP = 5 * 60 * 1000
"""Milliseconds by which the `ts` of a change may be ahead of the clock that appends it: the difference that
Kerberos allows between the clocks of two machines (RFC 4120, 8.2)."""


def precedence(event: Event, segment: SegmentName) -> str:
    """The precedence of an event with a `ts`, as a time: without `wins` its `ts`, at most `CAP` after `at`,
    or after the end of the segment's day in a foreign line.
    """
    if isinstance(event, Change) and event.wins is not None:
        return event.wins
    is_dated = event.at is not None and timestamps.is_written_form(event.at)
    return earlier_of(event.ts or "", event.at if is_dated and event.at else end_of(segment.day))


def next_precedence(ts: str, now: str, highest: str, *, is_dated: bool) -> str:
    """The `wins` of a change appended `now`.

    highest: the stream's highest precedence; "" without changes.
    is_dated: the caller gave `ts`, which decides; otherwise the change wins against all earlier ones,
        whatever the clock shows.
    """
    own = earlier_of(ts, now)
    return own if is_dated or own > highest else timestamps.shifted(highest, 1)


def earlier_of(ts: str, at: str) -> str:
    """`ts`, but no later than `CAP` after `at`."""
    return ts if ts <= at else min(ts, timestamps.shifted(at, CAP))


def end_of(day: str) -> str:
    """The last moment of a UTC day."""
    return f"{day}T23:59:59.999Z"

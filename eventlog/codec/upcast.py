"""Upcasts lines in older and foreign formats as they are read; the log itself never changes.

The one foreign format, which many agents write:
`{"id","ts","role","content","type":null|"session_break"|"subagent_result","meta":{"channel","chat_id",…}}`
"""

from typing import Any

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.events import TYPES, ConversationEvent
from memlog.eventlog.fields import chat_id_to_text
from memlog.eventlog.log.streams import SegmentName, chat_of_stream

VERSION = 3
"""Increment whenever the conversion changes; part of the projection id."""

_CONVERSATION_TYPES = tuple(tag for tag, kind in TYPES.items() if issubclass(kind, ConversationEvent))


class Place(msgspec.Struct, frozen=True, gc=False):
    """A line's position: stream, segment, and offset in bytes."""

    stream: str
    segment: SegmentName
    offset: int

    @property
    def line_id(self) -> str:
        """The id of a line that has none of its own, such as `2026-02-24.jsonl:1042`."""
        return f"{self.segment.filename}:{self.offset}"


def parse_line_id(line_id: str) -> tuple[str, int] | None:
    """Parse a `Place.line_id` into a file name and an offset; return None if `line_id` is not one."""
    filename, _, digits = line_id.rpartition(":")
    # More than 18 digits may exceed SQLite's integers, and no file is that long.
    is_offset = digits.isascii() and digits.isdecimal() and len(digits) <= 18 and digits == str(int(digits))
    return (filename, int(digits)) if is_offset else None


def convert_foreign_members(members: dict[str, Any], place: Place) -> dict[str, Any]:
    """Convert the members of another program's line to the current schema.

    A missing id or time (the segment's day) comes from the line's position; a missing channel or chat_id from
    `meta`, or else from the folder. Raises ValueError if `ts` is not a time.
    """
    line = {name: value for name, value in members.items() if value is not None}
    if line.get("type") in (None, "subagent_result"):
        if "type" in line:
            line["kind"] = line["type"]
        line["type"] = "message"
    line.setdefault("id", place.line_id)
    line["ts"] = _normalise_time(line.get("ts"), place.segment.day)
    if line["type"] in _CONVERSATION_TYPES:
        _fill_in_chat(line, place.stream)
    return line


def _normalise_time(ts: object, day: str) -> str:
    if ts is None:
        return f"{day}T00:00:00.000Z"
    if not isinstance(ts, str):
        raise ValueError(f"ts is not text: {ts!r}")  # noqa: TRY004 - wrong data, not a wrong call
    return timestamps.normalise_timestamp(ts, naive_is_utc=True)


def _fill_in_chat(line: dict[str, Any], stream: str) -> None:
    meta = line.get("meta")
    given = meta if isinstance(meta, dict) else {}
    channel, chat_id = chat_of_stream(stream) or (None, None)
    for name, of_folder in (("channel", channel), ("chat_id", chat_id)):
        in_meta = chat_id_to_text(given.get(name))  # chat ids are numbers in many foreign logs
        value = line.get(name, of_folder if in_meta is None else in_meta)
        if value is not None:
            line[name] = value
    if line["type"] == "session_break" and given.get("model") is not None:
        line.setdefault("model", given["model"])

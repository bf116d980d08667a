"""The grammar of a line: what memlog writes, and what it accepts when it reads.

docs/storage/jsonl-format.md has a worked example in real bytes.
"""

import re
import zlib
from copy import copy
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import TYPES, AnyEvent, Event
from memlog.eventlog.ids import new_id
from memlog.eventlog.streams import belongs_in, stream_of
from memlog.eventlog.upcast import Place, upcast

MAX_LINE = 16 * 1024 * 1024
"""The longest line in bytes, without its newline: read, appended or quarantined unread."""

_BOM = b"\xef\xbb\xbf"
_TRAILER = re.compile(rb',"crc":"([0-9a-f]{8})"\}')
_TRAILER_LENGTH = len(b',"crc":"00000000"}')
_ENVELOPE = ("type", "id", "ts", "at", "v", "crc")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|["{}\[\]]', re.DOTALL)

_event = msgspec.json.Decoder(AnyEvent)
_members = msgspec.json.Decoder(dict[str, Any])
_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_canonical = msgspec.json.Encoder(order="deterministic")

Reason = Literal[
    "bad_crc",  # the line has a crc that does not match its bytes
    "missing_crc",  # the line has `at`, so memlog wrote it, but no crc
    "torn",  # the beginning of an object: a writer was killed
    "not_json",
    "not_utf8",
    "lone_surrogate",  # an escape such as \ud800 that is no character
    "too_long",
    "too_deep",
    "invalid",  # JSON, but members are missing or of the wrong type
    "unknown_type",  # of a newer memlog or another tool; no damage
    "newer_version",  # of a newer memlog; no damage
    "wrong_stream",
]
"""Why a line is quarantined."""

DAMAGE: tuple[Reason, ...] = ("bad_crc", "missing_crc")
"""The reasons that say that bytes which memlog wrote have changed."""


HINTS: dict[Reason, str] = {
    "bad_crc": "the bytes are not those that were written; in an input, leave `at` and `crc` out",
    "torn": "a line is one whole JSON object",
    "not_json": "a line is one JSON object (https://jsonlines.org)",
    "not_utf8": "text is UTF-8",
    "lone_surrogate": "write the character itself, or both halves of the pair",
    "too_long": "an event has at most 16 MiB; split it",
    "too_deep": "nest less deeply",
    "invalid": "docs/storage/jsonl-format.md lists the members of each type",
    "unknown_type": f"known types: {', '.join(TYPES)}",
    "newer_version": "this line needs a newer memlog",
    "missing_crc": "the line was edited: memlog writes `at` only together with `crc`",
    "wrong_stream": "the event names another chat or type than its folder",
}
"""What a person can do about a line of each reason."""


class BadLine(Exception):
    """A line that cannot be projected. `detail` is for people, and differs between library versions."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason: Reason = reason
        self.detail = detail


@dataclass(frozen=True)
class Draft:
    """An event ready to be written: all of its line but `at` and `crc`, which are set under the lock."""

    id: str
    stream: str
    head: bytes
    tail: bytes

    def line(self, at: str) -> bytes:
        """The whole line with its newline."""
        body = self.head + b',"at":"' + at.encode() + b'"' + self.tail
        return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def draft(event: "Event | dict[str, Any] | bytes") -> Draft:
    """Check `event` (a struct, its members, or a line of JSON) and make it ready to be written.

    Unknown members are kept, byte for byte where a line is given.

    Raises:
        BadInput: the event is not whole, of an unknown type or version, or over 16 MiB.
    """
    source = event if isinstance(event, bytes) else _encoded(event)
    try:
        return _drafted(_checked_input(source), source)
    except BadLine as bad:
        message = bad.reason.replace("_", " ") + (f": {bad.detail}" if bad.detail else "")
        raise BadInput(message, hint=HINTS[bad.reason], code=bad.reason) from bad


def decode(line: bytes, place: Place) -> Event:
    """The event that a line without its newline holds, in today's shape.

    Raises:
        BadLine: the line is to be quarantined.
    """
    line = line.removesuffix(b"\r")
    if place.offset == 0:
        line = line.removeprefix(_BOM)
    _check_utf8(line)
    has_crc = _check_trailer(line)
    event = (_native(line) if has_crc else None) or _foreign(line, place, has_crc=has_crc)
    if not belongs_in(event, place.stream):
        raise BadLine("wrong_stream", f"belongs in {stream_of(event)}")
    return event


def is_blank(line: bytes) -> bool:
    """Whether a line holds nothing: legal, and no event."""
    return not line or line.isspace() or line == _BOM


def content_hash(event: Event) -> bytes:
    """sha256 of what the event says: its canonical JSON without id, ts, at, v and crc, 32 bytes.

    Two lines with one id are the same event, appended twice, where this is equal.
    """
    said = copy(event)
    said.id = said.ts = said.at = None
    said.v = 1
    try:
        return sha256(_canonical.encode(said)).digest()
    except OverflowError as error:
        raise BadLine("invalid", "an integer is outside 64 bits") from error


def _native(line: bytes) -> Event | None:
    """The event of a line that memlog wrote; None where a foreign writer did."""
    try:
        event: Event = _event.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if event.at is None or event.id is None or event.ts is None:
        return None
    if event.v > event.VERSION:
        raise BadLine("newer_version", f"version {event.v}")
    if not timestamps.is_written_form(event.ts):
        raise BadLine("invalid", f"ts {event.ts!r}")
    return event


def _foreign(line: bytes, place: Place, *, has_crc: bool) -> Event:
    members = _object(line)
    if "crc" in members and not has_crc:
        raise BadLine("bad_crc", "crc is not the last member, directly before the closing brace")
    if members.get("at") is not None and not has_crc:
        raise BadLine("missing_crc")
    try:
        today = upcast(members, place)
    except ValueError as error:
        raise BadLine("invalid", str(error)) from error
    return _converted(today)


def _checked_input(source: bytes) -> Event:
    """The event of an input line, which may carry the `at` and `crc` of another log."""
    _check_length(len(source))
    _check_utf8(source)
    has_crc = _check_trailer(source.rstrip())
    members = _object(source)
    if "crc" in members and not has_crc:
        raise BadLine("bad_crc", "crc is not the last member, directly before the closing brace")
    if not isinstance(members.get("type"), str):
        raise BadLine("invalid", "type is missing" if "type" not in members else f"type {members['type']!r}")
    try:
        if members.get("ts") is not None:
            members["ts"] = timestamps.normalised(members["ts"], naive_is_utc=False)
        if members.get("at") is not None:
            timestamps.normalised(members["at"], naive_is_utc=False)
    except (TypeError, ValueError) as error:
        raise BadLine("invalid", f"ts or at: {error}") from error
    event = _converted(members)
    content_hash(event)
    return event


def _drafted(event: Event, source: bytes) -> Draft:
    members = _raw_members.decode(source)
    event_id = event.id or new_id()
    kind = str(event.__struct_config__.tag)
    head = {"type": kind, "id": event_id, "ts": event.ts or timestamps.now()}
    tail = {"v": event.v} | {name: raw for name, raw in members.items() if name not in _ENVELOPE}
    made = Draft(
        id=event_id,
        stream=stream_of(event),
        head=msgspec.json.encode(head).removesuffix(b"}"),
        # A line holds no newline, but white space between the members of an input may.
        tail=b"," + b" ".join(msgspec.json.encode(tail).splitlines())[1:-1],
    )
    length = len(made.line(timestamps.now())) - 1
    _check_length(length)
    return made


def _check_length(length: int) -> None:
    if length > MAX_LINE:
        raise BadLine("too_long", f"{length:,} bytes")


def _converted(members: dict[str, Any]) -> Event:
    kind = members.get("type")
    version = members.get("v", 1)
    if not isinstance(kind, str):
        raise BadLine("invalid", "type is missing" if kind is None else f"type {kind!r}")
    if kind not in TYPES:
        raise BadLine("unknown_type", f"type {kind!r}")
    if isinstance(version, int) and version > TYPES[kind].VERSION:
        raise BadLine("newer_version", f"version {version} of {kind}")
    try:
        return msgspec.convert(members, TYPES[kind])
    except msgspec.ValidationError as error:
        raise BadLine("invalid", str(error)) from error


def _object(line: bytes) -> dict[str, Any]:
    try:
        return _members.decode(line)
    except RecursionError as error:
        raise BadLine("too_deep") from error
    except msgspec.ValidationError as error:
        raise BadLine("invalid", str(error)) from error
    except msgspec.DecodeError as error:
        if _is_torn(line):
            raise BadLine("torn", "the line ends inside an object") from error
        surrogate = _SURROGATE.search(line)
        if surrogate:
            raise BadLine("lone_surrogate", surrogate[0].decode()) from error
        raise BadLine("not_json", str(error)) from error


def _check_utf8(line: bytes) -> None:
    """msgspec does not look into members that it skips, so this does."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        if _is_torn(line) and error.end == len(line):
            raise BadLine("torn", "the line ends inside a character") from error
        raise BadLine("not_utf8", f"byte {error.start}: {error.reason}") from error


def _check_trailer(line: bytes) -> bool:
    """Whether `line` ends with a crc; raises BadLine where that does not match."""
    trailer = _TRAILER.fullmatch(line, len(line) - _TRAILER_LENGTH)
    if trailer is None:
        return False
    if int(trailer[1], 16) != zlib.crc32(line[:-_TRAILER_LENGTH]):
        raise BadLine("bad_crc")
    return True


def _is_torn(line: bytes) -> bool:
    """Whether `line` is the beginning of an object: a proper prefix of one is never whole itself."""
    if not line.startswith(b"{"):
        return False
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(line):
        text = token[0]
        if text == b'"':
            return True
        depth += (text in b"{[") - (text in b"}]") if len(text) == 1 else 0
    return depth > 0


def _encoded(event: "Event | dict[str, Any]") -> bytes:
    try:
        return msgspec.json.encode(event)
    except (TypeError, UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise BadInput(
            f"the event cannot be written as JSON: {error}", hint="give an event struct or a dict"
        ) from error

"""The grammar of a line: what memlog writes, and what it accepts when it reads.

docs/storage/jsonl-format.md has a worked example in real bytes.
"""

import json
import re
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import TYPES, AnyEvent, Event, tag_of
from memlog.eventlog.ids import new_id
from memlog.eventlog.streams import belongs_in, stream_of
from memlog.eventlog.upcast import Place, upcast

VERSION = 1
"""Changes with any change to which lines are accepted, or to what `content_hash` covers; part of the
projection id."""

MAX_LINE = 16 * 1024 * 1024
"""The longest line in bytes, without its newline: read, appended or quarantined unread."""

MAX_DEPTH = 64
"""Of objects and lists within each other. A limit of memlog's own: a parser's depends on the caller's stack,
and a rebuild could quarantine what a catch-up did not."""

BOM = b"\xef\xbb\xbf"
"""The byte order mark with which some programs begin a file."""
_TRAILER = re.compile(rb',"crc":"([0-9a-f]{8})"\}')
_TRAILER_LENGTH = len(b',"crc":"00000000"}')
_ENVELOPE = ("type", "id", "ts", "at", "v", "crc")
_ESCAPE = re.compile(rb"\\u([0-9a-fA-F]{4})|\\.", re.DOTALL)
# Possessive: a string that is not closed would cost a backtracking point for each of its bytes.
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["{}\[\]]', re.DOTALL)
_MEMBER_AT_FAULT = re.compile(r"at `\$\.(\w+)")

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
        line = line.removeprefix(BOM)
    _check_utf8(line)
    _check_depth(line)
    has_crc = ends_with_crc(line)
    event = (_native(line) if has_crc else None) or _foreign(line, place, has_crc=has_crc)
    if not belongs_in(event, place.stream):
        raise BadLine("wrong_stream", f"belongs in {stream_of(event)}")
    return event


def is_blank(line: bytes) -> bool:
    """Whether a line holds nothing: legal, and no event."""
    return not line or line.isspace() or line == BOM


def content_hash(event: Event) -> bytes:
    """sha256 of what the event says: its canonical JSON without id, ts, at, v and crc, 32 bytes.

    Two lines with one id are the same event, appended twice, where this is equal.
    """
    said = {name: getattr(event, name) for name in event.__struct_fields__ if name not in _ENVELOPE}
    try:
        return sha256(_canonical.encode(said | {"type": tag_of(event)})).digest()
    except OverflowError as error:
        raise BadLine("invalid", "an integer is outside 64 bits") from error


def ends_with_crc(line: bytes) -> bool:
    """Whether `line` ends with a crc.

    Raises:
        BadLine: it does, and its bytes are not those that the crc was made of.
    """
    trailer = _TRAILER.fullmatch(line, len(line) - _TRAILER_LENGTH)
    if trailer is None:
        return False
    if int(trailer[1], 16) != zlib.crc32(line[:-_TRAILER_LENGTH]):
        raise BadLine("bad_crc")
    return True


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
    _check_depth(source)
    has_crc = ends_with_crc(source.rstrip())
    members = _object(source)
    if "crc" in members and not has_crc:
        raise BadLine("bad_crc", "crc is not the last member, directly before the closing brace")
    if not isinstance(members.get("type"), str):
        raise BadLine("invalid", "type is missing" if "type" not in members else f"type {members['type']!r}")
    for name in ("ts", "at"):
        if members.get(name) is not None:
            members[name] = _input_time(name, members[name])
    event = _converted(members)
    content_hash(event)
    return event


def _input_time(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadLine("invalid", f"{name} is {value!r}, not a time such as 2026-02-24T10:15:00Z")
    try:
        return timestamps.normalised(value, naive_is_utc=False)
    except ValueError as error:
        raise BadLine("invalid", f"{name}: {error}") from error


def _drafted(event: Event, source: bytes) -> Draft:
    members = _raw_members.decode(source)
    event_id = event.id or new_id()
    head = {"type": tag_of(event), "id": event_id, "ts": event.ts or timestamps.now()}
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
        raise BadLine("invalid", _fault(error, members)) from error


def _fault(error: msgspec.ValidationError, members: dict[str, Any]) -> str:
    """What is wrong, with the value that is: msgspec names the member alone."""
    member = _MEMBER_AT_FAULT.search(str(error))
    if member is None or member[1] not in members:
        return str(error)
    value = repr(members[member[1]])
    return f"{member[1]} is {value if len(value) <= 80 else value[:80] + '…'}: {error}"


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
        surrogate = _lone_surrogate(line)
        if surrogate is not None:
            raise BadLine("lone_surrogate", surrogate) from error
        raise BadLine("not_json", str(error)) from error


def _check_utf8(line: bytes) -> None:
    """msgspec does not look into members that it skips, so this does."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        if _is_torn(line) and error.end == len(line):
            raise BadLine("torn", "the line ends inside a character") from error
        raise BadLine("not_utf8", f"byte {error.start}: {error.reason}") from error


def _check_depth(line: bytes) -> None:
    if line.count(b"{") + line.count(b"[") > MAX_DEPTH and max(_depths(line), default=0) > MAX_DEPTH:
        raise BadLine("too_deep", f"more than {MAX_DEPTH} objects and lists within each other")


def _is_torn(line: bytes) -> bool:
    """Whether `line` is the beginning of an object: a proper prefix of one is never whole itself."""
    if not line.startswith(b"{"):
        return False
    (last,) = deque(_depths(line), maxlen=1) or (0,)
    return last > 0


def _depths(line: bytes) -> Iterator[int]:
    """How many objects and lists are open behind each bracket; one more behind a string that never ends."""
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(line):
        match token[0]:
            case b"{" | b"[":
                depth += 1
            case b"}" | b"]":
                depth -= 1
            case b'"':
                yield depth + 1
                return
            case _:
                continue
        yield depth


def _lone_surrogate(line: bytes) -> str | None:
    """The first escape that is half of a pair without the other half."""
    high: re.Match[bytes] | None = None
    for escape in _ESCAPE.finditer(line):
        code = int(escape[1], 16) if escape[1] else 0
        is_low = 0xDC00 <= code <= 0xDFFF
        if high is not None and not (is_low and escape.start() == high.end()):
            return high[0].decode()
        if high is None and is_low:
            return escape[0].decode()
        high = escape if 0xD800 <= code <= 0xDBFF else None
    return None if high is None else high[0].decode()


def _encoded(event: "Event | dict[str, Any]") -> bytes:
    try:
        # Not msgspec's encoder, which writes NaN and infinity as null: another event than was given.
        members = msgspec.to_builtins(event)
        return json.dumps(members, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadInput(
            f"the event cannot be written as JSON: {error}", hint="give an event struct or a dict"
        ) from error

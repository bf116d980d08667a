"""Checks events and encodes them as log lines."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.codec.decode import (
    build_event,
    check_crc_is_last,
    encode_canonical,
    ends_with_crc,
    list_envelope_members,
    parse_members,
    raw_members,
    strip_bom,
)
from memlog.eventlog.errors import BadInput, MemlogError
from memlog.eventlog.escapes import append_crc, encode_json, has_no_visible_character
from memlog.eventlog.events import (
    TYPES,
    Change,
    Event,
    MemorySaved,
    MemoryUpdated,
    Redacted,
    type_name_of_event,
)
from memlog.eventlog.fields import MAX_TARGETS
from memlog.eventlog.log.quarantine import HINTS, BadLine, check_line_length, check_utf8_and_depth
from memlog.eventlog.log.streams import stream_of
from memlog.eventlog.positions import AppendWarning
from memlog.eventlog.secrets.input_warnings import find_input_warnings, warn_of_keys

FindStream = Callable[[str], str]
"""Returns the stream of the event with the given id. Raises MemlogError unless exactly one stream has it."""


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An encoded event without `at`, `wins` and `crc`, which are added under the lock.

    change_ts: the `ts` of a `Change`, or its `wins` if it comes from another log; "" for other events.
    is_dated: whether the caller gave `ts`.
    memory_id: the memory that the event saves or changes.
    content: the content hash if the caller chose the id, which may already be in use; otherwise b"".
    warnings: warnings about the event, for the caller.
    """

    id: str
    stream: str
    head: bytes
    tail: bytes
    change_ts: str = ""
    is_dated: bool = False
    memory_id: str | None = None
    content: bytes = b""
    warnings: tuple[AppendWarning, ...] = ()

    def build_line(self, at: str, wins: str | None = None, highest_wins: str | None = None) -> bytes:
        """Return the complete line, including the newline."""
        stamps = (("at", at), ("wins", wins), ("highest_wins", highest_wins))
        members = "".join(f',"{name}":"{time}"' for name, time in stamps if time)
        body = self.head + members.encode() + self.tail
        return append_crc(body) + b"\n"


_NOT_IN_JSON = (bytes, bytearray, memoryview, datetime, date, timedelta, UUID, Decimal)
"""Types that JSON lacks, but that msgspec would write as text."""

_TIME = "2026-02-24T10:15:00.000Z"

_STAMPS = len(Draft("", "", b"", b"").build_line(_TIME)) - len(b"\n")
"""The bytes that `at` and `crc` add to a line."""

_STAMPS_OF_CHANGE = len(Draft("", "", b"", b"").build_line(_TIME, _TIME, _TIME)) - len(b"\n")


def draft_event(
    event: "Event | dict[str, Any] | bytes", find_stream: FindStream | None = None, *, redact: bool = False
) -> Draft:
    """Check and encode `event`: a struct, a dict of its members, or a line of JSON.

    Keeps unknown members; if the event is a line, byte for byte.

    find_stream: finds the stream for a redaction that does not name one.
    redact: mask keys in all text; see `memlog.eventlog.secrets.detection`.

    Raises:
        BadInput: the event is invalid, too long, or of an unknown type or version; or a name contains a key.
        MemlogError: `find_stream` failed.
    """
    given = strip_bom(event) if isinstance(event, bytes) else event
    return (_draft_masked if redact else _draft_unmasked)(given, find_stream)


def build_redactions(targets: Iterable[tuple[str, str]], reason: str | None) -> Iterator[Redacted]:
    """Yield redactions of `targets`, pairs of (stream, id), in as few events as possible.

    Writing 200,000 lines takes 3 s more CPU time than writing 200.
    """
    ids_of: defaultdict[str, list[str]] = defaultdict(list)
    for stream, target_id in targets:
        ids_of[stream].append(target_id)
    for stream, ids in ids_of.items():
        if len(ids) == 1:
            yield Redacted(target_id=ids[0], stream=stream, reason=reason)
            continue
        for first in range(0, len(ids), MAX_TARGETS):
            yield Redacted(target_ids=ids[first : first + MAX_TARGETS], stream=stream, reason=reason)


def _draft_masked(event: "Event | dict[str, Any] | bytes", find_stream: FindStream | None) -> Draft:
    # Imported here: most appends mask nothing.
    from memlog.eventlog.secrets.detection import mask_error, mask_event

    try:
        # Check the unmasked event first: masking must not hide a fault.
        made = _draft_unmasked(event, find_stream)
        source = event if isinstance(event, bytes) else event_to_json(event)
        clean = mask_event(source)
        return made if clean is source else _draft_unmasked(clean, find_stream)
    except MemlogError as error:
        raise mask_error(error) from None


def _draft_unmasked(event: "Event | dict[str, Any] | bytes", find_stream: FindStream | None) -> Draft:
    source = event if isinstance(event, bytes) else event_to_json(event)
    try:
        return _encode_draft(_decode_input_line(source, find_stream), source)
    except BadLine as bad:
        message = bad.reason.replace("_", " ") + (f": {bad.detail}" if bad.detail else "")
        raise BadInput(
            message, hint=_list_choices(bad, source) or HINTS[bad.reason], code=bad.reason
        ) from bad


def _list_choices(bad: BadLine, source: bytes) -> str:
    """Return a hint that lists the allowed values of the invalid member; "" if any value is allowed."""
    member, is_named, _ = bad.detail.partition(" is ")
    if bad.reason != "invalid" or not is_named:
        return ""
    # Imported here: most events are valid.
    from memlog.eventlog.fields import list_fields

    try:
        kind = TYPES.get(str(parse_members(source).get("type")), Event)
    except BadLine:
        return ""
    choices = next((field.choices for field in list_fields(kind) if field.name == member), ())
    return f"use one of: {', '.join(choices)}" if choices else ""


def _decode_input_line(source: bytes, find_stream: FindStream | None) -> Event:
    """Check and decode an input line, which may still have the `at` and `crc` of another log."""
    check_line_length(len(source))
    check_utf8_and_depth(source)
    has_crc = ends_with_crc(source.rstrip())
    members = parse_members(source)
    check_crc_is_last(members, has_crc=has_crc)
    if not isinstance(members.get("type"), str):
        raise BadLine("invalid", "type is missing" if "type" not in members else f"type {members['type']!r}")
    if issubclass(TYPES.get(members["type"], Event), Change):
        members.pop("highest_wins", None)
        wins = members.pop("wins", None)
        if isinstance(wins, str) and timestamps.is_canonical(wins):
            members["wins"] = wins
    for name in ("ts", "at"):
        if members.get(name) is not None:
            members[name] = _normalise_time(name, members[name])
    event = build_event(members)
    if (
        isinstance(event, MemorySaved | MemoryUpdated)
        and event.content
        and has_no_visible_character(event.content)
    ):
        raise BadLine("invalid", "content must not be blank")
    if isinstance(event, Redacted) and event.stream is None and find_stream is not None:
        event.stream = _find_common_stream(event.targets, find_stream)
    encode_canonical(event)
    stream_of(event)
    return event


def _find_common_stream(targets: list[str], find_stream: FindStream) -> str:
    first, *others = dict.fromkeys(map(find_stream, targets))
    if others:
        raise BadLine("invalid", f"target_ids are in several streams: {first}, {others[0]}")
    return first


def _normalise_time(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadLine("invalid", f"{name} is {value!r}, not a time such as 2026-02-24T10:15:00Z")
    try:
        return timestamps.normalise_timestamp(value, naive_is_utc=False)
    except ValueError as error:
        raise BadLine("invalid", f"{name}: {error}") from error


def _encode_draft(event: Event, source: bytes) -> Draft:
    members = raw_members.decode(source)
    if isinstance(event, Redacted):
        members["stream"] = msgspec.Raw(msgspec.json.encode(event.stream))
    chat_id = getattr(event, "chat_id", None)
    if chat_id is not None and not bytes(members["chat_id"]).startswith(b'"'):  # given as a number
        members["chat_id"] = msgspec.Raw(msgspec.json.encode(chat_id))
    event_id = event.id or make_event_id()
    head = {
        "type": type_name_of_event(event),
        "id": event_id,
        "ts": event.ts or timestamps.now(),
    }
    own = list_envelope_members(event)
    tail = {"v": event.v} | {name: raw for name, raw in members.items() if name not in own}
    head_bytes = msgspec.json.encode(head).removesuffix(b"}")
    # Input may have newlines between its members; a line of the log must not.
    tail_bytes = b"," + b" ".join(encode_json(tail).splitlines())[1:-1]
    stamps = _STAMPS_OF_CHANGE if isinstance(event, Change) else _STAMPS
    check_line_length(len(head_bytes) + len(tail_bytes) + stamps)
    content = b""
    if event.id is not None:
        # Imported here: most callers give no id.
        from memlog.eventlog.codec.content_ids import content_hash_without_openssl

        content = content_hash_without_openssl(event)
    return Draft(
        event_id,
        stream_of(event),
        head_bytes,
        tail_bytes,
        change_ts=(event.wins or head["ts"]) if isinstance(event, Change) else "",
        is_dated=event.ts is not None,
        memory_id=_find_memory_id(event),
        content=content,
        warnings=(*find_input_warnings(event, members), *warn_of_keys(event_id, members)),
    )


def make_event_id() -> str:
    """Return a new event id: a UUIDv7 (RFC 9562, section 5.7), so ids sort by creation time."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10))
    value = (milliseconds & (2**48 - 1)) << 80 | random & (2**80 - 1)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _find_memory_id(event: Event) -> str | None:
    if isinstance(event, MemorySaved) and event.memory_id is None:
        from memlog.eventlog.codec.content_ids import derive_memory_id

        return derive_memory_id(event.chat_id, event.content)
    return getattr(event, "memory_id", None)


def event_to_json(event: "Event | dict[str, Any]") -> bytes:
    """Encode an event struct or dict as JSON. Raises BadInput if JSON cannot represent it."""
    try:
        members = msgspec.to_builtins(event, builtin_types=_NOT_IN_JSON)
        if isinstance(members, dict) and isinstance(members.get("ts"), datetime):
            members["ts"] = timestamps.format_datetime(members["ts"])
        is_all_text = isinstance(members, dict) and all(isinstance(value, str) for value in members.values())
        return encode_json(members) if is_all_text else _encode_with_stdlib(members)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadInput(
            f"the event cannot be written as JSON: {error}",
            hint="pass an event struct or a dict of JSON values",
        ) from error


def _encode_with_stdlib(members: object) -> bytes:
    """Encode with `json`, since msgspec writes NaN and infinity as null and rejects integers over 64 bits."""
    # Imported here: it takes 1.4 ms, and most events hold only text.
    import json

    return json.dumps(members, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()

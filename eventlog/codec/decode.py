"""Decodes log lines into events.

docs/storage/jsonl-format.md has a worked example, byte by byte.
"""

import re
from functools import cache
from typing import Any, Union

import msgspec
from msgspec import inspect

from memlog.eventlog import timestamps
from memlog.eventlog.codec.upcast import Place, convert_foreign_members
from memlog.eventlog.escapes import CRC_LENGTH, encode_json_buffer, ends_with_correct_crc
from memlog.eventlog.events import TYPES, Change, Event
from memlog.eventlog.fields import chat_id_to_text
from memlog.eventlog.log.quarantine import BadLine, check_utf8_and_depth, diagnose_json
from memlog.eventlog.log.streams import may_be_in_stream, stream_of

INTEGERS = range(-(2**63), 2**63)
"""The integers that every reader, including SQLite, can represent exactly."""

# A check cheaper than a second parse shows for most lines that they have no duplicate keys.
_COLONS = (b" :", b"\t:", b"\r:", b"\n:")
_ADDED_TO_AN_EVENT = len(b',"v":1,"crc":"00000000"')
_UNAMBIGUOUS = (str, bool, type(None))
_encode = msgspec.json.Encoder().encode


def is_shortest_spelling(line: bytes, event: Event) -> bool:
    """Whether `line`, which has `at` and a crc and decodes to `event`, is too short to hold a duplicate key.

    msgspec writes strings and integers in their shortest form; only floats may have a shorter one. Omitting
    `v` saves six bytes, too few for another member.
    """
    if len(line) > len(_encode(event)) + _ADDED_TO_AN_EVENT:
        return False
    for name, default in _list_ambiguous_members(type(event)):
        value = getattr(event, name)
        if value is not default and not _is_spelled_shortest(value):
            return False
    return True


def check_keys_and_integers(line: bytes, members: dict[str, Any]) -> None:
    """Raise BadLine if any object in the line has a duplicate key or an integer exceeds 64 bits.

    members: the decoded line, which keeps only the last of any duplicate keys.
    """
    if _count_keys(members) != _bound_keys(line):
        _check_each_key(line)


def _is_spelled_shortest(value: object) -> bool:
    """Whether `value` is a flat dict of strings, booleans, None and 64-bit integers."""
    if not isinstance(value, dict):
        return False
    for item in value.values():
        kind = type(item)
        if kind not in _UNAMBIGUOUS and not (kind is int and item in INTEGERS):
            return False
    return True


@cache
def _list_ambiguous_members(kind: type[Event]) -> tuple[tuple[str, Any], ...]:
    """Return the (name, default) of each member whose JSON value can be written in more than one way."""
    fields = inspect.type_info(kind)
    assert isinstance(fields, inspect.StructType)
    return tuple((field.name, field.default) for field in fields.fields if not _has_one_spelling(field.type))


def _has_one_spelling(kind: Any) -> bool:  # noqa: ANN401 - msgspec has no common type
    match kind:
        case inspect.UnionType():
            return all(_has_one_spelling(member) for member in kind.types)
        case inspect.ListType():
            return _has_one_spelling(kind.item_type)
    return isinstance(kind, inspect.StrType | inspect.IntType | inspect.LiteralType | inspect.NoneType)


def _count_keys(members: dict[str, Any]) -> int:
    """Return the number of keys at all levels. Raises BadLine if an integer exceeds 64 bits.

    Does not recurse, since the caller's stack may already be deep.
    """
    keys = 0
    waiting: list[Any] = [members]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            keys += len(value)
            value = list(value.values())
        if isinstance(value, list):
            waiting += [item for item in value if isinstance(item, dict | list | int)]
        elif value not in INTEGERS:
            raise BadLine("invalid", f"{shorten_repr(value)} is an integer outside 64 bits; use a string")
    return keys


def _bound_keys(line: bytes) -> int | None:
    """Return an upper bound on the number of keys, based on colons; None if these are inconclusive."""
    if any(colon in line for colon in _COLONS):
        return None
    keys = line.count(b'":')
    if keys and b"\\" in line:
        # After one backslash a quote is text; after two it ends a text.
        return None if b'\\\\":' in line else keys - line.count(b'\\":')
    return keys


def _check_each_key(line: bytes) -> None:
    """Raise BadLine if any object has a duplicate key. Numbers stay text, however many digits they have."""
    # Imported here: an ordinary line needs only msgspec's JSON.
    import json

    json.loads(line, object_pairs_hook=_check_keys_are_unique, parse_int=str, parse_float=str)


def _check_keys_are_unique(pairs: list[tuple[str, Any]]) -> None:
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise BadLine("duplicate_key", f"{shorten_repr(key)} occurs twice in one object")
        seen.add(key)


def shorten_repr(value: object) -> str:
    """Return `repr(value)`, truncated for error messages."""
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"


ENVELOPE = ("type", "id", "ts", "at", "v", "crc")
"""The members that every event has. Only the line has `crc`; the struct does not."""

_ENVELOPE_FIELDS = len(Event.__struct_fields__)
_CHANGE_ENVELOPE_FIELDS = len(Change.__struct_fields__)

_TAGS = {kind: tag for tag, kind in TYPES.items()}

VERSION = 9
"""Increment when `encode_canonical` or the set of accepted lines changes; part of the projection id."""

_BOM = b"\xef\xbb\xbf"
"""The byte order mark. Joining files with `cat` may leave one before a line in the middle of a file."""

ERASING = b"\x18"
"""The first byte of a half-erased line, which readers skip. memlog's other lines begin with a brace, which no
single bit flip turns into this byte."""

_TRAILER = re.compile(rb',"crc":"[0-9a-f]{8}"\}')
_TRAILER_BYTES = [*(bytes([byte]) for byte in b',"crc":"'), *[b"0123456789abcdef"] * 8, b'"', b"}"]
_FEW_BYTES = 2
_MEMBER_AT_FAULT = r"at `\$\.(\w+)"

_members = msgspec.json.Decoder(dict[str, Any])
raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_canonical = msgspec.json.Encoder(order="deterministic")


def decode_line(line: bytes, place: Place) -> Event:
    """Decode a line, without its newline, into an event of the current schema. Raises BadLine."""
    line = strip_bom(line.removesuffix(b"\r"))
    # Check the crc first: an altered line of memlog is `bad_crc`, whatever else is wrong with it.
    has_crc = ends_with_crc(line)
    try:
        check_utf8_and_depth(line)
        event = (_decode_line_of_memlog(line) if has_crc else None) or _decode_line_of_other_program(
            line, place, has_crc=has_crc
        )
    except BadLine as bad:
        if not has_crc and _almost_ends_with_crc(line):
            raise BadLine("bad_crc", bad.detail) from bad
        raise
    if isinstance(event, Change) and not (event.wins is None or timestamps.is_canonical(event.wins)):
        raise BadLine("invalid", f"wins {event.wins!r}")
    if not may_be_in_stream(event, place.stream):
        raise BadLine("wrong_stream", f"belongs in {_describe_stream(event)}")
    return event


def _describe_stream(event: Event) -> str:
    try:
        return stream_of(event)
    except BadLine as bad:
        return f"no stream: {bad.detail}"


def is_blank_line(line: bytes) -> bool:
    """Whether a line is valid but holds no event: it is empty, erased or partly erased."""
    if line.startswith(b"{"):  # most lines
        return False
    return not line.strip() or not strip_bom(line).strip() or line.startswith(ERASING)


def strip_bom(line: bytes) -> bytes:
    """Remove any leading byte order marks from a line."""
    while line.startswith(_BOM):
        line = line.removeprefix(_BOM)
    return line


def encode_canonical(event: Event) -> bytearray:
    """Encode an event's type and content as a JSON list, in the order of the fields, defaults included.

    Raises BadLine if an integer exceeds 64 bits.
    """
    # The envelope's fields come last.
    envelope = _CHANGE_ENVELOPE_FIELDS if isinstance(event, Change) else _ENVELOPE_FIELDS
    try:
        return encode_json_buffer(
            (_TAGS[type(event)], *msgspec.structs.astuple(event)[:-envelope]), _canonical
        )
    except OverflowError as error:
        raise BadLine("invalid", "an integer is outside 64 bits") from error


def ends_with_crc(line: bytes) -> bool:
    """Whether `line` ends with a crc. Raises BadLine if the crc is wrong."""
    if ends_with_correct_crc(line):
        return True
    if _TRAILER.fullmatch(line, len(line) - CRC_LENGTH):
        raise BadLine("bad_crc")
    return False


def is_intact_line(line: bytes) -> bool:
    """Whether `line`, without its newline, was written by memlog and is intact."""
    try:
        return ends_with_crc(line)
    except BadLine:
        return False


def _almost_ends_with_crc(line: bytes) -> bool:
    """Whether `line` ends with a crc, give or take two altered bytes; a killed writer would truncate it."""
    end = line[-CRC_LENGTH:]
    if len(end) < CRC_LENGTH:
        return False
    return sum(byte not in allowed for byte, allowed in zip(end, _TRAILER_BYTES, strict=True)) <= _FEW_BYTES


@cache
def _make_event_decoder() -> "msgspec.json.Decoder[Event]":
    # Created at first use: an append does not need it.
    any_event: Any = Union[tuple(TYPES.values())]  # noqa: UP007 - of a tuple
    return msgspec.json.Decoder(any_event)


def _decode_line_of_memlog(line: bytes) -> Event | None:
    """Decode a line written by memlog; return None if another program wrote it. Raises BadLine."""
    try:
        event = _make_event_decoder().decode(line)
    except msgspec.MsgspecError:
        return None
    if event.at is None or event.id is None or event.ts is None:
        return None
    if event.v > event.VERSION:
        raise BadLine("newer_version", f"version {event.v}")
    if not timestamps.is_canonical(event.ts):
        raise BadLine("invalid", f"ts {event.ts!r}")
    if not is_shortest_spelling(line, event):
        parse_members(line)
    return event


def _decode_line_of_other_program(line: bytes, place: Place, *, has_crc: bool) -> Event:
    members = parse_members(line)
    check_crc_is_last(members, has_crc=has_crc)
    if members.get("at") is not None and not has_crc:
        raise BadLine("missing_crc")
    try:
        today = convert_foreign_members(members, place)
    except ValueError as error:
        raise BadLine("invalid", str(error)) from error
    event = build_event(today)
    if isinstance(event, Change) and event.at is None:
        event.wins = event.highest_wins = None
    return event


def list_envelope_members(event: Event) -> tuple[str, ...]:
    """Return the names of an event's members that are not part of its content."""
    return (*ENVELOPE, "wins", "highest_wins") if isinstance(event, Change) else ENVELOPE


def build_event(members: dict[str, Any]) -> Event:
    """Build an event from `members`, which follow the current schema. Raises BadLine if they are invalid."""
    kind = members.get("type")
    version = members.get("v", 1)
    if not isinstance(kind, str):
        raise BadLine("invalid", "type is missing" if kind is None else f"type {kind!r}")
    if kind not in TYPES:
        raise BadLine("unknown_type", f"type {kind!r}")
    if isinstance(version, int) and version > TYPES[kind].VERSION:
        raise BadLine("newer_version", f"version {version} of {kind}")
    if "chat_id" in members:
        members = members | {"chat_id": chat_id_to_text(members["chat_id"])}
    try:
        return msgspec.convert(members, TYPES[kind])
    except msgspec.ValidationError as error:
        raise BadLine("invalid", _describe_validation_error(error, members)) from error


def _describe_validation_error(error: msgspec.ValidationError, members: dict[str, Any]) -> str:
    """Describe a validation error with the invalid value, since msgspec's message only names the member."""
    member = re.search(_MEMBER_AT_FAULT, str(error))
    if member is None or member[1] not in members:
        return str(error)
    return f"{member[1]} is {shorten_repr(members[member[1]])}: {error}"


def check_crc_is_last(members: dict[str, Any], *, has_crc: bool) -> None:
    """Raise BadLine if `crc` is present but not the last member, the only place where it can be checked."""
    if "crc" in members and not has_crc:
        raise BadLine("bad_crc", "crc is not the last member, directly before the closing brace")


def parse_members(line: bytes) -> dict[str, Any]:
    """Parse a line into the members of a JSON object. Raises BadLine if it is anything else."""
    try:
        members = _members.decode(line)
    except msgspec.ValidationError as error:
        raise BadLine("invalid", str(error)) from error
    except msgspec.DecodeError as error:
        raise diagnose_json(line, str(error)) from error
    check_keys_and_integers(line, members)
    return members

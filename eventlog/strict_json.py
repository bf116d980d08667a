"""Refuses JSON that readers interpret differently: duplicate keys, integers beyond 64 bits.

A proof that costs less than another look at each byte clears most lines.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from memlog.eventlog.envelope import Event
from memlog.eventlog.quarantine import BadLine

INTEGERS = range(-(2**63), 2**63)
"""The integers that every reader, SQLite included, keeps unchanged."""

_COLONS = (b" :", b"\t:", b"\r:", b"\n:")
_ADDED_TO_AN_EVENT = len(b',"v":1,"crc":"00000000"')
_SPELLED_ONE_WAY = (str, bool, type(None))
_encode = msgspec.json.Encoder().encode


def is_as_short_as_can_be(line: bytes, event: Event) -> bool:
    """Whether a line with `at` and crc, decoded as `event`, has no room for a duplicate key.

    msgspec writes text and integers in the shortest form; only floats have shorter ones. The six bytes of a
    missing `v` are too few for another member.
    """
    if len(line) > len(_encode(event)) + _ADDED_TO_AN_EVENT:
        return False
    for name, default in _spelled_in_ways(type(event)):
        value = getattr(event, name)
        if value is not default and not _is_spelled_shortest(value):
            return False
    return True


def check_members(line: bytes, members: dict[str, Any]) -> None:
    """Raise BadLine for a line with a duplicate key in an object, or an integer beyond 64 bits.

    members: the decoded line, in which the last of two equal keys has won.
    """
    if _keys_in(members) != _keys_at_most(line):
        _check_each_key(line)


def _is_spelled_shortest(value: object) -> bool:
    """Whether a member that may contain a float surely has none, and no integer beyond 64 bits."""
    if not isinstance(value, dict):
        return False
    for item in value.values():
        kind = type(item)
        if kind not in _SPELLED_ONE_WAY and not (kind is int and item in INTEGERS):
            return False
    return True


@cache
def _spelled_in_ways(kind: type[Event]) -> tuple[tuple[str, Any], ...]:
    """The members of an event type whose values have shorter spellings in JSON, with their defaults."""
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


def _keys_in(members: dict[str, Any]) -> int:
    """The number of keys in all nested objects. Without recursion, since the caller's stack may be deep.

    Raises BadLine for an integer beyond 64 bits.
    """
    keys = 0
    waiting: list[Any] = [members]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            keys += len(value)
            waiting += _worth_a_look(value.values())
        elif isinstance(value, list):
            waiting += _worth_a_look(value)
        elif value not in INTEGERS:
            raise BadLine("invalid", f"{shortened(value)} is an integer outside 64 bits; write it as text")
    return keys


def _worth_a_look(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list | int)]


def _keys_at_most(line: bytes) -> int | None:
    """The most keys that a line can have, by its colons; None if that is not cheap to tell."""
    if any(colon in line for colon in _COLONS):
        return None
    keys = line.count(b'":')
    if keys and b"\\" in line:
        # After one backslash a quote is text; after two it ends a text.
        return None if b'\\\\":' in line else keys - line.count(b'\\":')
    return keys


def _check_each_key(line: bytes) -> None:
    """Check every object exactly. Numbers of any length pass: the result is dropped."""
    # Imported here: an ordinary line needs only msgspec's JSON.
    import json

    json.loads(line, object_pairs_hook=_check_pairs, parse_int=str, parse_float=str)


def _check_pairs(pairs: list[tuple[str, Any]]) -> None:
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise BadLine("duplicate_key", f"{shortened(key)} stands twice in one object")
        seen.add(key)


def shortened(value: object) -> str:
    """`value` for a message."""
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"

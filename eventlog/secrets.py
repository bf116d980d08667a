"""Masks keys in texts, events and errors; `memlog.eventlog.key_shapes` has the kinds of keys."""

from collections.abc import Container, Iterable, Iterator
from io import StringIO
from itertools import chain, count
from typing import Any

import msgspec

from memlog.eventlog.errors import BadInput, MemlogError
from memlog.eventlog.key_scan import keys_in
from memlog.eventlog.key_shapes import NAMES

_NAMES = frozenset(
    ("id", "channel", "chat_id", "memory_id", "memory_ids", "ids", "target_id", "stream", "source_id", "file")
    + ("topic_key", "section", "key", "from_message_id", "to_message_id", "through_message_id")
    + ("source_message_id",)
)
"""Members that name things: masked, two things would be one."""
_SHORTEST_NAME = min(map(len, NAMES))


def masked(text: str) -> str:
    """`text` with `[REDACTED:kind]` in the place of each key."""
    clean, done = StringIO(), 0
    for key in keys_in(text):
        clean.write(text[done : key.start])
        clean.write(f"[REDACTED:{key.kind}]")
        done = key.end
    return clean.getvalue() + text[done:] if done else text


def kinds_in(text: str) -> list[str]:
    """The kinds of the keys in `text`, in their order."""
    return [key.kind for key in keys_in(text)]


def kinds_in_line(line: bytes) -> list[str]:
    """Each kind of key in a line of a log, once: in its texts, or in the line, where names precede values."""
    texts = chain(texts_in(line), [line.decode(errors="replace")])
    return list(dict.fromkeys(kind for text in texts for kind in kinds_in(text)))


def masked_event(source: bytes) -> bytes:
    """The event of a line of JSON with its keys masked, at any depth, and without `at` and `crc`; the same
    object where it has none.

    Raises:
        BadInput: a member that names something holds a key.
    """
    try:
        members = msgspec.json.decode(source)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return source  # what is wrong with it is told by who reads it
    if not isinstance(members, dict):
        return source
    # Those of a line of another log were of what it said.
    said = {name: value for name, value in members.items() if name not in ("at", "crc")}
    clean = _without_keys(said)
    if clean == said:
        return source
    for name in _NAMES & clean.keys():
        if clean[name] != said[name]:
            raise BadInput(f"{name} holds what looks like a key", hint="name things otherwise: names stay")
    return msgspec.json.encode(clean)


def masked_error(error: MemlogError) -> MemlogError:
    """`error`, which may quote what was given, without keys."""
    return type(error)(
        masked(error.message), hint=masked(error.hint), code=error.code, retryable=error.retryable
    )


def texts_in(line: bytes) -> Iterator[str]:
    """All that a line may say: each text of its JSON, names of members too; or the line, where it is none."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        yield line.decode(errors="replace")
        return
    yield from texts_within([value])


def texts_within(values: Iterable[Any]) -> Iterator[str]:
    """Each text in JSON values, at any depth, names of members too, in their order. Without recursion."""
    waiting = list(values)[::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [part for pair in reversed(value.items()) for part in reversed(pair)]
        elif isinstance(value, list):
            waiting += reversed(value)


def _without_keys(value: Any, name: str = "") -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, str):
        return _masked_value(name, value) if len(name) >= _SHORTEST_NAME else masked(value)
    if isinstance(value, list):
        return [_without_keys(each) for each in value]
    if isinstance(value, dict):
        clean: dict[str, Any] = {}
        for name, each in value.items():
            clean[_unlike(clean, masked(name))] = _without_keys(each, name)
        return clean
    return value


def _masked_value(name: str, value: str) -> str:
    if not any(part in name for part in NAMES):
        return masked(value)
    head = f"{name}="
    return masked(head + value)[len(masked(head)) :]


def _unlike(members: Container[str], name: str) -> str:
    """`name`, with a number where one of `members` is called so: two keys of one kind are two names."""
    numbered = (f"{name} {number}" for number in count(2))
    return name if name not in members else next(each for each in numbered if each not in members)

"""Masks keys in texts, events and errors; `memlog.eventlog.key_shapes` has the kinds of keys."""

from collections.abc import Callable, Container, Iterable, Iterator
from functools import lru_cache
from io import StringIO
from itertools import count
from typing import Any

import msgspec

from memlog.eventlog.errors import BadInput, MemlogError
from memlog.eventlog.key_scan import keys_in
from memlog.eventlog.key_shapes import NAMES

_NAMES = frozenset(
    ("id", "channel", "chat_id", "memory_id", "memory_ids", "ids", "stream", "source_id", "file")
    + (
        "target_id",
        "target_ids",
        "topic_key",
        "section",
        "key",
        "from_message_id",
        "to_message_id",
        "through_message_id",
    )
    + ("source_message_id",)
)
"""Members that name things: masked, two things would be one."""
_SHORTEST_NAME = min(map(len, NAMES))
_LONGEST_NAME = 64
"""Of a member that tells that its value is a key, with a margin: `HTTP_PROXY_AUTHORIZATION` has 24."""
_PAIR_NAMES = ("name", "Name", "NAME", "key", "Key", "KEY", "header", "Header")
"""What {name: …, value: …} calls its name: headers in HAR, variables of a container."""


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
    """Each kind of key in a line of a log, once: in its texts and members, or in a line that is no JSON."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = line.decode(errors="replace")
    kinds: dict[str, None] = {}

    def noted(text: str) -> str:
        kinds.update(dict.fromkeys(kinds_in(text)))
        return text

    _rewritten(value, noted)
    return list(kinds)


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
    clean = _rewritten(said, masked)
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


def _rewritten(value: Any, rewrite: Callable[[str], str], head: str = "") -> Any:  # noqa: ANN401 - any JSON
    """`value` with each text rewritten, at any depth, behind the `head` that tells what it is."""
    if isinstance(value, str):
        return rewrite(head + value)[len(head) :] if head else rewrite(value)
    if isinstance(value, list):
        behind_name = _head(value[0]) if len(value) == 2 else ""
        heads = [head, behind_name] if behind_name else [head] * len(value)
        return [_rewritten(each, rewrite, before) for each, before in zip(value, heads, strict=True)]
    if isinstance(value, dict):
        paired = next((_head(value[each]) for each in _PAIR_NAMES if each in value), "")
        clean: dict[str, Any] = {}
        for name, each in value.items():
            before = paired if paired and name.lower() == "value" else _head(name)
            clean[_unlike(clean, rewrite(name))] = _rewritten(each, rewrite, before)
        return clean
    return value


def _head(name: object) -> str:
    """What a text would say before a value, if `name` tells that it is a key."""
    return _head_of(name) if isinstance(name, str) and len(name) >= _SHORTEST_NAME else ""


@lru_cache(maxsize=1024)
def _head_of(name: str) -> str:
    letters = "".join(filter(str.isalnum, name[-_LONGEST_NAME:])).lower()
    return next((f"{spelt}=" for told, spelt in NAMES.items() if letters.endswith(told)), "")


def _unlike(members: Container[str], name: str) -> str:
    """`name`, with a number where one of `members` is called so: two keys of one kind are two names."""
    numbered = (f"{name} {number}" for number in count(2))
    return name if name not in members else next(each for each in numbered if each not in members)

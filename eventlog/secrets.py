"""Masks keys in texts, events and errors; `memlog.eventlog.key_shapes` has their shapes."""

import re
from collections.abc import Callable, Container, Iterable, Iterator
from functools import lru_cache
from io import StringIO
from itertools import count
from typing import Any

import msgspec

from memlog.eventlog.encoding import decoded
from memlog.eventlog.errors import BadInput, MemlogError
from memlog.eventlog.key_scan import keys_in
from memlog.eventlog.key_shapes import NAMES

_NAMES = frozenset(
    "id channel chat_id memory_id memory_ids ids stream source_id file target_id target_ids topic_key section"
    " key from_message_id to_message_id through_message_id source_message_id".split()
)
"""Members that name things: masked, two things would become one."""
_SHORTEST_NAME = min(map(len, NAMES))
_LONGEST_NAME = 64
"""Of a member whose value is a key, with a margin: `HTTP_PROXY_AUTHORIZATION` has 24."""
PAIR_NAMES = ("name", "Name", "NAME", "key", "Key", "KEY", "header", "Header", "topic_key", "title")
"""The names of the name in {name: …, value: …}: headers in HAR, variables of a container, memories."""
PAIR_VALUES = ("value", "content")


def masked(text: str) -> str:
    """`text` with each key replaced by `[REDACTED:kind]`."""
    clean, done = StringIO(), 0
    for key in keys_in(text):
        clean.write(text[done : key.start])
        clean.write(f"[REDACTED:{key.kind}]")
        done = key.end
    return clean.getvalue() + text[done:] if done else text


def kinds_in(text: str) -> list[str]:
    """The kinds of the keys in `text`, in order."""
    return [key.kind for key in keys_in(text)]


def kinds_in_line(line: bytes) -> list[str]:
    """The distinct kinds of keys in a line of the log, JSON or not."""
    value = decoded(line, object) or line.decode(errors="replace")
    kinds: dict[str, None] = {}

    def noted(text: str) -> str:
        kinds.update(dict.fromkeys(kinds_in(text)))
        return text

    rewritten(value, noted)
    return list(kinds)


def masked_event(source: bytes) -> bytes:
    """A line of JSON with its keys masked at any depth, without `at` and `crc`; `source` itself without keys.

    Raises BadInput if a member that names something holds a key.
    """
    members = decoded(source, dict)
    if members is None:
        return source  # the reader reports the fault
    # `at` and `crc` of another log's line belong to the unmasked text.
    given = {name: value for name, value in members.items() if name not in ("at", "crc")}
    clean = rewritten(given, masked)
    if clean == given:
        return source
    for name in _NAMES & clean.keys():
        if clean[name] != given[name]:
            raise BadInput(f"{name} holds what looks like a key", hint="use another name: names are kept")
    return msgspec.json.encode(clean)


def masked_error(error: MemlogError) -> MemlogError:
    """`error`, which may quote input, with its keys masked."""
    return type(error)(
        masked(error.message), hint=masked(error.hint), code=error.code, retryable=error.retryable
    )


def texts_within(values: Iterable[Any]) -> Iterator[str]:
    """Each text in JSON values at any depth, member names included, in order. Without recursion."""
    waiting = list(values)[::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [part for pair in reversed(value.items()) for part in reversed(pair)]
        elif isinstance(value, list):
            waiting += reversed(value)


_TELLING = frozenset(
    "password passwd pwd passphrase passcode passwort kennwort salasana пароль contraseña 密码 密碼 口令"
    " secret token pin pass pw credential apikey".split()
)
"""Words of a name whose value is a secret, wherever they stand in it: `password_router`."""


def is_telling_name(name: str) -> bool:
    """Whether the name of a value, such as a key of the core memory, says that it is a secret."""
    words = re.split(r"[\W_]+", name.casefold().strip())
    return (
        is_telling(name)
        or any(word in _TELLING or word.removesuffix("s") in _TELLING for word in words)
        or (len(words) > 1 and words[-1] in ("key", "keys"))
    )


def is_telling(name: str) -> bool:
    """Whether a name ends as that of a key does: `wifi_password`."""
    return bool(_head(name))


def rewritten(value: Any, rewrite: Callable[[str], str]) -> Any:  # noqa: ANN401 - any JSON
    """`value` with each text rewritten at any depth. Without recursion."""
    clean: list[Any] = [None]
    # Where a value belongs, the value, and what is put before a text to show what it is.
    waiting: list[tuple[Any, Any, Any, str]] = [(clean, 0, value, "")]
    while waiting:
        parent, place, value, head = waiting.pop()
        made = value
        if isinstance(value, str):
            made = rewrite(head + value)[len(head) :] if head else rewrite(value)
        elif isinstance(value, list):
            value = _joined_block(value, rewrite)
            made = [*value]
            behind_name = _head(value[0]) if len(value) == 2 else ""
            waiting += [
                (made, number, value[number], behind_name if behind_name and number else head)
                for number in reversed(range(len(value)))
            ]
        elif isinstance(value, dict):
            made, inner = {}, []
            paired = next((_head(value[name]) for name in PAIR_NAMES if name in value), "")
            for name, item in value.items():
                before = paired if paired and name.lower() in PAIR_VALUES else _head(name)
                clean_name = _unused(made, rewrite(name))
                made[clean_name] = item
                inner.append((made, clean_name, item, before))
            waiting += reversed(inner)
        parent[place] = made
    return clean[0]


def _joined_block(items: list[Any], rewrite: Callable[[str], str]) -> list[Any]:
    """`items`, rewritten as one text if they are the lines of a text with a PEM block."""
    is_block = all(isinstance(item, str) for item in items) and any("-----BEGIN" in item for item in items)
    return rewrite("\n".join(items)).split("\n") if is_block else items


def _head(name: object) -> str:
    """The text that marks a value as a key, if its name does; else ""."""
    return _head_of(name) if isinstance(name, str) and len(name) >= _SHORTEST_NAME else ""


@lru_cache(maxsize=1024)
def _head_of(name: str) -> str:
    letters = "".join(filter(str.isalnum, name[-_LONGEST_NAME:])).lower()
    return next((f"{spelling}=" for ending, spelling in NAMES.items() if letters.endswith(ending)), "")


def _unused(members: Container[str], name: str) -> str:
    """`name`, numbered if `members` has it: two masked keys of one kind stay two names."""
    numbered = (f"{name} {number}" for number in count(2))
    return name if name not in members else next(other for other in numbered if other not in members)

"""Maps: TOML files that define how the records of any JSON or CSV file become messages."""

import json
import re
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args
from zoneinfo import ZoneInfo

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Role
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.eventlog.secrets.detection import mask_keys, rewrite_texts

Steps = tuple[str | int | None, ...]
"""The steps to a value: keys, list positions, and None for every item of a list."""

HINT = (
    'a map names where each part of a message is, such as message = {channel = "=lab", chat_id = "room.id",'
    ' content = "text", name = "by", ts = "sent_at"}; docs/importing.md has all keys'
)

_PATH = re.compile(r"\$(?:\.[^.\[\]]+|\[(?:\d+|\*)\])*")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\*)\]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}
_LEAST_MILLISECONDS = 1e11
"""A larger number without a unit is in milliseconds; in seconds, it would be in the year 5138."""


class MapCondition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The condition for a record to be a message: that it has one of the given values at a path."""

    path: str
    values: list[str | int | float | bool] = msgspec.field(name="in")

    def __post_init__(self) -> None:
        _check_path("when.path", self.path)


class MessagePart(NamedTuple):
    """A part of a message: its text (number 0) or a tool call (from 1). meta: the meta of its event."""

    number: int
    content: str
    meta: dict[str, Any]


class ForeignMessage(NamedTuple):
    """A message of another program.

    told: its whole content, as one text. written: its time, as written in the record.
    """

    channel: str
    chat_id: str
    role: Role
    told: str
    parts: list[MessagePart]
    name: str | None = None
    native_id: str | None = None
    written: str | None = None
    ts: str | None = None
    parent: str | None = None


class MessageMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The paths to the parts of a message. A text that begins with `=` is a constant."""

    content: str | list[str]
    chat_id: str
    channel: str = "=jsonl"
    id: str | None = None
    name: str | None = None
    ts: str | None = None
    ts_unit: str | None = None
    tz: str | None = None
    parent: str | None = None
    when: MapCondition | None = None
    role: dict[str, str] = {}
    meta: dict[str, str] = {}

    def __post_init__(self) -> None:
        for key in ("chat_id", "channel", "id", "name", "ts", "parent"):
            if (path := getattr(self, key)) is not None:
                _check_path(key, path)
        for path in self.contents:
            _check_path("content", path, may_fan_out=True)
        for key, path in self.meta.items():
            _check_path(f"meta.{key}", path, may_fan_out=True)
        self._check_times()
        self._check_roles()
        if not self.contents:
            raise ValueError("content names no path")
        if self.parent is not None and self.id is None:
            raise ValueError("parent needs id: without it, no message can be named")
        if self.channel.startswith("=") and ":" in self.channel:
            raise ValueError("channel must not contain a colon")

    def _check_times(self) -> None:
        for key in ("ts_unit", "tz"):
            if self.ts is None and getattr(self, key) is not None:
                raise ValueError(f"{key} needs ts")
        unit = self.ts_unit
        if unit is not None and unit not in ("iso", *_PER_SECOND) and not _is_pattern(unit):
            raise ValueError(
                f"ts_unit is none of s, ms, us, iso, or a pattern such as %d.%m.%Y %H:%M: {unit!r}"
            )
        try:
            _zone(self.tz)
        except (ValueError, KeyError, OSError) as error:
            raise ValueError(f"tz is no time zone such as Europe/Helsinki: {self.tz!r}") from error

    def _check_roles(self) -> None:
        if "from" in self.role:
            _check_path("role.from", self.role["from"])
        elif self.role.keys() - {"default"}:
            raise ValueError("role.from is missing: the path of what tells the roles apart")
        for key, role in self.role.items():
            if key != "from" and role not in get_args(Role):
                raise ValueError(f"role.{key} is none of {', '.join(get_args(Role))}: {role!r}")

    @property
    def contents(self) -> list[str]:
        """The paths to the content. The texts found there are joined with blank lines."""
        return [self.content] if isinstance(self.content, str) else self.content

    def is_wanted(self, record: object) -> bool:
        """Whether a record fulfils the condition `when`."""
        if self.when is None:
            return True
        wanted = {_to_text("when", each) for each in self.when.values}
        found = find_values(record, self.when.path)
        return any(_to_text("when", each) in wanted for each in found if not isinstance(each, dict | list))

    def convert(self, record: object) -> ForeignMessage:
        """Convert a record to a message. Raises ValueError if it lacks a required value."""
        found = [_to_text("content", value) for path in self.contents for value in find_values(record, path)]
        if not found and not any(_is_present(record, path) for path in self.contents):
            raise ValueError(f"content: nothing at {' or '.join(self.contents)}")
        told = "\n\n".join(each for each in found if each.strip())
        meta: dict[str, Any] = {
            key: values if "[*]" in path else values[0]
            for key, path in self.meta.items()
            if (values := find_values(record, path))
        }
        written = self._find_text(record, "ts")
        return ForeignMessage(
            self._require_text(record, "channel"),
            self._require_text(record, "chat_id"),
            self._role_of(record),
            told,
            [MessagePart(0, told, rewrite_texts(meta, mask_keys))] if told else [],
            self._find_text(record, "name"),
            self._find_text(record, "id"),
            written,
            None if written is None else self._parse_time(written),
            self._find_text(record, "parent"),
        )

    def _find_text(self, record: object, key: str) -> str | None:
        path = getattr(self, key)
        values = [] if path is None else find_values(record, path)
        return _to_text(key, values[0]) if values else None

    def _require_text(self, record: object, key: str) -> str:
        text = self._find_text(record, key)
        if not text:
            raise ValueError(f"{key}: nothing at {getattr(self, key)}")
        return text

    def _role_of(self, record: object) -> Role:
        path, default = self.role.get("from"), self.role.get("default")
        if path is None:
            return default or "user"  # type: ignore[return-value] # checked above
        value = next((_to_text("role", each) for each in find_values(record, path)), "")
        known = {each: each for each in get_args(Role)} | self.role
        role = default if value in ("from", "default") else known.get(value, default)
        if role is None:
            raise ValueError(f"role: the table has no {value!r}, found at {path}, and no default")
        return role  # type: ignore[return-value] # checked above

    def _parse_time(self, written: str) -> str:
        text, unit = written.strip(), self.ts_unit
        try:
            if unit in _PER_SECOND or (unit is None and re.fullmatch(r"-?\d+(?:\.\d*)?", text)):
                number = float(text)
                guessed = "ms" if abs(number) > _LEAST_MILLISECONDS else "s"
                return timestamps.timestamp_from_seconds(number / _PER_SECOND[unit or guessed])
            moment = (
                datetime.fromisoformat(text) if unit in (None, "iso") else datetime.strptime(text, str(unit))
            )
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=_zone(self.tz))
            return timestamps.normalise_timestamp(moment.astimezone(UTC).isoformat(), naive_is_utc=True)
        except (ValueError, OverflowError) as error:
            form = "a time" if unit is None else f"a time in {unit}"
            raise ValueError(f"ts: not {form}, at {self.ts}: {written[:40]!r}") from error


class RecordMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A map from the records of files to messages.

    format: the files' format; by default, from their names. records: the path to the records in each value.
    """

    message: MessageMap
    format: Literal["jsonl", "json", "csv"] | None = None
    records: str = "$"

    def __post_init__(self) -> None:
        _check_path("records", self.records, may_fan_out=True)
        if self.records.startswith("="):
            raise ValueError("records must be a path")

    def find_records(self, document: object) -> Iterator[Any]:
        """Yield the records in a document; the items of a list are records."""
        for value in find_values(document, self.records):
            yield from value if isinstance(value, list) else [value]


def read_map(path: Path) -> RecordMap:
    """Read and check a map.

    Raises:
        BadInput: the map cannot be read, or one of its keys is wrong.
    """
    name = escape_invalid_utf8(path)
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8-sig")), RecordMap)
    except OSError as error:
        raise BadInput(f"the map {name} cannot be read: {error.strerror}", hint="check the path") from error
    except (ValueError, RecursionError) as error:  # a ValidationError is a ValueError
        raise BadInput(f"the map {name} is wrong: {error}", hint=HINT) from error


def find_values(record: object, path: str) -> list[Any]:
    """Return the values at the first alternative of a path that has values other than null and "".

    A key equal to the whole path, such as the CSV column `data.text`, takes precedence.
    """
    if path.startswith("="):
        return [path[1:]]
    for steps in _parse_path(path):
        if found := [each for each in _follow(record, path, steps) if each not in (None, "")]:
            return found
    return []


def _is_present(record: object, path: str) -> bool:
    return any(_follow(record, path, steps) for steps in _parse_path(path))


def _follow(record: object, path: str, steps: Steps) -> list[Any]:
    if isinstance(record, dict) and path in record:
        return [record[path]]
    found = [record]
    for step in steps:
        found = [each for value in found for each in _take_step(value, step)]
    return found


def _take_step(value: object, step: str | int | None) -> list[Any]:
    if isinstance(value, dict) and isinstance(step, str):
        return [value[step]] if step in value else []
    if isinstance(value, list) and not isinstance(step, str):
        return value if step is None else value[step : step + 1]
    return []


@cache
def _parse_path(path: str) -> tuple[Steps, ...]:
    """Return the alternatives of a path. Raises ValueError if it is not a path."""
    found = []
    for alternative in path.split("|"):
        text = alternative.strip()
        whole = text if text.startswith("$") else f"$.{text}" if not text.startswith("[") else f"${text}"
        if not _PATH.fullmatch(whole):
            raise ValueError(f"not a path such as data.items[0].text: {path!r}")
        steps = (key or (None if place == "*" else int(place)) for key, place in _STEP.findall(whole))
        found.append(tuple(steps))
    return tuple(found)


def _check_path(key: str, path: str, *, may_fan_out: bool = False) -> None:
    """Raise a ValueError that names the key if `path` is neither a valid path nor a constant."""
    if path.startswith("="):
        if not path[1:].strip():
            raise ValueError(f"{key} is an empty constant")
        return
    try:
        _parse_path(path)
    except ValueError as error:
        raise ValueError(f"{key} is {error}") from error
    if "[*]" in path and not may_fan_out:
        raise ValueError(f"{key} has [*], but takes one value: write [0]")


def _to_text(key: str, value: object) -> str:
    if isinstance(value, dict | list):
        raise ValueError(f"{key}: a {'list' if isinstance(value, list) else 'table'}, where a text is due")  # noqa: TRY004 - as for other wrong records
    return value if isinstance(value, str) else json.dumps(value)


def _is_pattern(text: str) -> bool:
    """Whether a text is a `strptime` pattern that includes the year."""
    try:
        return datetime.strptime(_EPOCH.strftime(text), text).year == _EPOCH.year
    except (ValueError, re.error):
        return False


@cache
def _zone(name: str | None) -> Any:  # noqa: ANN401 - datetime.UTC is no ZoneInfo
    return UTC if name is None else ZoneInfo(name)

"""memory.json or memory.jsonl of the Model Context Protocol's memory server: entities and relations.

https://github.com/modelcontextprotocol/servers, src/memory. The format has no times and no ids: an
observation is identified by its entity, its place there and its text.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from memlog.eventlog.events import Event, MemorySaved
from memlog.service.exchange.formats import ForeignData, Record, Skipped, Unreadable, Used, describe_error

SOURCES = ("memory.json", "memory.jsonl")
_SOURCE = "mcp-memory"
_TEXTS = ("text", "content", "observation", "value")
"""The keys that may hold the text of an observation that is an object."""

_TIMES = ("timestamp", "createdAt", "created_at")


_NEXT_VALUE = re.compile(r"\r?\n(?=[{\[])")
"""Matches a line break before a value. An indented line belongs to the value before it."""


_LIST = re.compile(r'"(?:entities|relations)"\s*:\s*\[')


class _FoundValue(NamedTuple):
    """A value in a file. where: the file and line; within a document, also the item's number.

    text: the value's JSON text. line: its first line, from 1.
    """

    where: str
    value: Any
    text: str = ""
    line: int = 1


def read(source: ForeignData) -> Iterator[Record]:
    """Yield a record for each entity and relation, whether one per line or in documents of many lines."""
    for path in source.find_files(*SOURCES):
        text = source.read_text(path)
        if isinstance(text, Unreadable):
            yield text
            continue
        decoded = _decode(text, source.display_name(path))
        values = [
            each
            for found in decoded
            for each in _split(found._replace(value=source.without_surrogates(found.value)))
        ]
        yield from _Graph(source, values).records()


def _decode(text: str, name: str) -> Iterator[_FoundValue]:
    """Yield the values in a text, whatever their separators; an `Unreadable` for text that is not JSON."""
    try:
        yield _FoundValue(f"{name}: line 1", json.loads(text), text)
    except (ValueError, RecursionError):
        line = 1
        for part in _NEXT_VALUE.split(text):
            yield from _decode_part(part, name, line)
            line += part.count("\n") + 1


def _decode_part(part: str, name: str, first: int) -> Iterator[_FoundValue]:
    """Yield the values in a part of a text. first: the number of its first line."""
    decode, at, line, counted = json.JSONDecoder().raw_decode, 0, first, 0
    while (at := _find_text(part, at)) < len(part):
        line, counted = line + part.count("\n", counted, at), at
        try:
            value, end = decode(part, at)
        except (ValueError, RecursionError) as error:
            line = first + error.lineno - 1 if isinstance(error, json.JSONDecodeError) else line
            yield _FoundValue("", Unreadable(f"{name}: line {line}", describe_error(error)))
            return
        yield _FoundValue(f"{name}: line {line}", value, part[at:end], line)
        at = end


def _find_text(part: str, at: int) -> int:
    """Return the position of the next value, skipping spaces and commas."""
    while at < len(part) and (part[at].isspace() or part[at] == ","):
        at += 1
    return at


def _split(found: _FoundValue) -> Iterator[_FoundValue]:
    """Yield the entities and relations in a value."""
    match found.value:
        case {"entities": list() | None as entities, "relations": list() | None as relations}:
            items = [*(entities or ()), *(relations or ())]
        case {"entities": list() as items} | {"relations": list() as items} | list(items):
            pass
        case _:
            yield found._replace(text="")
            return
    name = found.where.rpartition(": line ")[0]
    lines = [found.line + before for before in _count_lines_before_items(found.text)]
    lines = lines if len(lines) == len(items) else [found.line] * len(items)
    for number, (line, each) in enumerate(zip(lines, items, strict=True), 1):
        yield _FoundValue(f"{name}: line {line}, item {number}", each)


def _count_lines_before_items(text: str) -> Iterator[int]:
    """Yield the number of lines before each entity and relation in a document."""
    decode = json.JSONDecoder().raw_decode
    for start in [1] if text.startswith("[") else [match.end() for match in _LIST.finditer(text)]:
        at, counted, lines = _find_text(text, start), 0, 0
        while at < len(text) and text[at] != "]":
            lines, counted = lines + text.count("\n", counted, at), at
            yield lines
            _, at = decode(text, at)
            at = _find_text(text, at)


def _quote(name: str) -> str:
    """Escape slashes in a name that becomes part of an id: `app/1` is not the first observation of `app`."""
    return name.replace("%", "%25").replace("/", "%2F")


class _Graph:
    """The entities and relations of a file."""

    def __init__(self, source: ForeignData, values: list[_FoundValue]) -> None:
        self._source, self._values = source, values
        self._prefix = f"{_SOURCE}{source.suffix}"
        self._observed: dict[str, dict[str, str | None]] = {}
        """The observations from all records of each entity, with their times."""
        self._seen: set[str] = set()

    def records(self) -> Iterator[Record]:
        """Yield a record for each value; an entity's first record gets all its observations."""
        for each in self._values:
            if _is_entity(each.value):
                known = self._observed.setdefault(each.value["name"], {})
                for text, ts in self._observations_of(each.value):
                    known.setdefault(text, ts)
        for where, value, *_ in self._values:
            if isinstance(value, Unreadable):
                yield value
            elif _is_entity(value):
                yield self._convert_entity(value["name"], value.get("entityType"))
            elif _is_relation(value):
                yield self._convert_relation(value["from"], value["relationType"], value["to"])
            else:
                yield Unreadable(where, "neither an entity nor a relation")

    def _observations_of(self, entity: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
        given = entity.get("observations")
        for each in given if isinstance(given, list) else [given]:
            about = each if isinstance(each, dict) else {}
            told = next((about[name] for name in _TEXTS if name in about), each)
            text = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
            if told is not None and text.strip():
                ts = next((about[name] for name in _TIMES if name in about), None)
                yield text, self._source.parse_time(ts)

    def _convert_entity(self, name: str, kind: object) -> Record:
        if name in self._seen:
            return Skipped("mirror")
        self._seen.add(name)
        tag = kind if isinstance(kind, str) and kind.strip() else None
        own, former = f"{self._prefix}/{_quote(name)}", f"{self._prefix}/{name}"
        is_renamed = former if former != own else None
        observed = self._observed[name]
        if not observed:
            text = name if tag is None else f"{name} ({tag})"
            event = _memory_event(own, text, name, tag)
            return Used([event], is_telling=False, former=is_renamed)
        events: list[Event] = [
            _memory_event(f"{own}/{number}", f"{name}: {text}", name, tag, ts)
            for number, (text, ts) in enumerate(observed.items(), 1)
        ]
        return Used(events, group=name, former=is_renamed)

    def _convert_relation(self, *ids: str) -> Record:
        name = "/".join([self._prefix, *map(_quote, ids)])
        former = "/".join([self._prefix, *ids])
        if name in self._seen:
            return Skipped("mirror")
        self._seen.add(name)
        content = " ".join(ids)
        # Earlier versions stored spaces for underscores.
        stored = content.replace("_", " ")
        return Used(
            [_memory_event(name, content, ids[0], "relation")],
            is_telling=False,
            former=former if former != name else None,
            former_text=stored if stored != content else None,
        )


def _is_entity(value: Any) -> bool:  # noqa: ANN401 - whatever JSON holds
    return (
        isinstance(value, dict)
        and value.get("type", "entity") == "entity"
        and isinstance(value.get("name"), str)
        and bool(value["name"].strip())
        and ("entityType" in value or "observations" in value)
    )


def _is_relation(value: Any) -> bool:  # noqa: ANN401 - whatever JSON holds
    return (
        isinstance(value, dict)
        and value.get("type", "relation") == "relation"
        and all(isinstance(value.get(key), str) for key in ("from", "to", "relationType"))
    )


def _memory_event(name: str, content: str, topic: str, tag: str | None, ts: str | None = None) -> MemorySaved:
    tags = None if tag is None else [tag]
    return MemorySaved(
        id=name, ts=ts, memory_id=name, content=content, topic=topic, tags=tags, source=_SOURCE
    )

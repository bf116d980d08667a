"""memory.json or memory.jsonl of the Model Context Protocol's memory server: entities and relations.

https://github.com/modelcontextprotocol/servers, src/memory. The format has no times and no ids: an
observation is identified by its entity and its position in the entity.
"""

import json
from collections.abc import Iterator
from typing import Any

from memlog.eventlog.events import Event, MemorySaved
from memlog.service.exchange.formats import ForeignData, Record, Unreadable, Used

SOURCES = ("memory.json", "memory.jsonl")
_SOURCE = "mcp-memory"


def read(source: ForeignData) -> Iterator[Record]:
    """Yield the entities and relations of `memory.json` or `memory.jsonl`, which has one per line."""
    for path in source.find_files(*SOURCES):
        text = source.read_text(path)
        if isinstance(text, Unreadable):
            yield text
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield _parse_line(f"{_SOURCE}{source.suffix}", line, f"{source.display_name(path)}:{number}")


def _parse_line(prefix: str, line: str, where: str) -> Record:
    try:
        entity: dict[str, Any] = json.loads(line)
        if entity["type"] == "entity":
            return _entity_record(prefix, entity)
        if entity["type"] == "relation":
            ids = [entity["from"], entity["relationType"], entity["to"]]
            content = " ".join(ids).replace("_", " ")
            name = "/".join([prefix, *ids])
            return Used([_memory_event(name, content, entity["from"], "relation")], is_telling=False)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return Unreadable(where, f"not an entity or a relation in JSON: {error!r}")
    return Unreadable(where, "neither an entity nor a relation")


def _entity_record(prefix: str, entity: dict[str, Any]) -> Record:
    name, kind = entity["name"], entity["entityType"]
    observed = [text for text in entity["observations"] if text.strip()]
    if not observed:
        return Used([_memory_event(f"{prefix}/{name}", f"{name} ({kind})", name, kind)], is_telling=False)
    events: list[Event] = [
        _memory_event(f"{prefix}/{name}/{number}", f"{name}: {text}", name, kind)
        for number, text in enumerate(observed, 1)
    ]
    return Used(events, group=name)


def _memory_event(name: str, content: str, topic: str, tag: str) -> MemorySaved:
    return MemorySaved(id=name, memory_id=name, content=content, topic=topic, tags=[tag], source=_SOURCE)

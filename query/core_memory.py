"""The core memory: what an agent always sees."""

import json

import msgspec

from memlog.projector import core_memory_file
from memlog.projector.sqlite import Connection


class CoreMemory(msgspec.Struct):
    """The values of the user and of the agent, by key."""

    user: dict[str, str]
    agent: dict[str, str]


def core_memory(db: Connection) -> CoreMemory:
    """The core memory as the log leaves it."""
    return CoreMemory(**core_memory_file.core_memory(db))


class CoreValueSource(msgspec.Struct, frozen=True):
    """A key of the core memory, and who set it; without a value it was removed."""

    value: str | None = None
    source: str | None = None


def core_sources(db: Connection, section: str) -> dict[str, CoreValueSource]:
    """The keys of a section, also those that were removed."""
    removed = db.execute("SELECT thing FROM tombstones WHERE stream = 'core' ORDER BY thing").fetchall()
    things = (json.loads(thing) for (thing,) in removed)
    rows = db.execute("SELECT key, value, source FROM core_memory WHERE section = ?", (section,))
    return {key: CoreValueSource() for part, key in things if part == section} | {
        key: CoreValueSource(value, source) for key, value, source in rows
    }

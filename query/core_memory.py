"""The core memory: what an agent always sees."""

import msgspec

from memlog.projector import core_memory_file
from memlog.projector.sqlite import Connection
from memlog.query.event_index import LinePosition
from memlog.query.rows import POSITION, record


class CoreMemory(msgspec.Struct):
    """The values of the user and of the agent, by key."""

    user: dict[str, str]
    agent: dict[str, str]


def core_memory(db: Connection) -> CoreMemory:
    """The core memory as the log leaves it."""
    return CoreMemory(**core_memory_file.core_memory(db))


class Value(msgspec.Struct, frozen=True):
    """One value of the core memory, and the event that set it."""

    section: str
    key: str
    value: str
    event_id: str
    position: LinePosition


def core_values(db: Connection) -> list[Value]:
    """Every value with its event: the user's, then the agent's, keys in order."""
    rows = db.execute(
        f"SELECT c.section, c.key, c.value, c.event_id, {POSITION}"
        " FROM core_memory c JOIN events e ON e.stream = c.stream AND e.id = c.event_id"
        " ORDER BY c.section DESC, c.key"
    )
    return [record(Value, row) for row in rows]

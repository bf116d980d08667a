"""The core memory: what an agent always sees."""

import msgspec

from memlog.projector.sqlite import Connection


class CoreMemory(msgspec.Struct):
    """Its values by key, of the user and of the agent."""

    user: dict[str, str]
    agent: dict[str, str]


def core_memory(db: Connection) -> CoreMemory:
    """The core memory as the log leaves it."""
    rows = db.execute(
        "SELECT section, key, value FROM core_memory WHERE value IS NOT NULL ORDER BY section, key"
    ).fetchall()
    return CoreMemory(
        user={key: value for section, key, value in rows if section == "user"},
        agent={key: value for section, key, value in rows if section == "agent"},
    )

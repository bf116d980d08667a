"""The core memory: what an agent always sees."""

import msgspec

from memlog.projector import core_view
from memlog.projector.sqlite import Connection


class CoreMemory(msgspec.Struct):
    """Its values by key, of the user and of the agent."""

    user: dict[str, str]
    agent: dict[str, str]


def core_memory(db: Connection) -> CoreMemory:
    """The core memory as the log leaves it."""
    return CoreMemory(**core_view.core_memory(db))

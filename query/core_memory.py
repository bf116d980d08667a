"""The core memory: what an agent always sees."""

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

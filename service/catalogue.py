"""All operations of a store by name, for adapters and for the pages that describe them."""

from functools import cache
from typing import Any

from memlog.service.conversations import Conversations
from memlog.service.core.facade import Core
from memlog.service.daily_events import DailyEvents
from memlog.service.documents.facade import Documents
from memlog.service.documents.workspaces import Workspaces
from memlog.service.erasure.facade import Erasure
from memlog.service.facts.facade import Facts
from memlog.service.maintenance.facade import Maintenance
from memlog.service.memories.facade import Memories
from memlog.service.operations import Operation
from memlog.service.store import Store

GROUPS: dict[str, type] = {
    "": Store,
    "conversations": Conversations,
    "memories": Memories,
    "core": Core,
    "facts": Facts,
    "daily": DailyEvents,
    "documents": Documents,
    "workspaces": Workspaces,
    "erasure": Erasure,
    "maintenance": Maintenance,
}
"""The classes of the groups of a store, by the attribute that holds the group; the store itself first."""


@cache
def operations() -> dict[str, Operation[Any, Any, Any, Any]]:
    """Every operation by its name, such as `search` or `memories.save`."""
    return {
        f"{group}.{name}".lstrip("."): member
        for group, kind in GROUPS.items()
        for name, member in vars(kind).items()
        if isinstance(member, Operation)
    }

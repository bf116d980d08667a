"""All operations of a store by name, for adapters and for the pages that describe them."""

from functools import cache
from typing import Any

from memlog.service.operations import Operation
from memlog.service.store import LazyGroup, Store

GROUPS: dict[str, type] = {
    "": Store,
    **{name: member.kind for name, member in vars(Store).items() if isinstance(member, LazyGroup)},
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

"""A store's operations as coroutines: `AsyncMemories` for `Memories`, and so on.

The classes are made from the operation groups. `make snapshots` writes their types, for type checkers
and editors, to async_operations.pyi.
"""

import inspect
from typing import Any

from memlog.service.adapters.awaiting import Awaitable, Watching, awaited_method
from memlog.service.engine.operation import PLACES, Operation, import_group_named

NOT_AWAITED = ("close", "is_of_another_copy")
"""Methods of operation groups that are neither operations nor meant for programs."""


def awaited_methods(kind: type[Any]) -> dict[str, Any]:
    """Return the methods of a group that have a coroutine, keyed by name."""
    return {
        name: member
        for name, member in vars(kind).items()
        if (isinstance(member, Operation) and not member.is_endless)
        or (inspect.isfunction(member) and name[0] != "_" and name not in NOT_AWAITED)
    }


for _group in PLACES:
    _kind = import_group_named(_group)
    _name = f"Async{_kind.__name__}" if _group else "AsyncOperations"
    globals()[_name] = type(
        _name,
        (Watching if _group == "maintenance" else Awaitable,),
        {name: awaited_method(member) for name, member in awaited_methods(_kind).items()}
        | {"__doc__": f"The methods of `{_kind.__name__}` as coroutines.", "__module__": __name__},
    )

"""Takes a merge of memories back."""

from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import ChangeUndone
from memlog.query.memories import Memory, memory
from memlog.query.merges import last_merge, merged_again_into
from memlog.service.memories.save import Append
from memlog.service.missing import not_found
from memlog.service.read_model import Deciding


def unmerge(append: Append, decide: Deciding, memory_id: str) -> list[Memory]:
    """Take the newest merge into a memory back, and return what it was made of. Raises as
    `Memories.unmerge`."""
    merge, into, known = decide(
        lambda db: (last_merge(db, memory_id), merged_again_into(db, memory_id), memory(db, memory_id))
    )
    if into is not None:
        raise BadInput(
            f"the memory {memory_id!r} was merged into {into!r} since",
            hint="take that merge back first: store.memories.unmerge()",
        )
    if merge is None and known is None:
        raise not_found("memory_not_found", memory_id)
    if merge is None:
        raise BadInput(
            f"the memory {memory_id!r} is no merge of others, or the merge was taken back before",
            hint="store.memories.history() shows what made it",
        )
    append([ChangeUndone(event_ids=merge.event_ids)])
    return decide(lambda db: [found for each in merge.memory_ids if (found := memory(db, each)) is not None])

"""What a context gave, named so that it can be found again, and without a word of what it says."""

import msgspec

from memlog.eventlog.event_fields import Text


class GivenEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry of a context.

    id: of a memory its memory_id, of all else that of its event. stream: of that event; None for a memory.
    score: of the hit, from 0 to 1; None for what was not searched for.
    is_best: whether it is one of the two best of what was found for the message.
    """

    part: Text
    id: Text
    stream: Text | None = None
    score: float | None = None
    is_best: bool = False

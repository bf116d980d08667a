"""The event that takes others out of all reads."""

from typing import Annotated

import msgspec

from memlog.eventlog.envelope import Event
from memlog.eventlog.event_fields import MAX_TARGETS, Id


class Redacted(Event, tag="redacted"):
    """A person has redacted events. Written to their stream; no line with a target's id in that stream
    is projected any more, earlier or later.

    target_id, target_ids: one id or several; a line has one of the two.
    stream: that of the targets; needed only for appending.
    """

    target_id: Id | None = None
    target_ids: Annotated[list[Id], msgspec.Meta(max_length=MAX_TARGETS)] = []
    reason: str | None = None
    stream: str | None = None

    def __post_init__(self) -> None:
        if (self.target_id is None) == (not self.target_ids):
            raise ValueError("name one event by target_id, or several by target_ids")

    @property
    def targets(self) -> list[str]:
        """All target ids."""
        return self.target_ids if self.target_id is None else [self.target_id]

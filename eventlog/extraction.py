"""Where a language model distilled an event from, and what it and a job decided."""

from typing import Annotated, Literal

import msgspec

from memlog.eventlog.event_fields import Count

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


class Extraction(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a language model distilled an event from.

    id: of the event that closes the extraction, such as `memories_extracted`; without it the event does not
        count. A summary closes itself.
    model: its name. prompt: the id of the prompt. message_ids: the messages that it was distilled from.
    memory_ids: the memories that it was merged from.
    chat_id: `<channel>:<chat_id>`, theirs.
    """

    id: Name
    model: Name
    prompt: Name
    message_ids: list[Name] = []
    memory_ids: list[Name] = []
    chat_id: str | None = None


class MergeDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """What memories that mean the same have to do with each other.

    relation: `same`: they say the same; `update`: they say more of one thing; `contradiction`: not all can
        hold; `different`: a person says that all do; `accepted`: a person takes the text that was proposed.
    memory_ids: of them, the oldest first. event_ids: of the events with the contents that were compared.
    memory_id: of the one that stands for all; None where a person is to decide, or all hold.
    proposal_id: of the memory with the text that the model proposes, where a person is to decide.
    """

    relation: Literal["same", "update", "contradiction", "different", "accepted"]
    memory_ids: list[Name]
    event_ids: list[Name]
    memory_id: Name | None = None
    proposal_id: Name | None = None


class JobStep(msgspec.Struct, frozen=True):
    """A step of a job: what became of it, and how many things it changed.

    why: it did nothing, or what it leaves to do.
    """

    name: Name
    outcome: Literal["done", "skipped", "failed"]
    count: Count = 0
    why: str | None = None

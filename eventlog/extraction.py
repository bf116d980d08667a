"""Where a language model distilled an event from."""

from typing import Annotated

import msgspec

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


class Extraction(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a language model distilled an event from.

    id: of the `memories_extracted`, or the `daily_events_compressed`, that closes the extraction; without it
        the event does not count.
    model: its name. prompt: the id of the prompt. message_ids: the messages that it was distilled from.
    chat_id: `<channel>:<chat_id>`, theirs.
    """

    id: Name
    model: Name
    prompt: Name
    message_ids: list[Name] = []
    chat_id: str | None = None

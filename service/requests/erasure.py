"""Requests for erasure: `store.erasure`."""

from typing import Annotated

from msgspec import Meta

from memlog.eventlog.errors import BadInput
from memlog.query.request import ChatField, OfText, Request
from memlog.service.requests.scope import ProgressField, Tried


class Forget(Tried, frozen=True):
    """Erase events: one by its id, or all of a chat, of a memory, or that match a pattern.

    Redactions are appended and synced, whatever the durability. The events are gone from the read model at
    once, and no line with their ids counts again, wherever it is and whenever it arrives. Their bytes stay in
    the log until a scrub overwrites them. The id of a line without an event is its position, as the
    quarantine shows it: 2026-02-24.jsonl:1042.

    Raises:
        BadInput: not exactly one of id, chat, memory and match is given; several streams have the id; the
            pattern is invalid.
        NotFound: nothing with this name was ever in the store.
        Busy, LogError: as `Store.append`. Some events may be forgotten; it is safe to try again.
    """

    event_id: Annotated[str | None, Meta(title="ID"), "The event."] = None
    stream: Annotated[str | None, "The stream of the event, where several streams have its id."] = None
    chat: Annotated[
        ChatField | None,
        "All of this conversation: its streams, its facts, the memories that were ever its own.",
    ] = None
    memory: Annotated[str | None, Meta(title="ID"), "Every event that touched this memory."] = None
    match: Annotated[
        str | None,
        Meta(title="REGEX"),
        "Every event with a text that this pattern matches (Python's re; at most 5 s an event).",
    ] = None
    reason: Annotated[
        str | None, "Why, for readers of the log. It stays there for ever; keys in it are masked."
    ] = None

    def __post_init__(self) -> None:
        """Refuse what does not name one thing."""
        super().__post_init__()
        if sum(each is not None for each in (self.event_id, self.chat, self.memory, self.match)) != 1:
            raise BadInput(
                "name exactly one of ID, chat, memory and match", hint="they select the events to erase"
            )
        if self.stream is not None and self.event_id is None:
            raise BadInput(
                "a stream is named without an ID", hint="stream says which event of this ID is meant"
            )


class Scrub(Tried, frozen=True, kw_only=True):
    """Overwrite in the log the bytes of all forgotten events, and build a new read model without them.

    Offsets, files and the number of lines stay as they are. Other read models are removed, and the cache
    keeps no free pages. Killed, or stopped by an error, it finishes when it is called again.

    Raises:
        Busy: another process held a segment, the seals or the read model for too long.
        LogError, DatabaseError: a file could not be written. Forgotten bytes may still be in it.
    """

    progress: ProgressField = None


class Prove(OfText, frozen=True):
    """Search every byte of the store for `text`, and list its places.

    Raises:
        BadInput: the text is empty. LogError: a file cannot be read.
    """


class FindSecrets(Request, frozen=True):
    """List the places of the log that look like a key: its kind, and where; never the key itself.

    Forgotten events are included until a scrub overwrites them.
    """

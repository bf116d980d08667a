"""Requests for maintenance and erasure: `store.maintenance`, `store.erasure`."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Local
from memlog.projector.embedding import EMBED_BATCH
from memlog.query.request import ChatField, OfText, Request
from memlog.service.engine.requests import ProgressField, Tried

if TYPE_CHECKING:
    from memlog.service.upkeep.worker import WatchStep
else:  # to import it would take longer than a command that only shows its help
    WatchStep = Any


class Replay(Request, frozen=True, kw_only=True):
    """Replay the log into the read model, then compute missing embeddings.

    Interrupted at any moment, the next run goes on from there. Reads catch up by themselves; this is for long
    logs, for rebuilding, and for computing all embeddings.

    Raises:
        Busy: another projector held the lock for too long.
        DatabaseError: the read model cannot be written.
    """

    from_scratch: Annotated[
        bool, "Rebuild everything from the log beside the live read model, then swap it in."
    ] = False
    embed: Annotated[bool, "Compute missing embeddings; without them text is searchable at once."] = True
    progress: ProgressField = None


class Embed(Request, frozen=True, kw_only=True):
    """Compute missing embeddings, after catching up with the log.

    Interrupted at any moment, the next run goes on from there; without work it does nothing.

    Raises:
        EmbeddingError: no model works here, or it failed.
        Busy, DatabaseError: as `Replay`.
    """

    batch: Annotated[int, Meta(ge=1, le=4096), "Passages that are computed between two writes."] = EMBED_BATCH
    progress: ProgressField = None


class Watch(Request, frozen=True, kw_only=True):
    """Keep the read model up to the log and documents up to their files, and compute embeddings.

    An event that any process appends is in the read model within 250 ms; a changed file of a folder of
    documents is found within a second. Embeddings are computed behind that, in the background. Jobs run when
    they are due: decay, merges, and what a language model distils. Errors go to `notify` once, and are
    retried. One process watches a store at a time.

    Raises:
        Busy: another process watches this store.
        NotFound: with `once`, there is no store.
        LogError: the store cannot be made, or written; with `once`, also as `Replay`.
        DatabaseError: with `once`, as `Replay`.
    """

    once: Annotated[bool, "Catch up once, then end."] = False
    stop: Annotated[
        threading.Event | None,
        Local(is_callback=False),
        "Ends the watch when another thread sets it; set when it returns.",
    ] = None
    tell: Annotated[
        Callable[[WatchStep], None] | None,
        Local(),
        "Called with each step that did something, and the first.",
    ] = None
    progress: ProgressField = None


class Verify(Request, frozen=True, kw_only=True):
    """Check the log and its seals, the cache, and the read model against a replay. Changes nothing.

    The read model is compared as far as it has come, with a replay in a nameless file below model/. A finding
    is checked again while no scrub runs.

    Raises:
        LogError: the log cannot be read.
    """

    progress: ProgressField = None


class Examine(Request, frozen=True, kw_only=True):
    """Examine the store and this machine, and tell what to do about each problem.

    Checks SQLite, the vector extension, the model, the file system, space, permissions, the read model, the
    cache, and the log's ends, seals, days and unread files; what cannot be read is a problem. The log never
    changes.
    """

    fix: Annotated[bool, "Rebuild damaged read models and caches, and take permissions from others."] = False


class Digest(Request, frozen=True, kw_only=True):
    """Compute a digest of the read model: sha256 over every row, in hex, after catching up with the log.

    Read models of one log have the same digest on every machine, whatever their history.
    """

    content: Annotated[
        bool, "Leave out positions and append times: equal for logs with the same content."
    ] = False


class ShowStatus(Request, frozen=True):
    """Show the state of the store and the read model, and what works here. Does not catch up."""


class CountStats(Request, frozen=True):
    """Count events, messages, memories, vectors and bytes, and how far the read model was behind."""


class ListQuarantine(Request, frozen=True):
    """List the lines of the log that could not be replayed, with position and reason.

    Their bytes stay in the log as they are.
    """


class SealLog(Request, frozen=True, kw_only=True):
    """Close and seal every segment of the log, including the newest of each stream.

    A seal holds the length of a segment and a hash of its bytes, so that `verify` finds any change. Segments
    with a successor are sealed by themselves; this seals the rest, before a backup for example. The next
    append begins a new segment.
    """

    accept_loss: Annotated[
        bool, "Accept that missing or changed bytes are lost: take what is there now for the whole."
    ] = False


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
        str | None, "Why, for readers of the log. It stays there permanently; keys in it are masked."
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

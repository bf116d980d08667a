"""Forgets events: appends a redaction for each, and takes them out of the read model and the cache.

The bytes stay in the log until they are overwritten (`memlog.service.erasure.scrub`).
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterator
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from memlog.eventlog.acknowledgements import OnStored
from memlog.eventlog.decode import BOM, ENVELOPE, envelope_of
from memlog.eventlog.errors import BadInput, Busy, NotFound
from memlog.eventlog.events import Id, Redacted, tag_of
from memlog.eventlog.quarantine import BadLine
from memlog.eventlog.reader import Key, LogEntry, in_log_order, redacted_keys, segments_about
from memlog.eventlog.secrets import masked, texts_within
from memlog.eventlog.streams import Segment, is_stream
from memlog.eventlog.writer import Log
from memlog.projector.embedding.cache import keep_only
from memlog.projector.passages import index
from memlog.projector.sqlite import Connection
from memlog.query import event_index
from memlog.service.erasure.untrusted_pattern import BadPattern, searching
from memlog.service.read_model import ReadModel

_WORDS_LENGTH = 60
_offset = attrgetter("offset")
_OF_NEWER = ("unknown_type", "newer_version")
_NAMES = ("channel", "chat_id", "role", "kind")
"""Members besides the envelope that say where an event belongs, not what was said."""

_SAID_FIRST = ("content", "value", "summary", "title")
"""The members that a person knows an event by."""


class DoomedLine(msgspec.Struct, frozen=True, gc=False):
    """A line of the log that is forgotten.

    id: of its event; of a line without an event its position, `2026-02-24.jsonl:1042`.
    offset, line: where it begins in its segment, in bytes, and its number from 1.
    type: of its event, or the reason why it holds none. words: the beginning of its text.
    """

    id: str
    stream: str
    segment: str
    offset: int
    line: int
    type: str
    words: str

    @property
    def key(self) -> Key:
        """The key by which a redaction names it."""
        return self.stream, self.id


class ForgetReport(msgspec.Struct, kw_only=True):
    """The lines that were forgotten, or would be.

    lines: every line of the log, including duplicates and conflicts of an event.
    redacted: how many redactions were appended; 0 for a dry run.
    already: how many of the events were redacted before.
    vectors: how many vectors were removed from the cache, since no passage has their text any more.
    unreachable: lines in folders that are not streams, where no redaction can be appended: `place/file:line`.
    """

    lines: list[DoomedLine]
    redacted: int = 0
    already: int = 0
    vectors: int = 0
    unreachable: list[str] = []


class _Selection(NamedTuple):
    """The lines to forget, in which segments.

    whole: streams of which `wants` every line.
    """

    segments: list[Segment]
    wants: Callable[[LogEntry], bool]
    names: set[Key]
    whole: Collection[str] = ()


class Forgetting:
    """Forgets events of a store.

    log: appends redactions; it syncs, whatever the store's setting is.
    """

    def __init__(
        self,
        log: Log,
        read_model: ReadModel,
        reason: str | None,
        confirm: Callable[[ForgetReport], bool],
    ) -> None:
        self._log = log
        self._read_model = read_model
        # A key in it could never be erased.
        self._reason = None if reason is None else masked(reason)
        self._confirm = confirm

    def event(self, event_id: str, stream: str | None) -> ForgetReport:
        """Forget one event: every line of its stream with its id, including torn lines."""
        return self._forget(lambda db: self._asked_by_id(db, event_id, stream))

    def memory(self, memory_id: str) -> ForgetReport:
        """Forget every event that touched a memory."""

        def asked(db: Connection) -> _Selection:
            events = event_index.events_of(db, [memory_id])
            if not events:
                hint = "memlog memory list"
                raise NotFound(f"no memory {memory_id!r}", hint=hint, code="memory_not_found")
            return _Selection(self._segments({stream for stream, _ in events}), lambda _: False, events)

        return self._forget(asked)

    def chat(self, chat: tuple[str, str]) -> ForgetReport:
        """Forget a chat's streams, its facts, and the memories that were ever its own."""
        return self._forget(lambda db: self._asked_by_chat(db, chat))

    def match(self, pattern: str) -> ForgetReport:
        """Forget every event with a text that `pattern` matches."""
        try:
            with searching(pattern) as finds:
                if finds([""]):
                    raise BadInput(
                        f"the pattern {pattern!r} matches the empty text, and so every event",
                        hint="name what is to be forgotten; to erase all, delete the store's folder",
                    )
                if self._reason is not None and finds([self._reason]):
                    raise BadInput(
                        "the reason says what is to be forgotten, and stays in the log",
                        hint="word it otherwise",
                    )
                asked = _Selection(
                    segments_about(self._log.path), lambda entry: finds(texts_of(entry)), set()
                )
                return self._forget(lambda _: asked)
        except BadPattern as error:
            hint = "https://docs.python.org/3/library/re.html; no repeat within a repeat, as in (a+)+"
            raise BadInput(f"the pattern {pattern!r} cannot be used: {error}", hint=hint) from error

    def _forget(self, asked: Callable[[Connection], _Selection]) -> ForgetReport:
        done, keys = self._read_model.decide(lambda db: _found(db, asked(db)))
        if not self._confirm(done):
            return done
        self._log.append_redactions(keys, self._reason)
        done.redacted = len(keys)
        try:
            done.vectors = self._read_model.decide(self._without_vectors)
        except Busy as error:
            raise Busy(
                f"{error.message}: {len(keys)} events are redacted, but still in the read model",
                hint="the next read takes them out; forget them again to see it done",
            ) from error
        return done

    def _without_vectors(self, db: Connection) -> int:
        return keep_only(self._read_model.path, index.texts(db))

    def _asked_by_id(self, db: Connection, event_id: str, stream: str | None) -> _Selection:
        known = event_index.streams_of(db, event_id)
        streams = [each for each in known if stream in (None, each)]
        if len(streams) > 1:
            message = f"{event_id} is in several streams: {', '.join(streams)}"
            raise BadInput(message, hint="name one: --stream STREAM")
        # A line that was cut short holds no event, and may be all that was ever written of one.
        within = streams or [
            each for each in event_index.streams_with_bad_lines(db) if stream in (None, each)
        ]
        wanted = _Selection(
            self._segments(within),
            lambda entry: entry.id == event_id or _mentions(entry, event_id),
            {(each, event_id) for each in streams},
        )
        if not streams and not any(map(wanted.wants, in_log_order(wanted.segments, tails=True))):
            where = "" if stream is None else f" in {stream}"
            hint = "memlog query prints ids"
            raise NotFound(f"no event {event_id!r}{where}", hint=hint, code="event_not_found")
        return wanted

    def _asked_by_chat(self, db: Connection, chat: tuple[str, str]) -> _Selection:
        own = segments_about(self._log.path, chat=chat)
        others = self._segments(("memory", "facts"))
        name = ":".join(chat)
        of_chat = {entry.key for entry in in_log_order(others) if _chat_of(entry) == name}
        if not own and not of_chat:
            raise NotFound(
                f"no chat {name}", hint="memlog sessions lists the chats", code="session_not_found"
            )
        streams = {segment.stream for segment in own}
        touched = event_index.events_of(db, event_index.memories_of(db, of_chat))
        return _Selection(
            [*own, *others], lambda entry: entry.segment.stream in streams, of_chat | touched, streams
        )

    def _segments(self, streams: Container[str]) -> list[Segment]:
        return [segment for segment in segments_about(self._log.path) if segment.stream in streams]


def _found(db: Connection, asked: _Selection) -> tuple[ForgetReport, list[Key]]:
    """What goes, and what has yet to be redacted for it."""
    keys, mixed = dict.fromkeys(sorted(asked.names)), set()
    wanted: dict[Segment, list[DoomedLine]] = {segment: [] for segment in asked.segments}
    shown_of = {stream: _shown_messages(db, stream) for stream in asked.whole}
    for segment in asked.segments:
        shown = shown_of.get(segment.stream, {}).get(segment.name.filename, [])
        wanted[segment] += shown
        for entry in _forgettable(segment, leave_out={line.offset for line in shown}):
            if asked.wants(entry):
                keys.update(dict.fromkeys(_other_keys(entry)))
                wanted[segment].append(_doomed(entry))
            else:
                mixed.add(segment)
        keys.update(dict.fromkeys(line.key for line in wanted[segment]))
    before = redacted_keys(asked.segments)
    streams = set(filter(is_stream, {stream for stream, _ in keys}))
    # In the order of the log: to sort them takes as long as to write them.
    new = {key: None for key in keys if key[0] in streams and key not in before}
    done = ForgetReport(lines=[], already=len(keys.keys() & before))
    for segment, lines in wanted.items():
        if not is_stream(segment.stream):
            done.unreachable += [entry.position for entry in _forgettable(segment) if entry.key in keys]
        elif segment in mixed:
            # Read again: lines that are not asked for may have the same id.
            done.lines += [_doomed(entry) for entry in _forgettable(segment) if entry.key in new]
        else:
            done.lines += sorted((line for line in lines if line.key in new), key=_offset)
    return done, list(new)


def _shown_messages(db: Connection, stream: str) -> dict[str, list[DoomedLine]]:
    """By segment the messages that the caught-up read model shows of a stream: to check their lines again
    takes half as long as projecting them."""
    found: defaultdict[str, list[DoomedLine]] = defaultdict(list)
    for event_id, segment, offset, number, kind, content in event_index.messages_in(db, stream):
        line = DoomedLine(event_id, stream, segment, offset, number, kind, _beginning(content))
        found[segment].append(line)
    return found


def _forgettable(segment: Segment, leave_out: Container[int] = ()) -> Iterator[LogEntry]:
    entries = in_log_order([segment], tails=True, leave_out=leave_out)
    return (entry for entry in entries if not isinstance(entry.event, Redacted))


def _other_keys(entry: LogEntry) -> list[Key]:
    """Keys of a line besides its own: the id of an event that only a newer memlog understands."""
    if isinstance(entry.event, BadLine) and entry.event.reason in _OF_NEWER:
        with suppress(KeyError, msgspec.ValidationError):
            return [(entry.segment.stream, msgspec.convert(_members(entry)["id"], Id))]
    return []


def _doomed(entry: LogEntry) -> DoomedLine:
    return DoomedLine(
        id=entry.id,
        stream=entry.segment.stream,
        segment=entry.segment.name.filename,
        offset=entry.line.offset,
        line=entry.line.number,
        type=entry.event.reason if isinstance(entry.event, BadLine) else tag_of(entry.event),
        words=_first_words(entry),
    )


def _first_words(entry: LogEntry) -> str:
    text = getattr(entry.event, "content", "")
    if not text:
        members = _members(entry)
        said = next((members[name] for name in _SAID_FIRST if isinstance(members.get(name), str)), None)
        text = next(texts_of(entry), "") if said is None else said
    return _beginning(text)


def _beginning(text: str) -> str:
    words = " ".join(text[: 4 * _WORDS_LENGTH].split())
    return words if len(words) <= _WORDS_LENGTH else f"{words[: _WORDS_LENGTH - 1]}…"


def texts_of(entry: LogEntry) -> Iterator[str]:
    """Every text in a line, at any depth, except those that identify or classify it.

    Of a line that holds no event also the whole of it as it stands; of one that was too long to be loaded
    nothing.
    """
    envelope = ENVELOPE if isinstance(entry.event, BadLine) else envelope_of(entry.event)
    names = (*_NAMES, *envelope)
    yield from texts_within(value for name, value in _members(entry).items() if name not in names)
    if isinstance(entry.event, BadLine):
        yield (entry.line.data or b"").decode(errors="replace")


def _members(entry: LogEntry) -> dict[str, Any]:
    """The members that a line has, those that memlog does not know too; none where it is no object."""
    try:
        members = msgspec.json.decode((entry.line.data or b"").removeprefix(BOM))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _mentions(entry: LogEntry, event_id: str) -> bool:
    """Whether a line that holds no event has, for all that can be read of it, this id."""
    named = re.escape(msgspec.json.encode(event_id))
    is_bad = isinstance(entry.event, BadLine)
    return is_bad and re.search(rb'"id"\s*:\s*' + named, entry.line.data or b"") is not None


def _chat_of(entry: LogEntry) -> str | None:
    return getattr(entry.event, "chat_id", None)


def log_that_syncs(
    store: Path, lock_timeout: float, *, redact: bool, on_stored: OnStored | None = None
) -> Log:
    """A log that syncs redactions: forgotten events must not come back after a power cut."""
    return Log(store, durability="fsync", lock_timeout=lock_timeout, redact=redact, on_stored=on_stored)

"""Forgets events: appends a redaction for each, and removes them from the read model and the cache.

The bytes stay in the log until `scrub_store` overwrites them.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from memlog.eventlog.codec.decode import ENVELOPE, list_envelope_members, strip_bom
from memlog.eventlog.errors import BadInput, Busy, LogError, NotFound
from memlog.eventlog.events import ContextGiven, Redacted, type_name_of_event
from memlog.eventlog.fields import Chat, Id
from memlog.eventlog.files.locks import holding_lock
from memlog.eventlog.integrity import scrub
from memlog.eventlog.integrity.copy_identity import Writer
from memlog.eventlog.integrity.scrub import Erased
from memlog.eventlog.integrity.seal_file import SealFiles
from memlog.eventlog.log import log_format
from memlog.eventlog.log.layout import SCRUB_LOCK
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.reader import (
    Key,
    LogEntry,
    read_entries_in_log_order,
    read_redacted_keys,
    select_segments,
)
from memlog.eventlog.log.streams import Segment, is_stream_name
from memlog.eventlog.log.watermarks import Watermarks
from memlog.eventlog.log.writer import Log
from memlog.eventlog.secrets.detection import list_texts_within, mask_keys
from memlog.eventlog.text import normalise_to_nfc
from memlog.projector import checkpoints
from memlog.projector.catchup import Progress
from memlog.projector.embedding.cache import remove_unlisted_vectors
from memlog.projector.passages import index
from memlog.projector.sqlite import Connection
from memlog.query import event_index
from memlog.service.documents.indexing import remove_all_records
from memlog.service.engine.read_model import ReadModel
from memlog.service.engine.sandbox import BoundedProcess, ReaderFailed, SearchTexts


class DoomedLine(msgspec.Struct, frozen=True, gc=False):
    """A log line to forget.

    id: the id of its event, or the position of a line that is not an event, such as `2026-02-24.jsonl:1042`.
    offset, line: its byte offset in its segment, and its number from 1.
    type: the type of its event, or the reason why it is not an event. words: the beginning of its text.
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
        """The key of the line in redactions."""
        return self.stream, self.id


class ForgetReport(msgspec.Struct, kw_only=True):
    """The lines that were forgotten or, in a dry run, would be.

    lines: all affected lines of the log, including duplicates and conflicts of an event.
    redacted: how many redactions were appended; 0 in a dry run.
    already: how many of the events had already been redacted.
    vectors: how many orphaned vectors were removed from the cache.
    unreachable: lines in folders that are not streams, where a redaction has no effect: `folder/file:line`.
    """

    lines: list[DoomedLine]
    redacted: int = 0
    already: int = 0
    vectors: int = 0
    unreachable: list[str] = []
    dry_run: bool = False


class ScrubReport(msgspec.Struct, kw_only=True):
    """The bytes that were overwritten or, in a dry run, would be.

    lines, bytes, segments: how many contain forgotten events.
    done: whether they were overwritten. generation: the file of the new read model.
    vectors: how many vectors were removed from the cache.
    notes: human-readable remarks.
    """

    lines: int
    bytes: int
    segments: int
    done: bool = False
    generation: str | None = None
    vectors: int = 0
    notes: list[str] = []


PATTERN_SECONDS = 5
"""Seconds of CPU time to search one event. A pattern without nested repeats takes 0.2 s for the largest
event, 16 MiB."""

_WORDS_LENGTH = 60
_offset = attrgetter("offset")
_FROM_NEWER = ("unknown_type", "newer_version")
_NAMES = ("channel", "chat_id", "role", "kind")
"""Members that classify an event, besides the envelope; all others may contain text."""

_KNOWN_BY = ("content", "value", "summary", "title")
"""The members by which a person recognises an event."""


class _Selection(NamedTuple):
    """The lines to forget.

    segments: the segments to read. wants: returns whether to forget a line in them. names: keys of further
    events. whole: streams in which `wants` selects every line.
    """

    segments: list[Segment]
    wants: Callable[[LogEntry], bool]
    names: set[Key]
    whole: Collection[str] = ()


class Target(NamedTuple):
    """What to forget: an event, a chat, a memory, or all events that match a pattern."""

    event_id: str | None
    stream: str | None
    chat: Chat | None
    memory: str | None
    match: str | None


def forget_events(
    log: Log, read_model: ReadModel, target: Target, *, reason: str | None, dry_run: bool
) -> ForgetReport:
    """Forget events; see `Erasure.forget`.

    log: appends redactions with fsync, whatever the store's setting.
    """
    if target.match is None:
        return _forget_selected_lines(
            log, read_model, lambda db: _select_target(db, log.path, target), reason, dry_run
        )
    try:
        with _pattern_matcher(target.match) as finds:
            if finds([""]):
                raise BadInput(
                    f"the pattern {target.match!r} matches the empty string, and so every event",
                    hint="use a narrower pattern; to erase everything, delete the store's folder",
                )
            if reason is not None and finds([reason]):
                raise BadInput(
                    "the reason matches the pattern and would stay in the log", hint="reword the reason"
                )
            segments = select_segments(log.path)
            selection = _Selection(segments, lambda entry: finds(list_texts_of_line(entry)), set())
            return _forget_selected_lines(log, read_model, lambda _: selection, reason, dry_run)
    except ReaderFailed as error:
        hint = "see https://docs.python.org/3/library/re.html; avoid nested repeats like (a+)+"
        raise BadInput(f"the pattern {target.match!r} cannot be used: {error}", hint=hint) from error


def forget_imported_events(log: Log, read_model: ReadModel, events: set[Key]) -> ForgetReport:
    """Forget events by their keys; see `forget_events`."""
    segments = _segments_of(log.path, {stream for stream, _ in events})
    selection = _Selection(segments, lambda _: False, events)
    return _forget_selected_lines(log, read_model, lambda _: selection, "import undone", dry_run=False)


@contextmanager
def _pattern_matcher(pattern: str) -> Iterator[Callable[[Iterable[str]], bool]]:
    """Yield a function that returns whether an untrusted pattern matches any text, as given or in NFC.

    Some patterns, such as `(a+)+$`, take exponential time on some texts, and `re` holds the GIL meanwhile. So
    a bounded process does the search.

    Raises:
        ReaderFailed: the pattern is not a regular expression, or a search exceeds a limit.
    """
    with closing(BoundedProcess(on_wait=lambda: None)) as process:

        def match_in(pattern: str, texts: list[str]) -> bool:
            found, _ = process.ask(SearchTexts(pattern, texts, PATTERN_SECONDS), bool)
            return found

        def matches(texts: Iterable[str]) -> bool:
            given = [*texts]
            composed = [*map(normalise_to_nfc, given)]
            if match_in(pattern, given if composed == given else given + composed):
                return True
            return normalise_to_nfc(pattern) != pattern and match_in(normalise_to_nfc(pattern), composed)

        matches([])  # compiles the pattern
        yield matches


def _forget_selected_lines(
    log: Log,
    read_model: ReadModel,
    select: Callable[[Connection], _Selection],
    reason: str | None,
    dry_run: bool,
) -> ForgetReport:
    done, keys = read_model.query_for_decision(lambda db: _find_lines(db, log.path, select(db)))
    done.dry_run = dry_run
    if dry_run:
        return done
    # A key in a reason could never be erased.
    log.append_redactions(keys, reason and mask_keys(reason))
    done.redacted = len(keys)
    try:
        done.vectors = read_model.query_for_decision(
            lambda db: remove_unlisted_vectors(read_model.path, index.texts_to_embed(db))
        )
    except Busy as error:
        raise Busy(
            f"{error.message}: {len(keys)} events were redacted, but are still in the read model",
            hint="the next read will remove them; forget them again to confirm",
        ) from error
    return done


def _select_target(db: Connection, log: Path, target: Target) -> _Selection:
    if target.chat is not None:
        return _select_chat(db, log, target.chat)
    if target.memory is not None:
        return _select_memory(db, log, target.memory)
    assert target.event_id is not None
    return _select_event(db, log, target.event_id, target.stream)


def _select_event(db: Connection, log: Path, event_id: str, stream: str | None) -> _Selection:
    """Select every line with an event's id in its stream, including torn lines that seem to have it."""
    known = event_index.streams_containing_name(db, event_id)
    streams = [each for each in known if stream in (None, each)]
    if len(streams) > 1:
        message = f"{event_id} is in several streams: {', '.join(streams)}"
        raise BadInput(message, hint="choose one: stream=STREAM")
    # A torn line has no event, and may be all that was ever written of one.
    within = streams or [each for each in event_index.streams_with_bad_lines(db) if stream in (None, each)]
    wanted = _Selection(
        _segments_of(log, within),
        lambda entry: entry.event_id == event_id or _may_have_id(entry, event_id),
        {(each, event_id) for each in streams},
    )
    if not streams and not any(map(wanted.wants, read_entries_in_log_order(wanted.segments, tails=True))):
        where = "" if stream is None else f" in {stream}"
        hint = "store.search() returns ids"
        raise NotFound(f"no event {event_id!r}{where}", hint=hint, code="event_not_found")
    return wanted


def _select_memory(db: Connection, log: Path, memory_id: str) -> _Selection:
    """Select the events of a memory, of those merged into it, and of profile values derived from it."""
    names = event_index.find_memory_and_those_merged_into_it(db, memory_id)
    names += event_index.memories_proposed_to_replace(db, names)
    events = event_index.events_touching_memories(db, names) | event_index.find_held_events_of_memory(
        db, memory_id
    )
    events |= event_index.undone_merge_events(db, names)
    events |= _profile_keys(log, names) | event_index.contexts_containing_memories(db, names)
    if not events:
        raise NotFound(
            f"no memory {memory_id!r}", hint="store.memories.list() lists all", code="memory_not_found"
        )
    return _Selection(_segments_of(log, {stream for stream, _ in events}), lambda _: False, events)


def _select_chat(db: Connection, log: Path, chat: tuple[str, str]) -> _Selection:
    """Select a chat's streams, its facts, and every memory that ever belonged to it."""
    own = select_segments(log, chat=chat)
    others = _segments_of(log, ("memory", "facts"))
    name = ":".join(chat)
    of_chat = {
        entry.redaction_key for entry in read_entries_in_log_order(others) if _is_of_chat(entry.event, name)
    }
    if not own and not of_chat:
        raise NotFound(
            f"no chat {name}", hint="store.conversations.sessions() lists the chats", code="session_not_found"
        )
    streams = {segment.stream for segment in own}
    memories = event_index.memories_touched_by_events(db, of_chat)
    touched = event_index.events_touching_memories(db, memories) | _profile_keys(log, memories)
    touched |= event_index.contexts_containing_memories(db, memories)
    segments = [*own, *others, *_segments_of(log, ("core",))]
    return _Selection(segments, lambda entry: entry.segment.stream in streams, of_chat | touched, streams)


def _is_of_chat(event: object, chat: str) -> bool:
    """Whether an event belongs to a chat, or was distilled from it."""
    extraction = getattr(event, "extraction", None)
    return chat in (getattr(event, "chat_id", None), extraction and extraction.chat_id)


def _profile_keys(log: Path, memories: Collection[str]) -> set[Key]:
    """Return the keys of core memory events that a language model derived from any of `memories`."""
    entries = read_entries_in_log_order(_segments_of(log, ("core",)))
    extractions = ((entry.redaction_key, getattr(entry.event, "extraction", None)) for entry in entries)
    return {key for key, each in extractions if each and not {*each.memory_ids}.isdisjoint(memories)}


def _segments_of(log: Path, streams: Container[str]) -> list[Segment]:
    return [segment for segment in select_segments(log) if segment.stream in streams]


def _find_lines(db: Connection, log: Path, selection: _Selection) -> tuple[ForgetReport, list[Key]]:
    """Return the lines to forget, including message changes and contexts that name them, and new keys."""
    keys, mixed = dict.fromkeys(sorted(selection.names)), set()
    wanted: dict[Segment, list[DoomedLine]] = {segment: [] for segment in selection.segments}
    shown_of = {stream: _message_lines(db, stream) for stream in selection.whole}
    for segment in selection.segments:
        shown = shown_of.get(segment.stream, {}).get(segment.name.filename, [])
        wanted[segment] += shown
        for entry in _forgettable_entries(segment, leave_out={line.offset for line in shown}):
            if selection.wants(entry):
                keys.update(dict.fromkeys(_keys_of_newer_event(entry)))
                wanted[segment].append(_to_doomed_line(entry))
            else:
                mixed.add(segment)
        keys.update(dict.fromkeys(line.key for line in wanted[segment]))
    others = event_index.contexts_naming_events(db, keys.keys()) | event_index.changes_of_messages(
        db, keys.keys()
    )
    others -= keys.keys()
    keys.update(dict.fromkeys(sorted(others)))
    for segment in _segments_of(log, {stream for stream, _ in others}):
        wanted.setdefault(segment, [])
        mixed.add(segment)
    before = read_redacted_keys(wanted)
    streams = set(filter(is_stream_name, {stream for stream, _ in keys}))
    # In log order: sorting would take as long as writing.
    new = {key: None for key in keys if key[0] in streams and key not in before}
    done = ForgetReport(lines=[], already=len(keys.keys() & before))
    for segment, lines in wanted.items():
        if not is_stream_name(segment.stream):
            done.unreachable += [
                entry.position for entry in _forgettable_entries(segment) if entry.redaction_key in keys
            ]
        elif segment in mixed:
            # Read again: unselected lines may have the same id.
            done.lines += [
                _to_doomed_line(entry)
                for entry in _forgettable_entries(segment)
                if entry.redaction_key in new
            ]
        else:
            done.lines += sorted((line for line in lines if line.key in new), key=_offset)
    return done, list(new)


def _message_lines(db: Connection, stream: str) -> dict[str, list[DoomedLine]]:
    """Return a stream's messages, keyed by segment, from a read model that has caught up.

    Decoding their lines again would take half as long as projecting them.
    """
    found: defaultdict[str, list[DoomedLine]] = defaultdict(list)
    for event_id, segment, offset, number, kind, content in event_index.read_messages_of_stream(db, stream):
        line = DoomedLine(event_id, stream, segment, offset, number, kind, _shorten(content))
        found[segment].append(line)
    return found


def _forgettable_entries(segment: Segment, leave_out: Container[int] = ()) -> Iterator[LogEntry]:
    entries = read_entries_in_log_order([segment], tails=True, leave_out=leave_out)
    return (entry for entry in entries if not isinstance(entry.event, Redacted))


def _keys_of_newer_event(entry: LogEntry) -> list[Key]:
    """Return the key of an event that only a newer memlog understands, if it has a valid id; else []."""
    if isinstance(entry.event, BadLine) and entry.event.reason in _FROM_NEWER:
        with suppress(KeyError, msgspec.ValidationError):
            return [(entry.segment.stream, msgspec.convert(_parse_members(entry)["id"], Id))]
    return []


def _to_doomed_line(entry: LogEntry) -> DoomedLine:
    return DoomedLine(
        id=entry.event_id,
        stream=entry.segment.stream,
        segment=entry.segment.name.filename,
        offset=entry.line.offset,
        line=entry.line.number,
        type=entry.event.reason if isinstance(entry.event, BadLine) else type_name_of_event(entry.event),
        words=_first_words(entry),
    )


def _first_words(entry: LogEntry) -> str:
    text = getattr(entry.event, "content", "")
    if not text:
        members = _parse_members(entry)
        known = (members[name] for name in _KNOWN_BY if isinstance(members.get(name), str))
        text = next(chain(known, list_texts_of_line(entry)), "")
    return _shorten(text)


def _shorten(text: str) -> str:
    words = " ".join(text[: 4 * _WORDS_LENGTH].split())
    return words if len(words) <= _WORDS_LENGTH else f"{words[: _WORDS_LENGTH - 1]}…"


def list_texts_of_line(entry: LogEntry) -> Iterator[str]:
    """Yield every string in a line, at any depth, except those that identify or classify the event.

    A line that is not an event also yields itself as a whole. A line too long to load yields nothing.
    """
    envelope = ENVELOPE if isinstance(entry.event, BadLine) else list_envelope_members(entry.event)
    # A `context_given` has no texts: its ids and hashes would match by chance.
    of_context = ContextGiven.__struct_fields__ if isinstance(entry.event, ContextGiven) else ()
    names = (*_NAMES, *envelope, *of_context)
    yield from list_texts_within(value for name, value in _parse_members(entry).items() if name not in names)
    if isinstance(entry.event, BadLine):
        yield (entry.line.data or b"").decode(errors="replace")


def _parse_members(entry: LogEntry) -> dict[str, Any]:
    """Return a line's members, including unknown ones; {} if it is not an object."""
    try:
        members = msgspec.json.decode(strip_bom(entry.line.data or b""))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _may_have_id(entry: LogEntry, event_id: str) -> bool:
    """Whether a line that is not an event seems to contain this id."""
    named = re.escape(msgspec.json.encode(event_id))
    is_bad = isinstance(entry.event, BadLine)
    return is_bad and re.search(rb'"id"\s*:\s*' + named, entry.line.data or b"") is not None


# A scrub overwrites the log, then renews seals, rebuilds the read model, and prunes the cache. If it is
# killed, the next run continues: the redactions name what remains to be erased.

OUT_OF_REACH = (
    "out of reach: backups, snapshots, git's history and other copies of the store; old copies that the disk"
    " may keep in freed or relocated blocks, such as on an SSD or a copy-on-write file system"
)
"""A note for people: the copies that memlog cannot overwrite."""


def scrub_store(
    read_model: ReadModel, lock_timeout: float, progress: Progress | None, *, dry_run: bool
) -> ScrubReport:
    """Overwrite the bytes of forgotten events; see `Erasure.scrub`."""
    log_format.check_version_may_write(read_model.projector.log)
    if not dry_run:
        # Imported here: most stores have no provider.
        from memlog.service.engine.http_client import remove_unreadable_cache

        remove_unreadable_cache(read_model.path)
    segments = select_segments(read_model.projector.log)
    redacted = read_redacted_keys(segments)
    # After reading the redactions, so that the read model has all of them before a byte is erased. A damaged
    # read model is replaced: its content is unknown. A shared catch-up would skip one that is up to date.
    read_model.check_writable()
    read_model.run_with_repair(lambda: read_model.pass_on_notes(read_model.projector.catch_up()))
    due = dict(scrub.find_lines_to_erase(segments, redacted))
    found = ScrubReport(
        lines=sum(map(len, due.values())),
        bytes=sum(line.length for lines in due.values() for line in lines),
        segments=len(due),
    )
    if not redacted:
        found.notes = ["nothing was forgotten"]
        return found
    if dry_run:
        return found
    seals = SealFiles(read_model.projector.log, Writer(read_model.path).find_or_create_name())
    watermarks = Watermarks(read_model.path)

    def erase(segment: Segment) -> Erased:
        with _converting_os_errors_of_scrub(segment):
            return read_model.projector.run_write_transaction(
                lambda db: scrub.erase_lines(
                    segment,
                    due[segment],
                    redacted,
                    seals=seals,
                    lock_timeout=lock_timeout,
                    around=lambda fd: _updating_markers(db, watermarks, segment, fd),
                )
            )

    def renew_seals(segments: list[Segment]) -> None:
        for segment in segments:
            with _converting_os_errors_of_scrub(segment):
                seals.reseal(*segment.stream_and_filename, lock_timeout=lock_timeout)

    with holding_lock(read_model.path / SCRUB_LOCK, "the scrub", lock_timeout):
        erased = list(map(erase, due))
        renewed = [each.segment for each in erased if each.seal == "renewed"]
        renew_seals([*scrub.find_unfinished_segments(segments), *renewed])
        found.vectors = _rebuild_all(read_model, progress)
        # A process that sealed a segment meanwhile may have sealed bytes that are gone.
        renew_seals(renewed)
    return _complete_report(found, read_model, erased)


@contextmanager
def _updating_markers(db: Connection, watermarks: Watermarks, segment: Segment, fd: int) -> Iterator[None]:
    """Keep the watermarks and checkpoint of an open segment valid while its bytes are erased."""
    with (
        watermarks.keeping_watermarks_while_erasing(segment, fd),
        checkpoints.preserving_checkpoint(db, segment, fd),
    ):
        yield


def _rebuild_all(read_model: ReadModel, progress: Progress | None) -> int:
    """Build a new generation, remove the others, and prune the cache. Return how many vectors were pruned."""
    projector = read_model.projector
    projector.rebuild_generation("scrubbed", progress=progress)
    projector.remove_other_generations()
    projector.core_view.remove_stale_copies(projector.connect_to_live())
    remove_all_records(read_model.path)
    return remove_unlisted_vectors(
        read_model.path, index.texts_to_embed(projector.connect_to_live()), vacuum=True
    )


def _complete_report(report: ScrubReport, read_model: ReadModel, erased: list[Erased]) -> ScrubReport:
    current = read_model.projector.generations.find_live_file()
    report.lines = sum(each.lines for each in erased)
    report.bytes = sum(each.bytes for each in erased)
    report.done = True
    report.generation = None if current is None else current.name
    unlike = ["/".join(each.segment.stream_and_filename) for each in erased if each.seal == "unlike"]
    report.notes = [f"{place} did not match its seal, which is kept" for place in unlike] + [OUT_OF_REACH]
    return report


@contextmanager
def _converting_os_errors_of_scrub(segment: Segment) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LogError(
            f"{'/'.join(segment.stream_and_filename)}: {error.strerror or error}:"
            " forgotten text may still be there",
            hint="run store.erasure.scrub() to resume where it stopped",
        ) from error

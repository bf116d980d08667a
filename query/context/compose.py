"""Composes a context: what an agent should know for one message, within a token budget.

In order of priority: the two best entries for the message, core memory, the chat's last turns, the other
entries for the message, what always holds, the newest summary, the rest of the chat's window. An entry that
does not fit is left out, but smaller ones after it may still fit. See docs/tools/context.md.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import ContextGiven
from memlog.eventlog.fields import Chat, GivenEntry
from memlog.projector.sqlite import Connection, to_json_list, transaction
from memlog.query.context.always import find_entries_that_always_hold
from memlog.query.context.entries import ContextEntry, Part, make_entries_of_core_memory
from memlog.query.context.filling import EligibleEntries, EligibleEntry, Filling, OmittedEntry
from memlog.query.context.rendering import LinePrinter, make_printer
from memlog.query.context.request import DEFAULT_TOKENS, BuildContext, Form, Scope
from memlog.query.context.retrieve import ContextHits
from memlog.query.context.scope import read_core_memory_in_scope
from memlog.query.context.token_counters import Counter, round_weight_to_tokens, weigh_text
from memlog.query.event_index import Key
from memlog.query.outdated_memories import OutdatedMemoryFinder, swap_changed_with_newer
from memlog.query.time_words import NamedTime

_WIDE = "derived before chats were separated; the weekly job regenerates them for each person"
"""The reason in `silent` why some core values are hidden."""


class Context(msgspec.Struct, kw_only=True):
    """The context for a message.

    text: in the requested form; "" if there is nothing to print.
    tokens: of `text`, by `counter`; never more than `max_tokens`.
    frame: tokens of the text around the entries. If they exceed `max_tokens`, `text` is empty.
    entries: in printing order. left_out: rejected candidates, with the reason.
    silent: why something is missing, keyed by name. synced: whether the read model had caught up with the
        log.
    scope: `store` or `chat`. scope_why: why it was chosen.
    time: the time the message names, such as last week, if any.
    answered: the probability that the best entry belongs to the message; None if nothing was found.
    unrecorded: why recording the context failed; None if it succeeded or was not requested.
    took_ms: milliseconds it took to build.
    """

    text: str
    form: Form
    counter: Counter
    max_tokens: int
    tokens: int
    frame: int
    entries: list[ContextEntry]
    left_out: list[OmittedEntry]
    silent: dict[str, str]
    synced: bool
    scope: Scope = "store"
    scope_why: str = ""
    time: NamedTime | None = None
    answered: float | None = None
    unrecorded: str | None = None
    took_ms: float = 0.0

    @property
    def citations(self) -> dict[str, ContextEntry]:
        """The entries, keyed by citation: `citations["M1"].position`."""
        return {entry.citation: entry for entry in self.entries if entry.citation}

    @property
    def messages(self) -> list[dict[str, str]]:
        """The messages to send to a language model, each with `role` and `content`.

        Raises:
            BadInput: the form is not `messages`.
        """
        if self.form != "messages":
            raise BadInput(f"a context of the form {self.form} has no messages", hint='pass form="messages"')
        messages: list[dict[str, str]] = msgspec.json.decode(self.text)["messages"] if self.text else []
        return messages

    @property
    def memory_ids(self) -> list[str]:
        """The ids of the memories found for the message, excluding those that always hold."""
        return [entry.id for entry in self.entries if entry.is_memory and entry.part != "always"]


def compose_context(db: Connection, request: BuildContext, hits: ContextHits, *, synced: bool) -> Context:
    """Compose a context from the hits, core memory, what always holds, and the window.

    Raises:
        sqlite3.Error: the read model cannot be read.
    """
    answered = None if hits.answered is None else round(hits.answered, 3)
    printer = make_printer(request, silent=hits.silent, synced=synced, answered=answered)
    with transaction(db, "DEFERRED"):
        of_core = read_core_memory_in_scope(
            db, None if request.scope == "store" else frozenset(request.chats_of_scope)
        )
        core = [
            each for each in make_entries_of_core_memory(of_core.shown) if each.id not in request.excluded_ids
        ]
        changes = OutdatedMemoryFinder(db)
        always = find_entries_that_always_hold(db, request, changes, LinePrinter(request).line_of_entry)
        if request.form == "session":
            core, always = [], []
        hits = _mark_and_swap_changed_hits(changes, always, hits)
        filling = Filling(request, printer, core, always, _make_gate(db, request))
        filling.offer_candidates(None if request.part == "stable" else EligibleEntries(db, request, hits))
        if request.part != "stable" and request.explain:
            taken = {entry.id for entry in filling.taken}
            filling.left_out += [each for each in _omitted_hits(hits) if each.id not in taken]
    text, count, entries = filling.render_taken_entries()
    frame = round_weight_to_tokens(
        weigh_text(printer.frame_around_entries(), request.counter), request.counter
    )
    silent = dict(hits.silent)
    if of_core.wide:
        silent["core"] = f"left out of the profile: {of_core.wide}, {_WIDE}"
    if frame > request.max_tokens:
        silent["frame"] = f"nothing included: the frame alone takes {frame} tokens of {request.max_tokens}"
    return Context(
        text=text,
        form=request.form,
        counter=request.counter,
        max_tokens=request.max_tokens,
        tokens=count,
        frame=frame,
        entries=entries,
        left_out=filling.left_out,
        silent=silent,
        synced=synced,
        time=hits.time,
        answered=answered,
    )


def _make_gate(db: Connection, request: BuildContext) -> Callable[[ContextEntry], bool]:
    """Return the function that tells whether an entry may be in the context."""
    if not request.is_sent:
        return lambda _: True
    # Imported here: most contexts stay on this machine.
    from memlog.query.sendable import may_entry_be_sent

    return partial(may_entry_be_sent, db)


def _mark_and_swap_changed_hits(
    changes: OutdatedMemoryFinder, always: Sequence[EligibleEntry], hits: ContextHits
) -> ContextHits:
    """Set `changed_by` on the listed hits, and swap a hit with the newer memory if that is listed later.

    The newer memory may also be one that always holds or one below the floor.
    """
    if not hits.listed:
        return hits
    found = [*(hit for hit, _ in hits.listed), *(each.hit for each in hits.below)]
    newer = changes.map_outdated_to_newer_memories(
        [*(each.entry.id for each in always), *(each.id for each in found if each.kind == "memory")]
    )
    for hit, _ in hits.listed:
        hit.changed_by = newer.get(hit.id)
    scores = {id(hit): score for hit, score in hits.listed}
    ordered = swap_changed_with_newer([hit for hit, _ in hits.listed])
    return replace(hits, listed=[(hit, scores[id(hit)]) for hit in ordered])


def _omitted_hits(hits: ContextHits) -> Iterator[OmittedEntry]:
    parts: dict[str, Part] = {"message": "passage", "fact": "fact", "summary": "summary"}
    for hit, why, score in hits.below:
        part = (
            parts.get(hit.source) or parts.get(hit.kind) or ("memory" if hit.kind == "memory" else "document")
        )
        yield OmittedEntry(part=part, id=hit.id, why=why, tokens=0, score=score)


_NAMED = {"facts": "fact_id", "documents": "document_id"}
"""The id columns for the streams whose entries have a fact's or document's id instead of an event's, keyed by
stream. The table has the stream's name."""


class GivenContext(msgspec.Struct, frozen=True):
    """A context to record.

    event: without hashes. stable, turn: the text of each half, to be hashed; None if that half is missing.
    """

    event: ContextGiven
    stable: str | None
    turn: str | None


def make_record_of_context(
    db: Connection, request: BuildContext, context: Context, prompt_key: Key | None
) -> GivenContext:
    """Build the record of `context`. Call this in the transaction that composed it.

    prompt_key: the key of the message the context is for; None if it is not in the read model.
    """
    tokens: dict[str, int] = {}
    for entry in context.entries:
        tokens[entry.part] = tokens.get(entry.part, 0) + entry.tokens
    stable = turn = _format_memory_block(context)
    if request.part == "turn":
        # The stable half is printed by another call, with a budget of its own.
        of_core = replace(
            request, part="stable", beside=(), max_tokens=max(request.max_tokens, DEFAULT_TOKENS)
        )
        stable = _format_memory_block(compose_context(db, of_core, ContextHits(), synced=context.synced))
    # The log may not have the message yet.
    is_id = request.message_id is not None and re.fullmatch(r"\S{1,128}", request.message_id)
    event = ContextGiven(
        id=request.record_id,
        chat_id=request.name_of_current_chat or _find_chat_of_message(db, prompt_key),
        message_id=prompt_key[1] if prompt_key is not None else request.message_id if is_id else None,
        entries=_make_given_entries(db, context.entries),
        tokens=tokens,
    )
    return GivenContext(event, stable, turn)


def _format_memory_block(context: Context) -> str | None:
    """Return the memory block as it appears in an agent's prompt, or None if it is empty."""
    if context.form == "messages":
        return next((each["content"] for each in context.messages if each["role"] == "system"), None)
    return context.text if context.form in ("text", "session") and context.text else None


def _find_chat_of_message(db: Connection, prompt_key: Key | None) -> str | None:
    if prompt_key is None:
        return None
    query = "SELECT channel, chat_id FROM messages WHERE (stream, id) = (?, ?)"
    found = db.execute(query, prompt_key).fetchone()
    return None if found is None else str(Chat(*found))


def _make_given_entries(db: Connection, entries: Sequence[ContextEntry]) -> list[GivenEntry]:
    """Return one entry per event and part: an event may have several passages or facts."""
    events = _find_events_by_name(db, entries)
    given: dict[tuple[str, str | None, str], GivenEntry] = {}
    for entry in entries:
        stream = None if entry.is_memory else entry.position.stream
        name = events.get((stream, entry.id)) if stream in _NAMED else entry.id
        if name is None:
            continue
        score = None if entry.relevance_score is None else round(entry.relevance_score, 3)
        # The first one has the best passage.
        given.setdefault(
            (entry.part, stream, name), GivenEntry(entry.part, name, stream, score, entry.is_best)
        )
    return [*given.values()]


def _find_events_by_name(
    db: Connection, entries: Sequence[ContextEntry]
) -> dict[tuple[str | None, str], str]:
    events: dict[tuple[str | None, str], str] = {}
    for stream, column in _NAMED.items():
        names = to_json_list([entry.id for entry in entries if entry.position.stream == stream])
        sql = f"SELECT {column}, event_id FROM {stream} WHERE {column} IN (SELECT value FROM json_each(?))"
        events |= {(stream, name): event_id for name, event_id in db.execute(sql, (names,))}
    return events

"""Composes a context: what an agent should know for one message, within a budget of tokens.

In order of priority: the core memory, facts, memories, passages of conversations, summaries, the chat's
window. Each entry is taken whole or left out; smaller ones behind it may fit. See docs/tools/context.md.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from memlog.eventlog.content_ids import folded
from memlog.eventlog.errors import BadInput
from memlog.projector.sqlite import Connection, transaction
from memlog.query.context.eligible import EligibleEntries, EligibleEntry
from memlog.query.context.entries import PARTS, ContextEntry, Part, core_entries, newest_first
from memlog.query.context.excerpts import EXCERPT_TOKENS, Excerpts
from memlog.query.context.floor import chance
from memlog.query.context.rendering import Printer, printer_of
from memlog.query.context.request import BuildContext, Form, Scope
from memlog.query.context.retrieve import ContextHits
from memlog.query.context.token_counters import Counter, least_weight, size, tokens, weight

_SAYS_ENOUGH = 12
"""The least characters of a passage that is redundant if another entry contains it."""

_NO_ROOM = "no room"
_WHOLE: tuple[Part, ...] = ("core", "fact")
"""Parts of which nothing is cut."""


class OmittedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate that was not taken.

    part, id: as in a `ContextEntry`. why: for people. tokens: what it would have taken, if that was why.
    """

    part: Part
    id: str
    why: str
    tokens: int


class Context(msgspec.Struct, kw_only=True):
    """The context for a message.

    text: in the requested form; "" if there is nothing to print.
    tokens: of `text`, by `counter`; never more than `max_tokens`.
    frame: tokens of the text around the entries. If they exceed `max_tokens`, `text` is empty.
    entries: in the order of printing. left_out: candidates that were not taken, and why.
    silent: what did not take part, and why. synced: whether the read model had caught up with the log.
    scope: `store` or `chat`; scope_why: why.
    answered: the probability that an entry answers the message, as far as hits tell; None where words alone
        were compared, or nothing was found.
    unrecorded: why it was not recorded what was given; None if it was, or was not wanted.
    took_ms: milliseconds.
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
    answered: float | None = None
    unrecorded: str | None = None
    took_ms: float = 0.0

    @property
    def citations(self) -> dict[str, ContextEntry]:
        """The entries by citation: `citations["M1"].position`."""
        return {entry.citation: entry for entry in self.entries}

    @property
    def messages(self) -> list[dict[str, str]]:
        """The messages for a language model: role and content of each.

        Raises:
            BadInput: the form is not `messages`.
        """
        if self.form != "messages":
            raise BadInput(f"a context of the form {self.form} has no messages", hint='form="messages"')
        messages: list[dict[str, str]] = msgspec.json.decode(self.text)["messages"] if self.text else []
        return messages

    @property
    def memory_ids(self) -> list[str]:
        """The ids of the memories in it."""
        return [entry.id for entry in self.entries if entry.is_memory]


def compose(db: Connection, request: BuildContext, hits: ContextHits, *, synced: bool) -> Context:
    """The context of the hits, the core memory and the window.

    Raises:
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    answered = None if hits.best is None else round(chance(hits.best), 3)
    printer = printer_of(request, silent=hits.silent, synced=synced, answered=answered)
    with transaction(db, "DEFERRED"):
        core = [each for each in core_entries(db) if each.id not in request.excluded]
        filling = _Filling(request, printer, core)
        if request.part != "stable":
            filling.fill(EligibleEntries(db, request, hits))
            if request.explain:
                taken = {entry.id for entry in filling.taken}
                filling.left_out += [each for each in _below(hits) if each.id not in taken]
    text, count, entries = filling.done()
    frame = size(weight(printer.frame(), request.counter), request.counter)
    silent = dict(hits.silent)
    if frame > request.max_tokens:
        silent["frame"] = f"nothing is given: the frame alone has {frame} tokens of {request.max_tokens}"
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
        answered=answered,
    )


def _below(hits: ContextHits) -> Iterator[OmittedEntry]:
    """What was found and is not relevant enough."""
    parts: dict[str, Part] = {"message": "passage", "fact": "fact", "summary": "summary"}
    for hit, why in hits.below:
        part = (
            parts.get(hit.source) or parts.get(hit.kind) or ("memory" if hit.kind == "memory" else "document")
        )
        yield OmittedEntry(part=part, id=hit.id, why=why, tokens=0)


class _Filling:
    """Takes the entries that fit, in the order in which they are offered."""

    def __init__(self, request: BuildContext, printer: Printer, core: Sequence[ContextEntry]) -> None:
        self._request, self._printer = request, printer
        self._excerpts = Excerpts(request.text, request.counter)
        self._used = weight(printer.frame(), request.counter)
        self._has_frame = self._fits(0)
        self.taken: list[ContextEntry] = []
        self._window: list[EligibleEntry] = []
        self._cites = 0
        self._by_text: dict[str, ContextEntry] = {}
        self._seen: set[tuple[str, str, Part, str | None]] = set()
        self.left_out: list[OmittedEntry] = []
        if request.part == "turn":
            # The stable part has these citations, and says this.
            self._cites = len(core)
            self._by_text = {folded(entry.content): entry for entry in core}
        self._first = 1 + self._cites
        if request.part != "turn":
            self._offer_all(map(EligibleEntry, core))

    def fill(self, candidates: EligibleEntries) -> None:
        """Offer all candidates, by priority."""
        request = self._request
        self._offer_all(candidates.facts())
        self._offer_all(candidates.memories(), limit=request.limit)
        self._offer_all(candidates.documents(), limit=request.documents)
        self._offer_all(candidates.passages(), limit=request.passages)
        self._offer_all(candidates.summaries())
        self._window = candidates.window()
        self._offer_all(self._window)

    def done(self) -> tuple[str, int, list[ContextEntry]]:
        """The text, its tokens, and its entries with their citations."""
        while self._has_frame:
            entries = self._cited()
            text = self._printer.printed(entries)
            count = tokens(text, self._request.counter)
            if count <= self._request.max_tokens:
                return text, count, entries
            # The pieces of a text may weigh a little less than the text, if a counter does not add up.
            self._leave_out(self.taken.pop(), _NO_ROOM)
        return "", 0, []

    def _offer_all(self, candidates: Iterable[EligibleEntry], limit: int | None = None) -> None:
        taken = 0
        for candidate in candidates:
            full = f"beyond the {limit} that were asked for" if taken == limit else None
            taken += self._offer(candidate, full)

    def _offer(self, candidate: EligibleEntry, full: str | None) -> bool:
        """Take a candidate, or note why not; whether it was taken."""
        entry = candidate.entry
        key = (entry.position.stream, entry.id, entry.part, entry.title)
        # A message of the window that does not fit as a passage comes again with the window.
        if key in self._seen or (full is not None and entry.part == "window"):
            return False
        self._seen.add(key)
        if why := candidate.why or full:
            # Counting tokens is most of the work, and decides nothing here.
            return self._leave_out(entry, why)
        added = self._weigh(entry)
        is_long = candidate.by_excerpt and size(added, self._request.counter) > EXCERPT_TOKENS
        if is_long or (not self._fits(added) and self._may_be_cut(entry)):
            entry.content = self._excerpts.of(entry.content)
            added = self._weigh(entry)
        entry.tokens = size(added, self._request.counter)
        # An entry that is too large is not compared: it may have millions of characters.
        if why := (None if self._fits(added) else _NO_ROOM) or self._double(entry):
            return self._leave_out(entry, why)
        self._used += added
        self.taken.append(entry)
        self._cites += self._printer.cites(entry)
        self._by_text.setdefault(folded(entry.content), entry)
        return True

    def _may_be_cut(self, entry: ContextEntry) -> bool:
        """Whether an entry may be cut to its best sentences.

        A turn may, except among messages. Another entry may while the context has only core memory and facts.
        """
        if entry.part == "window":
            return self._request.form != "messages"
        return entry.part not in _WHOLE and all(each.part in _WHOLE for each in self.taken)

    def _weigh(self, entry: ContextEntry) -> float:
        """The weight that an entry adds to the text."""
        if size(least_weight(entry.content), self._request.counter) > self._request.max_tokens:
            return least_weight(entry.content)
        # Its final number may differ: the entries together have these numbers.
        entry.citation = f"M{self._cites + 1}"
        return weight(self._printer.piece(entry), self._request.counter)

    def _fits(self, more: float) -> bool:
        return size(self._used + more, self._request.counter) <= self._request.max_tokens

    def _leave_out(self, entry: ContextEntry, why: str) -> Literal[False]:
        self.left_out.append(OmittedEntry(part=entry.part, id=entry.id, why=why, tokens=entry.tokens))
        return False

    def _double(self, entry: ContextEntry) -> str | None:
        """Why a memory or passage is redundant: another entry has its text. None if no other has."""
        if entry.part not in ("memory", "passage"):
            return None
        content = folded(entry.content)
        other = self._by_text.get(content)
        if other is None and entry.part == "passage" and len(content) >= _SAYS_ENOUGH:
            other = next((each for text, each in self._by_text.items() if content in text), None)
        return None if other is None else f"the {other.part} {other.id} says it"

    def _cited(self) -> list[ContextEntry]:
        """The entries in the order of printing, those of the window oldest first."""
        turns = [candidate.entry for candidate in self._window][::-1]
        taken = {id(entry) for entry in self.taken}
        entries = [
            entry
            for part in PARTS
            for entry in (turns if part == "window" else self.taken)
            if entry.part == part and id(entry) in taken
        ]
        entries = newest_first(entries)
        for number, entry in enumerate(entries, start=self._first):
            entry.citation = f"M{number}"
        return entries

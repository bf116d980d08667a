"""Fills a context with entries, by priority, within its tokens."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

import msgspec

from memlog.eventlog.content_ids import folded
from memlog.query.context.eligible import EligibleEntries, EligibleEntry
from memlog.query.context.entries import PARTS, STABLE, ContextEntry, Part, by_rank, newest_first
from memlog.query.context.excerpts import EXCERPT_TOKENS, Excerpts
from memlog.query.context.rendering import Printer
from memlog.query.context.request import BuildContext
from memlog.query.context.scores import EntryScore
from memlog.query.context.token_counters import least_weight, size, tokens, weight

_SAYS_ENOUGH = 12
"""The least characters of a passage that is redundant if another entry contains it."""

_BEST = 2
"""Entries for the prompt that come before core memory."""

_LAST_TURNS = 4
"""Messages of the window that come before the rest of what is for the prompt."""

_FEWEST_TURNS = 2
_SHARE_OF_TURNS = 4
"""More than two of them only within this part of the budget: else at 500 tokens .044 of LoCoMo's answers are
lost."""

_NO_ROOM = "no room"
_WHOLE: tuple[Part, ...] = (*STABLE, "fact")
"""Parts of which nothing is cut."""


class OmittedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate that was not taken.

    part, id: as in a `ContextEntry`. why: for people. tokens: what it would have taken, if that was why.
    score: as in a `ContextEntry`.
    """

    part: Part
    id: str
    why: str
    tokens: int
    score: EntryScore | None = None


class _Share:
    """Candidates of which a context takes so many at most, and so many of a part; None for all."""

    def __init__(
        self,
        candidates: Iterable[EligibleEntry],
        most: int | None = None,
        of_part: Mapping[Part, int] | None = None,
    ) -> None:
        self.candidates = iter(candidates)
        self._limits: dict[Part | None, int] = {**(of_part or {})} | ({} if most is None else {None: most})
        self._taken: dict[Part | None, set[str]] = {}

    def full_for(self, entry: ContextEntry) -> str | None:
        """Why no more is taken; None while it is."""
        for part in (entry.part, None):
            most = self._limits.get(part)
            if most is not None and len(self._taken.get(part, set()) | {_place(entry)}) > most:
                return f"beyond the {most} that were requested"
        return None

    def take(self, entry: ContextEntry) -> None:
        """Count an entry."""
        for part in (entry.part, None):
            self._taken.setdefault(part, set()).add(_place(entry))


def _place(entry: ContextEntry) -> str:
    """What counts as one: all ranks of a list do."""
    return f"{entry.part} {entry.topic if entry.part == 'fact' else entry.id} {entry.chat}"


class Filling:
    """Takes the entries that fit, in the order in which they are offered."""

    def __init__(
        self,
        request: BuildContext,
        printer: Printer,
        core: Sequence[ContextEntry],
        always: Sequence[EligibleEntry],
    ) -> None:
        self._request, self._printer = request, printer
        self._used = weight(printer.frame(), request.counter)
        self._has_frame = self._fits(0)
        self.taken: list[ContextEntry] = []
        self._window: list[EligibleEntry] = []
        self._cites = 0
        self._seen: set[tuple[str, str, Part, str | None]] = set()
        self.left_out: list[OmittedEntry] = []
        self._uncited: tuple[Part, ...] = () if request.style == "session" else STABLE
        self._always = [] if request.part == "turn" else always
        self._held = {each.entry.id: each for each in always if each.why is None}
        holding = [each.entry for each in self._held.values()]
        self._by_text = {folded(entry.content): entry for entry in holding}
        if request.part == "turn":
            # The stable part has these citations, and says this.
            self._cites = 0 if self._uncited else len(core) + len(holding)
            self._by_text |= {folded(entry.content): entry for entry in core}
        self._first = 1 + self._cites
        self._core = [] if request.part == "turn" else [*map(EligibleEntry, core)]

    def fill(self, candidates: EligibleEntries | None) -> None:
        """Offer the candidates by priority; None for the stable half alone.

        The two best of the prompt come before all else, so that a small context answers; then what is always
        given, the last turns, and the rest. With core memory first, contexts of 200 tokens held .03 of what
        the prompts of fixtures/told need, in place of .45.
        """
        if candidates is None:
            self._offer_all(self._core)
            self._offer_all(self._always)
            return
        request = self._request
        of_part: dict[Part, int] = {"document": request.documents, "passage": request.passages}
        listed = _Share(self._beside(candidates.listed()), request.limit, of_part)
        documents = _Share(candidates.documents(), request.documents)
        passages = _Share(candidates.passages(), request.passages)
        self._window = candidates.window()
        window = _Share(self._window)
        for share in (listed, documents, passages):
            self._offer_some(share, _BEST - len(self.taken))
        self._offer_all(self._core)
        self._offer_some(window, _LAST_TURNS, within=request.max_tokens // _SHARE_OF_TURNS)
        self._offer_some(listed)
        self._offer_all(candidates.faded())
        self._offer_all(self._always)
        self._offer_some(documents)
        self._offer_some(passages)
        self._offer_all(candidates.summaries())
        self._offer_some(window)
        found = [each for each in self.taken if each.part != "always" and each.relevance_score is not None]
        for each in found[:_BEST]:
            each.is_best = True

    @cached_property
    def _excerpts(self) -> Excerpts:
        return Excerpts(self._request.search.question, self._request.counter)

    def _beside(self, listed: Iterable[EligibleEntry]) -> Iterator[EligibleEntry]:
        """What is listed; of what always holds the entry of the stable half."""
        for each in listed:
            if not (each.entry.is_memory and each.entry.id in self._held):
                yield each
            elif self._request.part == "turn":
                yield each._replace(why="it always holds: the stable half has it")
            else:
                holding = self._held[each.entry.id]
                holding.entry.score = each.entry.score
                holding.entry.relevance_score = each.entry.relevance_score
                yield holding

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

    def _offer_all(self, candidates: Iterable[EligibleEntry]) -> None:
        for candidate in candidates:
            self._offer(candidate, None)

    def _offer_some(self, share: "_Share", most: int | None = None, within: int | None = None) -> None:
        """Offer the candidates of a share, until `most` of them are taken, or they have as many tokens."""
        taken, before = 0, self._used
        while most is None or taken < most:
            used = size(self._used - before, self._request.counter)
            if within is not None and taken >= _FEWEST_TURNS and used * (taken + 1) > within * taken:
                return
            candidate = next(share.candidates, None)
            if candidate is None:
                return
            # What always holds takes no place: it is given in any case.
            holds = candidate.entry.part == "always"
            is_taken = self._offer(candidate, None if holds else share.full_for(candidate.entry))
            if is_taken and not holds:
                share.take(candidate.entry)
            taken += is_taken

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
        self._cites += entry.part not in self._uncited
        self._by_text.setdefault(folded(entry.content), entry)
        return True

    def _may_be_cut(self, entry: ContextEntry) -> bool:
        """Whether an entry may be cut to its best sentences: a turn, which would leave the one before without
        its answer, and the best for the prompt.
        """
        if entry.part == "window":
            return True
        return entry.part not in _WHOLE and sum(each.part not in _WHOLE for each in self.taken) < _BEST

    def _weigh(self, entry: ContextEntry) -> float:
        """The weight that an entry adds to the text."""
        if size(least_weight(entry.content), self._request.counter) > self._request.max_tokens:
            return least_weight(entry.content)
        # Its final number may differ: the entries together have these numbers.
        entry.citation = "" if entry.part in self._uncited else f"M{self._cites + 1}"
        return weight(self._printer.piece(entry), self._request.counter)

    def _fits(self, more: float) -> bool:
        return size(self._used + more, self._request.counter) <= self._request.max_tokens

    def _leave_out(self, entry: ContextEntry, why: str) -> Literal[False]:
        omitted = OmittedEntry(part=entry.part, id=entry.id, why=why, tokens=entry.tokens, score=entry.score)
        self.left_out.append(omitted)
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
        # The stable half is the same bytes, whatever the prompt found first.
        in_order: dict[Part, list[ContextEntry]] = {
            "window": [candidate.entry for candidate in self._window][::-1],
            "always": [candidate.entry for candidate in self._always],
        }
        taken = {id(entry) for entry in self.taken}
        entries = [
            entry
            for part in PARTS
            for entry in in_order.get(part, self.taken)
            if entry.part == part and id(entry) in taken
        ]
        entries = by_rank(newest_first(entries))
        cited = (entry for entry in entries if entry.part not in self._uncited)
        for number, entry in enumerate(cited, start=self._first):
            entry.citation = f"M{number}"
        return entries

"""A context: what an agent should know now, in so many tokens, for one message.

By right: the core memory, facts, memories, passages of conversations, summaries, the chat's window. What has
the greater right is taken first, each whole or not at all; what does not fit is left out, and smaller entries
behind it may still fit. docs/tools/context.md says all of it.
"""

from collections.abc import Iterable

import msgspec

from memlog.eventlog.content_ids import folded
from memlog.eventlog.errors import BadInput
from memlog.projector.sqlite import Connection, transaction
from memlog.query.context.eligible import EligibleEntries, EligibleEntry
from memlog.query.context.entries import PARTS, ContextEntry, Part
from memlog.query.context.rendering import Printer, printer_of
from memlog.query.context.request import BuildContext, Form
from memlog.query.context.retrieve import ContextHits
from memlog.query.context.token_counters import Counter, least_weight, size, tokens, weight

_SAYS_ENOUGH = 12
"""Characters of a passage that is left out where another entry has it among other things."""

_NO_ROOM = "no room"


class OmittedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was looked at and not taken.

    part, id: as in an `ContextEntry`. why: for people. tokens: what it would have taken.
    """

    part: Part
    id: str
    why: str
    tokens: int


class Context(msgspec.Struct, kw_only=True):
    """What an agent should know now.

    text: all that is printed, in the form that was asked for; "" where that is nothing.
    tokens: of `text`, by `counter`; never more than `max_tokens`.
    frame: tokens of what is printed around the entries. Where they are more than `max_tokens`, nothing is.
    entries: what it says, in the order in which it is printed.
    left_out: what was looked at and not taken, and why.
    silent: what did not take part, and why. synced: whether the read model had come up to the log.
    unrecorded: why it was not recorded that the memories were given; None where it was, or was not wanted.
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
    unrecorded: str | None = None
    took_ms: float = 0.0

    @property
    def citations(self) -> dict[str, ContextEntry]:
        """Every entry by its citation: `citations["M1"].position`."""
        return {entry.citation: entry for entry in self.entries}

    @property
    def messages(self) -> list[dict[str, str]]:
        """Of the form `messages` what a language model is sent: role and content of each.

        Raises:
            BadInput: it has another form.
        """
        if self.form != "messages":
            raise BadInput(f"a context of the form {self.form} has no messages", hint='form="messages"')
        found: list[dict[str, str]] = msgspec.json.decode(self.text)["messages"] if self.text else []
        return found

    @property
    def memory_ids(self) -> list[str]:
        """The memories that it gives."""
        return [entry.id for entry in self.entries if entry.is_memory]


def compose(db: Connection, asked: BuildContext, found: ContextHits, *, synced: bool) -> Context:
    """The context of what was found and of what always belongs to one.

    Raises:
        NotFound: the store has events, and none of the chat that is asked for.
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    printer = printer_of(
        asked.form, text=asked.text, silent=found.silent, synced=synced, in_chat=asked.chat is not None
    )
    with transaction(db, "DEFERRED"):
        filling = _Filling(asked, printer)
        filling.fill(EligibleEntries(db, asked, found))
    text, count, entries = filling.done()
    return Context(
        text=text,
        form=asked.form,
        counter=asked.counter,
        max_tokens=asked.max_tokens,
        tokens=count,
        frame=size(weight(printer.frame(), asked.counter), asked.counter),
        entries=entries,
        left_out=filling.left_out,
        silent=found.silent,
        synced=synced,
    )


class _Filling:
    """Takes what fits, in the order in which it is offered."""

    def __init__(self, asked: BuildContext, printer: Printer) -> None:
        self._asked, self._printer = asked, printer
        self._used = weight(printer.frame(), asked.counter)
        self._has_frame = self._fits(0)
        self._taken: list[ContextEntry] = []
        self._cites = 0
        self._said: dict[str, ContextEntry] = {}
        self._seen: set[tuple[str, str, Part]] = set()
        self.left_out: list[OmittedEntry] = []

    def fill(self, candidates: EligibleEntries) -> None:
        """Offer everything, by right."""
        asked = self._asked
        self._offer_all(candidates.core())
        self._offer_all(candidates.facts())
        self._offer_all(candidates.memories(), limit=asked.limit)
        self._offer_all(candidates.passages(), limit=asked.passages)
        self._offer_all(candidates.summaries())
        self._window = candidates.window()
        self._offer_all(self._window)

    def done(self) -> tuple[str, int, list[ContextEntry]]:
        """What is printed, its tokens, and the entries of it with their citations."""
        while self._has_frame:
            entries = self._cited()
            text = self._printer.printed(entries)
            count = tokens(text, self._asked.counter)
            if count <= self._asked.max_tokens:
                return text, count, entries
            # The pieces of a text weigh a little less than the text itself, should a counter not add up.
            self._leave_out(self._taken.pop(), _NO_ROOM)
        return "", 0, []

    def _offer_all(self, candidates: Iterable[EligibleEntry], limit: int | None = None) -> None:
        taken = 0
        for candidate in candidates:
            full = f"beyond the {limit} that were asked for" if taken == limit else None
            taken += self._offer(candidate, full)

    def _offer(self, candidate: EligibleEntry, full: str | None) -> bool:
        """Take a candidate, or say why not; whether it was taken."""
        entry = candidate.entry
        key = (entry.position.stream, entry.id, entry.part)
        # A message of the window that has no right as a passage comes again with the window.
        if key in self._seen or (full is not None and entry.part == "window"):
            return False
        self._seen.add(key)
        added = self._weigh(entry)
        entry.tokens = size(added, self._asked.counter)
        room = None if self._fits(added) else _NO_ROOM
        # What is too large is compared with nothing: it may have millions of characters.
        why = candidate.why or full or room or self._double(entry)
        if why is not None:
            self._leave_out(entry, why)
            return False
        self._used += added
        self._taken.append(entry)
        self._cites += self._printer.cites(entry)
        self._said.setdefault(folded(entry.content), entry)
        return True

    def _weigh(self, entry: ContextEntry) -> float:
        """What an entry adds to the weight of what is printed."""
        if size(least_weight(entry.content), self._asked.counter) > self._asked.max_tokens:
            return least_weight(entry.content)
        # Whichever number it will have: together the entries have these numbers, each once.
        entry.citation = f"M{self._cites + 1}"
        return weight(self._printer.piece(entry), self._asked.counter)

    def _fits(self, more: float) -> bool:
        return size(self._used + more, self._asked.counter) <= self._asked.max_tokens

    def _leave_out(self, entry: ContextEntry, why: str) -> None:
        self.left_out.append(OmittedEntry(part=entry.part, id=entry.id, why=why, tokens=entry.tokens))

    def _double(self, entry: ContextEntry) -> str | None:
        """Why an entry says nothing that another one does not. What is said in the window stands as it is."""
        if entry.part not in ("memory", "passage"):
            return None
        said = folded(entry.content)
        other = self._said.get(said)
        if other is None and entry.part == "passage" and len(said) >= _SAYS_ENOUGH:
            other = next((each for text, each in self._said.items() if said in text), None)
        return None if other is None else f"the {other.part} {other.id} says it"

    def _cited(self) -> list[ContextEntry]:
        """The entries in the order in which they are printed; the window's oldest first."""
        turns = [candidate.entry for candidate in self._window][::-1]
        taken = {id(entry) for entry in self._taken}
        entries = [
            entry
            for part in PARTS
            for entry in (turns if part == "window" else self._taken)
            if entry.part == part and id(entry) in taken
        ]
        for number, entry in enumerate(entries, start=1):
            entry.citation = f"M{number}"
        return entries

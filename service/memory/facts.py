"""Facts as a program stores, reads and removes them: `store.facts`."""

import unicodedata
from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.events import AppendWarning, Event, FactRemoved, FactStored, Position, warnings_of
from memlog.eventlog.fields import FactKind
from memlog.eventlog.secrets.detection import masked_event
from memlog.query.facts.answers import (
    Fact,
    FactAnswer,
    Topic,
    all_topics,
    ask,
    by_key,
    exactly,
    no_rank,
    topics,
    where,
)
from memlog.query.facts.topic_keys import key_of
from memlog.service.engine.engine import OperationGroup
from memlog.service.engine.operation import operation
from memlog.service.memory.ranked_lists import NoCertainList, ranked_list
from memlog.service.memory.requests import AskFacts, ExtractFacts, GetFact, ListFacts, RemoveFact, SetFact

LONGEST_VALUE = 1000
"""Characters of a value."""

_Facts = list[Fact]
"""Within the class `list` is its method."""


class FactUpdate(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The values that were set.

    topic_key: the key of the topic, as it is stored.
    ranks: the place of each of `values`; 0 for a single value.
    chat: `<channel>:<chat_id>`; None for the store's own scope.
    positions, warnings: of the events: one for a list or a single value, else one a rank.
    """

    topic_key: str
    kind: FactKind
    ranks: list[int]
    values: list[str]
    chat: str | None
    positions: list[Position]
    warnings: list[AppendWarning] = []


class FactExtraction(msgspec.Struct, kw_only=True):
    """The ranked list in a text, and whether it was stored.

    topic_key, values: the list, from rank 1 on; None and empty if the text does not certainly state one.
    chat: `<channel>:<chat_id>`; None for the store's own scope.
    why: why there is no certain list; None if there is one.
    position: of the event, with its warnings; None if nothing was stored.
    """

    stored: bool = False
    topic_key: str | None = None
    values: list[str] = []
    chat: str | None
    why: str | None = None
    position: Position | None = None


class Facts(OperationGroup):
    """The facts of a store, by topic: ranked lists, such as favourite colours, or single values."""

    @operation(SetFact.of_values, effect="append")
    def set(self, request: SetFact) -> FactUpdate:
        key, values, ranks = key_of(request.topic), request.values, request.ranks
        _check_values(values)
        fact = FactStored(
            topic_key=key, value=values[0], chat_id=request.scope, source_message_id=request.source_message_id
        )
        if request.single:
            if len(values) > 1:
                raise BadInput(f"{len(values)} values of a single fact", hint="quote a value that has spaces")
            events = [fact]
        elif ranks is None:
            events = [replace(fact, kind="ranked", rank=1, rest=[*values[1:]])]
        else:
            self._check_ranks(key, request.scope, values, ranks)
            pairs = zip(ranks, values, strict=True)
            events = [replace(fact, kind="ranked", rank=rank, value=value) for rank, value in pairs]
        positions = self._append([*events])
        stored = events
        if self._engine.redact:  # as the log has them
            masked = (masked_event(msgspec.json.encode(event)) for event in events)
            stored = [msgspec.json.decode(event, type=FactStored) for event in masked]
        return FactUpdate(
            topic_key=key,
            kind=events[0].kind,
            ranks=[0] if request.single else [*(ranks or range(1, len(values) + 1))],
            values=[value for event in stored for value in (event.value, *(event.rest or ()))],
            chat=request.scope,
            positions=positions,
            warnings=warnings_of(positions),
        )

    @operation(GetFact, effect="read")
    def get(self, request: GetFact) -> FactAnswer:
        key = key_of(request.topic)
        return self._read(
            lambda db: by_key(db, key, rank=request.rank, chat=request.scope, any_chat=request.any_chat)
        )

    @operation(AskFacts, effect="read")
    def ask(self, request: AskFacts) -> FactAnswer:
        return self._read(lambda db: ask(db, request.question, chat=request.scope, any_chat=request.any_chat))

    @operation(ExtractFacts, effect="append")
    def extract(self, request: ExtractFacts) -> FactExtraction:
        try:
            key, values = ranked_list(request.text)
        except NoCertainList as doubt:
            return FactExtraction(chat=request.scope, why=str(doubt))
        found = FactExtraction(topic_key=key, values=values, chat=request.scope)
        if request.dry_run:
            return found
        done = self.set(key, *values, chat=request.scope, source_message_id=request.source_message_id)
        return replace(found, stored=True, values=done.values, position=done.positions[0])

    @operation(RemoveFact, effect="append")
    def remove(self, request: RemoveFact) -> list[Position]:
        key = key_of(request.topic)
        standing = self._decide(lambda db: exactly(topics(db, request.scope), [key]))
        if standing is None:
            raise unknown_fact(f"no topic {key} {where(request.scope, any_chat=False)}")
        if request.rank is not None and standing.at(request.rank) is None:
            raise unknown_fact(no_rank(standing, request.rank))
        return self._append(_removals(standing, request.rank))

    @operation(ListFacts, effect="read")
    def list(self, request: ListFacts) -> _Facts:
        found = self._read(lambda db: all_topics(db) if request.scope is None else topics(db, request.scope))
        request.check_found(found)
        return [fact for topic in found for fact in topic.facts]

    def _check_ranks(self, key: str, chat: str | None, values: Sequence[str], ranks: Sequence[int]) -> None:
        if len(ranks) != len(values):
            raise BadInput(
                f"{len(values)} values and {len(ranks)} ranks", hint="give one rank for each value, or none"
            )
        twice = next((rank for rank, count in Counter(ranks).items() if count > 1), None)
        if twice is not None:
            raise BadInput(f"two values have rank {twice}", hint="a rank has one value")
        # A rank that is refused makes no store.
        is_there = self._engine.exists
        standing = self._decide(lambda db: exactly(topics(db, chat), [key])) if is_there else None
        last = standing.facts[-1].rank if standing and standing.kind == "ranked" else 0
        for rank in sorted(ranks):
            if rank > last + 1:
                raise BadInput(f"rank {rank} of {key}, which has {last}", hint=f"the next one is {last + 1}")
            last = max(last, rank)


def _check_values(values: Sequence[str]) -> None:
    if not values:
        raise BadInput("no value", hint="give at least one")
    for value in values:
        if not value.strip():
            raise BadInput("a value is empty", hint="store.facts.remove() removes what no longer holds")
        odd = next((letter for letter in value if unicodedata.category(letter) in ("Cc", "Zl", "Zp")), None)
        if odd is not None:
            raise BadInput(
                f"a value has the control character U+{ord(odd):04X}",
                hint="a value is one line; store.memories.save() keeps longer texts",
            )
        if len(value) > LONGEST_VALUE:
            raise BadInput(
                f"a value of {len(value)} characters",
                hint=f"at most {LONGEST_VALUE} characters; store.memories.save() keeps longer texts",
            )


def _removals(standing: Topic, rank: int | None) -> list[Event]:
    """Return one event for each spelling.

    Removing the last rank also removes older kinds and spellings.
    """
    if rank is None or len(standing.facts) == 1:
        return [FactRemoved(topic_key=key, chat_id=standing.chat) for key in standing.keys]
    key = standing.facts[0].topic_key
    return [FactRemoved(topic_key=key, kind="ranked", rank=rank, chat_id=standing.chat)]


def unknown_fact(what: str) -> NotFound:
    """Return the error where nothing is stored."""
    return NotFound(what, hint="store.facts.list()", code="fact_not_found")

"""Scores how likely each thing that a search found belongs to a prompt: one measure for memories, facts,
documents and passages of conversations, and one floor.

A score is the logit of a logistic regression on four labelled stores (fixtures/told, 240 prompts): how many
standard deviations nearer in meaning the entry is than sentences that have nothing to do with the prompt, how
many of the prompt's words it has, and what it is. docs/tools/context-details.md has its figures.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

import msgspec

from memlog.projector.embedding.models import Embedder, is_bundled
from memlog.projector.sqlite import Connection
from memlog.projector.text.stemming import ENGLISH, language_of, stop_words
from memlog.query.context.background import StoreSample, background, reads
from memlog.query.context.lines import LONG
from memlog.query.gate.rules import should_retrieve
from memlog.query.search import nearest
from memlog.query.search.candidates import Owner
from memlog.query.search.fts_query import parse
from memlog.query.search.hits import Hit
from memlog.query.search.vector_cache import cosines


class Weights(msgspec.Struct, frozen=True):
    """The weights of a score, and of the gate against prompts that ask for nothing stored.

    base: of every entry. meaning: a deviation of its similarity. words: of its cover. both_read: added where
        the model reads prompt and entry. fact, passage, document: added by what it is.
    gate: of every prompt; gate_best: of its best score; first_person: of "my", "we" and the like;
        likeness: of its similarity to personal prompts, less that to general ones; gate_least: below it the
        floor is `SOFT_FLOOR`.
    """

    base: float = -3.628
    meaning: float = 1.003
    words: float = 3.246
    both_read: float = -2.491
    fact: float = -1.403
    passage: float = -1.801
    document: float = -0.711
    gate: float = 5.122
    gate_best: float = 0.182
    first_person: float = 1.873
    likeness: float = 21.16
    gate_least: float = 1.647


WEIGHTS = Weights()
"""Fitted on all four stores: `python -m tests.eval.told --fit`."""

FLOOR = -4.9
"""The least score of an entry. At -4.5 and -4.9 recall on the four stores is .648 and .652, precision .304
and .299; at -4.5 a question in Chinese of which a message has three words of eight finds nothing."""

SOFT_FLOOR = -1.5
"""The floor for a prompt that seems to ask for nothing stored. As a hard gate it costs .06 of recall."""

BELOW_BEST = 3.0
"""How far an entry may be below the best one."""

_SOCIAL = ("greeting", "acknowledgement")
"""Reasons of the gate, which takes "ok, wifi password" for one of them."""

OF_A_LINE = 0.5
"""Taken from the score of an entry that only one line of a long prompt found."""

_NEIGHBOURS = 3
"""Of the background prompts of each kind, the nearest ones that tell what a prompt is like."""

FIRST_PERSON = re.compile(r"\b(?:my|ours?|we|us|i|i['’](?:m|d|ve|ll)|me|mine|let['’]s)\b", re.IGNORECASE)
_NAME = re.compile(r"\b[A-Z][a-z][\w'’-]*")
_BEGINS_A_SENTENCE = frozenset('.!?:;\n"“”«(*-–—')
_DATES = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july"
    " august september october november december".split()
)

IsKnown = Callable[[str], bool]
"""Whether the store has a name."""


class EntryScore(msgspec.Struct, frozen=True, kw_only=True):
    """How likely an entry belongs to a prompt, and why.

    total: a logit. floor: the least total with which it is given, for this prompt.
    meaning: deviations by which it is nearer in meaning than other texts; None where the model does not read
        both, or it has no vector yet.
    words: the share of the prompt's words that it has, by their rarity, times the root of their number.
    is_of_a_line: whether the words are those of one line of a long prompt.
    """

    total: float
    floor: float
    meaning: float | None
    words: float
    is_of_a_line: bool = False

    def __str__(self) -> str:
        """For people."""
        meaning = "none compared" if self.meaning is None else f"{self.meaning:.2f}"
        words = f"words{' of a line' if self.is_of_a_line else ''} {self.words:.2f}"
        return f"score {self.total:.2f} (meaning {meaning}, {words}), floor {self.floor:.2f}"


class ListedHit(NamedTuple):
    """A hit, and what its score is made of.

    owner: what it is. cosine: to the prompt; None without one. words, line: cover of the whole prompt, and of
    its best line. factor: of its odds, for what another chat says.
    """

    hit: Hit
    owner: Owner
    cosine: float | None
    words: float
    line: float = 0.0
    factor: float = 1.0


class ScoredPrompt:
    """What is known of a prompt: its words, its language, and how near in meaning things are to it."""

    def __init__(self, db: Connection, text: str, embedder: Embedder | None, sample: StoreSample) -> None:
        self.text, self.question = text, parse(text)
        self.embedder, self._db, self._sample = embedder, db, sample
        self.language = language_of(text)

    def reads(self, text: str) -> bool:
        """Whether the model reads the language of a text."""
        return self.embedder is not None and reads(self.embedder, text)

    @cached_property
    def is_read(self) -> bool:
        """Whether the model reads the prompt."""
        return self.reads(self.text)

    @cached_property
    def vector(self) -> bytes | None:
        """Of the prompt."""
        if self.embedder is None or not self.is_read:
            return None
        return nearest.embed_query(self.text, self._db, self.embedder, {})

    @cached_property
    def _others(self) -> tuple[float, float]:
        """The mean and the deviation of the prompt's similarity to the background and to the store."""
        import numpy as np

        assert self.vector is not None
        assert self.embedder is not None
        compared = self._sample.vectors(self._db, self.embedder)
        if is_bundled(self.embedder):
            compared = [*background().sentences, *compared]
        similar = np.array(cosines(np.stack(compared), self.vector)) if len(compared) > 1 else np.zeros(2)
        return float(similar.mean()), float(similar.std())

    def meaning(self, cosine: float | None) -> float | None:
        """How many deviations a similarity is above the mean."""
        if cosine is None or self.vector is None:
            return None
        mean, deviation = self._others
        return (cosine - mean) / deviation if deviation else None

    def _likeness(self) -> float:
        """The prompt's similarity to personal prompts, less that to general ones."""
        assert self.vector is not None
        known = background()
        near = (sorted(cosines(of_kind, self.vector))[-_NEIGHBOURS:] for of_kind in known[1:])
        personal, general = (sum(similar) / _NEIGHBOURS for similar in near)
        return personal - general

    def floor(self, best: float, is_known: IsKnown) -> float:
        """The least score of an entry. best: the greatest of all. is_known: whether the store has a name."""
        if should_retrieve(self.text).reason in _SOCIAL:
            return SOFT_FLOOR
        if self.vector is None or self.embedder is None or not is_bundled(self.embedder):
            return FLOOR
        likely = WEIGHTS.gate + WEIGHTS.gate_best * best + WEIGHTS.likeness * self._likeness()
        if FIRST_PERSON.search(self.text):
            likely += WEIGHTS.first_person
        names = names_in(self.text) if len(self.text) <= LONG else []
        is_general = likely < WEIGHTS.gate_least or not all(map(is_known, names))
        return SOFT_FLOOR if is_general else FLOOR


def names_in(text: str) -> list[str]:
    """The capitalised words inside the sentences of an English text, without days and months."""
    names = []
    for found in _NAME.finditer(text):
        before = text[: found.start()].rstrip(" ")
        if before and before[-1] not in _BEGINS_A_SENTENCE:
            names.append(re.sub(r"['’]s?$", "", found[0]))
    english = stop_words()[ENGLISH]
    return [name for name in dict.fromkeys(names) if name.lower() not in _DATES | english]


def scored(
    prompt: ScoredPrompt, found: Iterable[ListedHit], is_known: IsKnown
) -> list[tuple[Hit, EntryScore]]:
    """The hits with their scores, best first."""
    totals = []
    for each in found:
        meaning = prompt.meaning(each.cosine)
        if meaning is None and not each.words and not each.line:
            continue
        whole = _total(each, meaning, each.words)
        line = _total(each, meaning, each.line) - OF_A_LINE
        totals.append((each, meaning, max(whole, line), whole, line > whole))
    best = max((whole for *_, whole, _ in totals), default=0.0)
    floor = max(
        prompt.floor(best, is_known) if totals else FLOOR,
        max((total for _, _, total, *_ in totals), default=0.0) - BELOW_BEST,
    )
    rated = [
        (
            each.hit,
            EntryScore(
                total=round(total, 6),
                floor=round(floor, 6),
                meaning=meaning,
                words=each.line if is_of_a_line else each.words,
                is_of_a_line=is_of_a_line,
            ),
        )
        for each, meaning, total, _, is_of_a_line in totals
    ]
    rated.sort(key=lambda each: (each[0].ts, each[0].id), reverse=True)
    return sorted(rated, key=lambda each: -each[1].total)


_OF_OWNER: Mapping[Owner, str] = {"fact": "fact", "message": "passage", "document": "document"}


def _total(each: ListedHit, meaning: float | None, words: float) -> float:
    total = WEIGHTS.base + WEIGHTS.words * words + math.log(each.factor)
    if each.owner in _OF_OWNER:
        total += getattr(WEIGHTS, _OF_OWNER[each.owner])
    return total if meaning is None else total + WEIGHTS.both_read + WEIGHTS.meaning * meaning


def chance(score: EntryScore) -> float:
    """The probability that an entry belongs to the prompt."""
    return 1 / (1 + math.exp(-score.total))

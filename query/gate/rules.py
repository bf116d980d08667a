"""Whether a look into the memory is worth it for a text: by tables and rules, without a model or a store.

A look that was not needed costs a few hundred tokens; one that is missed may cost the answer. So a text is
passed over only where nothing in it asks for the memory. docs/tools/gate.md says the rules, and where they
err.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Literal

import msgspec

from memlog.projector.text import language_files
from memlog.projector.text.language_files import FactWords
from memlog.query.gate.strip_code import ends_of, without_code

Reason = Literal["memory", "question", "prose", "greeting", "acknowledgement", "code", "short"]
"""Why a look is worth it, the first three, or is not."""

LONGEST = 100_000
"""Characters at the beginning of a long text, and as many at its end, that are searched for fenced blocks."""

LOOKED_AT = 1000
"""Characters at the beginning of a long text, and as many at its end, that are looked at for code."""

_READ = 200
"""The same of what is left in words: so much of it is worth a look in any case."""

LEAST_WORDS = 4
"""What says something has so many words; three Chinese characters are as much as two words."""

_LEAST_ASKED = 2
"""A question mark makes a question of so many words; behind one alone it is a reaction: `really?`."""

_BEHIND_AN_OPENING = 6
"""`thanks for the help with the tests`; who says more says something else, too."""

_WEIGHT = 3
_WEIGHT_OF_A_CHARACTER = 2
_CHINESE = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_IS_CHINESE = re.compile(f"[{_CHINESE}]")
_WORD = re.compile(rf"[{_CHINESE}]|(?:(?![{_CHINESE}])[^\W_])+(?:['-](?:(?![{_CHINESE}])[^\W_])+)*")
_CLAUSE = re.compile(r"[.,;:!?…\n()。、—~]+")
_FOLDED = str.maketrans({"’": "'", "ё": "е"})
_KEY = 2
_SOCIAL = ("openings", "greetings", "acknowledgements", "fillers")


class Gate(msgspec.Struct, frozen=True):
    """Whether a look into the memory is worth it, and why; in an `if` it is true where it is.

    reason: `memory` (words such as `remember`, `as usual`), `question`, `prose` (it says enough to look for);
        or `greeting`, `acknowledgement`, `code` (also output, commands, links), `short`.
    words: those that told, folded; None where it was none of them alone.
    """

    retrieve: bool
    reason: Reason
    words: str | None = None

    def __bool__(self) -> bool:
        """Whether a look is worth it."""
        return self.retrieve


def should_retrieve(text: str) -> Gate:
    """Whether a look into the memory is worth it for `text`, as a person says it to an agent.

    Not for a greeting, an acknowledgement, pure code, and what is too short; but for a question, for words
    of memory, in each language whose file has a `[gate]`, and for whatever says enough. The same text has the
    same answer. It takes less than a millisecond and needs no store.
    """
    said = without_code(ends_of(text, LONGEST), LOOKED_AT)
    if not said:
        return Gate(retrieve=False, reason="short" if text.isspace() or not text else "code")
    folded = unicodedata.normalize("NFKC", ends_of(said, _READ)).casefold().translate(_FOLDED)
    clauses = [_Clause(part) for part in _CLAUSE.split(folded)]
    left = [clause for clause in clauses if not clause.is_social]
    weight = sum(clause.weight for clause in left)
    if memory := _first(clause.memory for clause in left):
        return Gate(retrieve=True, reason="memory", words=memory)
    asks = _first(clause.asks for clause in left)
    if asks or ("?" in folded and weight >= _LEAST_ASKED * _WEIGHT):
        return Gate(retrieve=True, reason="question", words=asks)
    if weight >= LEAST_WORDS * _WEIGHT:
        return Gate(retrieve=True, reason="prose")
    return Gate(retrieve=False, reason=_social_reason(clauses))


class _Phrases:
    """Phrases of the tables of all languages, to be found in words."""

    def __init__(self, name: str) -> None:
        self._by_beginning: dict[str, list[list[str]]] = {}
        self._endings: list[list[str]] = []
        for said in _said_in_all(name):
            parts = _parts(said)
            if parts and parts[0].startswith("*"):
                self._endings.append(parts)
            elif parts:
                self._by_beginning.setdefault(parts[0].rstrip("*")[:_KEY], []).append(parts)

    def length_at(self, words: Sequence[str], place: int) -> int:
        """How many words the longest phrase has that stands at `place`; 0 where none does."""
        likely = self._by_beginning.get(words[place][:_KEY], ())
        return max(
            (len(parts) for parts in chain(likely, self._endings) if _stands_at(parts, words, place)),
            default=0,
        )


def _said_in_all(name: str) -> Iterator[str]:
    for language in language_files.languages("gate").values():
        yield from language_files.phrases(getattr(language.gate, name))
    for language in language_files.languages("facts").values() if name == "memory" else ():
        yield from _topic_words(language.facts)


def _topic_words(facts: FactWords) -> Iterator[str]:
    """What the name of a fact begins or ends with: `my`, `favourite`."""
    yield from f"{facts.favorite} {facts.favorite_behind} {facts.own}".translate(_FOLDED).split()
    for prefix in facts.favorite_prefixes.translate(_FOLDED).split():
        yield f"{prefix}*"


def _parts(said: str) -> list[str]:
    return [part for word in said.split() for part in ([word] if "*" in word else _WORD.findall(word))]


def _stands_at(parts: Sequence[str], words: Sequence[str], place: int) -> bool:
    here = words[place : place + len(parts)]
    return len(here) == len(parts) and all(map(_is, parts, here))


def _is(part: str, word: str) -> bool:
    if part.endswith("*"):
        return word.startswith(part[:-1])
    return word.endswith(part[1:]) if part.startswith("*") else word == part


@cache
def _phrases(name: str) -> _Phrases:
    return _Phrases(name)


class _Clause:
    """The words between two signs.

    begins: how many of them are greetings, acknowledgements and fillers at the beginning. kinds: which of
    these. memory: its first words of memory.
    """

    def __init__(self, text: str) -> None:
        self.words = _WORD.findall(text)
        self.begins, self.kinds = _beginning(self.words)
        self.memory = _found("memory", self.words, range(len(self.words)))

    @property
    def is_social(self) -> bool:
        """Whether it is nothing else. One word behind it is taken for whom it is said to: `hello Anna`."""
        rest = len(self.words) - self.begins
        is_named = rest == 1 and not self.memory and not self.kinds <= {"fillers"}
        return is_named or (not rest and not (self.memory and "openings" in self.kinds))

    @property
    def weight(self) -> int:
        """How much it says, in thirds of a word."""
        return sum(_WEIGHT_OF_A_CHARACTER if _IS_CHINESE.match(word) else _WEIGHT for word in self.words)

    @property
    def asks(self) -> str | None:
        """What makes it a question, where it asks for something: `why` alone is of what was just said."""
        rest = len(self.words) - self.begins
        beginnings = [place for place in (0, self.begins) if rest]
        return _found("asks", self.words, beginnings, shorter_than=rest) or _found(
            "asks_anywhere", self.words, range(len(self.words)), shorter_than=rest
        )


def _beginning(words: Sequence[str]) -> tuple[int, set[str]]:
    """How many words are a row of greetings and the like at the beginning, and of which kinds they are."""
    place, kinds = 0, set[str]()
    while place < len(words):
        lengths = {kind: _phrases(kind).length_at(words, place) for kind in _SOCIAL}
        kind = max(lengths, key=lengths.__getitem__)
        if not lengths[kind]:
            break
        kinds.add(kind)
        place += lengths[kind]
        if kind == "openings" and len(words) - place <= _BEHIND_AN_OPENING:
            place = len(words)
    return place, kinds


def _found(
    name: str, words: Sequence[str], places: Iterable[int], *, shorter_than: int | None = None
) -> str | None:
    """The first phrase of a table that stands at one of `places`."""
    for place in places:
        length = _phrases(name).length_at(words, place)
        if length and (shorter_than is None or length < shorter_than):
            return _said(words[place : place + length])
    return None


def _said(words: Sequence[str]) -> str:
    return ("" if _IS_CHINESE.match(words[0]) else " ").join(words)


def _first(found: Iterable[str | None]) -> str | None:
    return next(filter(None, found), None)


def _social_reason(clauses: Sequence[_Clause]) -> Reason:
    """What a text is that says too little: a greeting rather than an acknowledgement."""
    kinds = {kind for clause in clauses for kind in clause.kinds if clause.is_social}
    if "greetings" in kinds:
        return "greeting"
    return "acknowledgement" if kinds & {"acknowledgements", "openings"} else "short"

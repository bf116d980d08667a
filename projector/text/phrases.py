"""Finds phrases from the language files in a text, word by word."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from enum import IntFlag
from functools import cache
from itertools import chain

from memlog.eventlog.categories import PRIVATE_CATEGORIES
from memlog.projector.text import language_files

WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
FOLDED = str.maketrans({"’": "'", "ё": "е"})
_FIRST_CHINESE = "\u3400"
_KEY = 3


class Phrases:
    """Phrases, indexed by their first words.

    `word*` matches the start of a word, `*word` the end, and `*word*` any part of it.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        self._words: dict[str, list[list[str]]] = {}
        self._beginnings: dict[str, list[list[str]]] = {}
        self._endings: list[list[str]] = []
        for phrase in phrases:
            parts = phrase.split()
            if parts[0].startswith("*"):
                self._endings.append(parts)
            elif parts[0].endswith("*"):
                self._beginnings.setdefault(parts[0][:-1][:_KEY], []).append(parts)
            else:
                self._words.setdefault(parts[0], []).append(parts)
        ends = (re.escape(parts[0].strip("*")) + "$" * (parts[0][-1] != "*") for parts in self._endings)
        self._ends = re.compile("|".join(ends) or "(?!)").search

    def length_of_phrase_at(self, words: Sequence[str], place: int) -> int:
        """Return the number of words in the longest phrase at `place`, or 0."""
        return max(
            (
                len(parts)
                for parts in self._possible_phrases(words[place])
                if _matches_at(parts, words, place)
            ),
            default=0,
        )

    def possible_places(self, words: Sequence[str]) -> list[int]:
        """Return the places where a phrase may start, in a tenth of the time of `length_of_phrase_at`."""
        # A microsecond per word, since a context checks every memory.
        one, two, ends = self._words, self._beginnings, self._ends
        return [
            place
            for place, word in enumerate(words)
            if word in one or word[:_KEY] in two or word[:2] in two or word[:1] in two or ends(word)
        ]

    def _possible_phrases(self, word: str) -> Iterable[list[str]]:
        beginnings = (self._beginnings.get(word[:length], ()) for length in range(1, _KEY + 1))
        return chain(self._words.get(word, ()), *beginnings, self._endings if self._ends(word) else ())


def fold_phrase(text: str) -> str:
    """Fold `text` like the phrases: lower case, `'` for every apostrophe, е for ё."""
    return unicodedata.normalize("NFKC", text).casefold().translate(FOLDED)


def put_spaces_around_chinese(text: str) -> str:
    """Put spaces around each Chinese character in `text`, since each counts as a word."""
    if max(text, default="") < _FIRST_CHINESE:
        return text
    return "".join(f" {letter} " if is_chinese(letter) else letter for letter in text)


def is_chinese(letter: str) -> bool:
    """Whether `letter` is a Chinese character."""
    # A pattern with these ranges takes 2 ms to compile.
    return _FIRST_CHINESE <= letter <= "\u9fff" or "\uf900" <= letter <= "\ufaff"


def _matches_at(parts: Sequence[str], words: Sequence[str], place: int) -> bool:
    here = words[place : place + len(parts)]
    return len(here) == len(parts) and all(map(_matches_word, parts, here))


def _matches_word(part: str, word: str) -> bool:
    if part.endswith("*"):
        return part[1:-1] in word if part.startswith("*") else word.startswith(part[:-1])
    return word.endswith(part[1:]) if part.startswith("*") else word == part


# Contexts include these memories whatever the prompt is (`query.context.always`). The read model stores the
# result with each memory, since checking 5,000 memories takes as long as a search.

_PREFERENCES = frozenset(["preference", "preferences"])
"""Categories that mean the same as the kind `preference`."""

_READ = 4000
"""The number of characters of a memory to inspect: longer memories do not fit on a context line."""


class Holds(IntFlag):
    """The reasons for including a memory in every context; ALLERGY implies HEALTH."""

    ALLERGY = 1
    HEALTH = 2
    OTHER = 4


def reasons_to_always_tell_memory(title: str | None, content: str, kind: str, category: str) -> Holds:
    """Return the reasons for including a memory in every context; none if its category is private."""
    if category.casefold() in PRIVATE_CATEGORIES:
        return Holds(0)
    found = reasons_to_always_tell_text(
        content if title is None or content.startswith(title) else f"{title}\n{content}"
    )
    is_preference = kind == "preference" or category.casefold() in _PREFERENCES
    return found | Holds.OTHER if is_preference else found


def reasons_to_always_tell_text(text: str) -> Holds:
    """Return the reasons for including `text` in every context, judging by its words."""
    words = WORD.findall(put_spaces_around_chinese(fold_phrase(text[:_READ])))
    # Most texts contain none of the phrases; finding that out takes a third of the time.
    likely = _build_phrases("allergies", "health", "prohibitions").possible_places(words)
    found = Holds(0)
    if any(_build_phrases("allergies").length_of_phrase_at(words, place) for place in likely):
        found |= Holds.ALLERGY | Holds.HEALTH
    elif any(_build_phrases("health").length_of_phrase_at(words, place) for place in likely):
        found |= Holds.HEALTH
    forbids = {place for place in likely if _build_phrases("prohibitions").length_of_phrase_at(words, place)}
    for place in _build_phrases("idioms").possible_places(words) if forbids else ():
        forbids.difference_update(
            range(place, place + _build_phrases("idioms").length_of_phrase_at(words, place))
        )
    return found | Holds.OTHER if forbids else found


@cache
def _build_phrases(*members: str) -> Phrases:
    """Return the phrases in the given members of `AlwaysWords`, for all languages combined."""
    languages = language_files.load_languages_with_table("always").values()
    words = (getattr(each.always, name) for each in languages for name in members)
    return Phrases(
        phrase for text in words for phrase in language_files.split_phrases(put_spaces_around_chinese(text))
    )

"""Finds phrases of the language files in a text, word by word."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain

WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
FOLDED = str.maketrans({"’": "'", "ё": "е"})
_FIRST_CHINESE = "\u3400"
_KEY = 3


class Phrases:
    """Phrases, indexed by their first words.

    `word*` matches the beginning of a word, `*word` its end, `*word*` any part of it.
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

    def length_at(self, words: Sequence[str], place: int) -> int:
        """Count the words of the longest phrase at `place`; 0 without one."""
        return max(
            (len(parts) for parts in self._likely(words[place]) if _is_at(parts, words, place)), default=0
        )

    def places(self, words: Sequence[str]) -> list[int]:
        """Where a phrase may begin, which takes a tenth of the time of `length_at`."""
        # A microsecond a word: a context asks this of each memory.
        one, two, ends = self._words, self._beginnings, self._ends
        return [
            place
            for place, word in enumerate(words)
            if word in one or word[:_KEY] in two or word[:2] in two or word[:1] in two or ends(word)
        ]

    def _likely(self, word: str) -> Iterable[list[str]]:
        beginnings = (self._beginnings.get(word[:length], ()) for length in range(1, _KEY + 1))
        return chain(self._words.get(word, ()), *beginnings, self._endings if self._ends(word) else ())


def folded(text: str) -> str:
    """`text` as phrases are written: lower case, `'` for each apostrophe, е for ё."""
    return unicodedata.normalize("NFKC", text).casefold().translate(FOLDED)


def spaced(text: str) -> str:
    """`text` with spaces around each Chinese character, which is a word of its own."""
    if max(text, default="") < _FIRST_CHINESE:
        return text
    return "".join(f" {letter} " if is_chinese(letter) else letter for letter in text)


def is_chinese(letter: str) -> bool:
    """Whether a letter is a Chinese character."""
    # An expression with these ranges takes 2 ms to compile.
    return _FIRST_CHINESE <= letter <= "\u9fff" or "\uf900" <= letter <= "\ufaff"


def _is_at(parts: Sequence[str], words: Sequence[str], place: int) -> bool:
    here = words[place : place + len(parts)]
    return len(here) == len(parts) and all(map(_is, parts, here))


def _is(part: str, word: str) -> bool:
    if part.endswith("*"):
        return part[1:-1] in word if part.startswith("*") else word.startswith(part[:-1])
    return word.endswith(part[1:]) if part.startswith("*") else word == part

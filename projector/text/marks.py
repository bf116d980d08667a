"""Finds the words in a text that match a question."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memlog.projector.text import stemming
from memlog.projector.text.analyzer import find_words
from memlog.projector.text.stemming import latin_languages
from memlog.projector.text.tokens import fold_text, is_spaceless, strip_diacritics

_SHORTEST_STEM = 3
"""The fewest letters of a stem: too many words begin with a shorter one, such as "te" from tea."""


class Marks(NamedTuple):
    """The n-grams and word prefixes that a question looks for in a text."""

    pairs: tuple[str, ...] = ()
    beginnings: tuple[str, ...] = ()


def make_marks(words: Sequence[str]) -> Marks:
    """Return the marks for folded words, as returned by `split_into_written_words`."""
    return Marks(
        tuple(filter(is_spaceless, words)),
        tuple(_shortest_matching_stem(word) for word in words if not is_spaceless(word)),
    )


def find_first_marked_word(text: str, marks: Marks) -> int:
    """Return the position of the first word in `text` that matches `marks`; 0 if none does."""
    pairs = [text.find(pair) for pair in marks.pairs]
    word, _ = next(_marked_words(text, marks), (-1, -1))
    return min((place for place in (*pairs, word) if place >= 0), default=0)


def find_marked_spans(text: str, marks: Marks) -> list[tuple[int, int]]:
    """Return the (start, end) spans of `text` that match `marks`, merged and in order."""
    pairs = (place for pair in marks.pairs for place in _find_all_occurrences(pair, text))
    found: list[tuple[int, int]] = []
    for start, end in sorted([*_marked_words(text, marks), *pairs]):
        if found and start <= found[-1][1]:
            start, end = found[-1][0], max(end, found.pop()[1])
        found.append((start, end))
    return found


def _find_all_occurrences(part: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(part)
    while start >= 0:
        yield start, start + len(part)
        start = text.find(part, start + 1)


def _marked_words(text: str, marks: Marks) -> Iterator[tuple[int, int]]:
    return (match.span() for match in find_words(text) if fold_text(match[0]).startswith(marks.beginnings))


def _shortest_matching_stem(word: str) -> str:
    """Return the shortest stem, in any likely language, that `word` starts with; `word` if there is none."""
    foreign = stemming.stem_words([word], stemming.detect_languages([word]) or latin_languages())
    stems = map(strip_diacritics, [stemming.english_stem(word), *(stem for _, stem in foreign)])
    beginnings = (stem for stem in stems if len(stem) >= _SHORTEST_STEM and word.startswith(stem))
    return min(beginnings, key=len, default=word)

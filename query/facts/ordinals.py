"""Ordinals and numbers as words: `second`, вторая, `toisesta` are 2."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from memlog.projector.text.language_files import phrases
from memlog.query.facts.topic_keys import fact_words

_DIGITS = r"(\d{1,7})(\D\S*)"
_SIGNED = r"(?:#|№)(\d{1,7})"
_BARE = r"\d{1,7}"


def ordinal_at(words: Sequence[str], place: int, language: str) -> tuple[int, int] | None:
    """The ordinal at `place` and the number of its words; None if there is none.

    words: folded.
    """
    word = words[place]
    if word in _ordinals(language):
        return _ordinals(language)[word], 1
    if (number := _in_digits(word, language)) is not None:
        return number, 1
    for mark in phrases(fact_words()[language].numbers.marks):
        parts = mark.split()
        end = place + len(parts)
        if [*words[place:end]] == parts and end < len(words):
            number = number_of(words[end], language)
            return None if number is None else (number, len(parts) + 1)
    return None


def number_of(word: str, language: str) -> int | None:
    """The number in a word, in digits or spelled out; None if it is no number."""
    return int(word) if re.fullmatch(_BARE, word) else _cardinals(language).get(word)


def ordinal_words(language: str) -> Mapping[str, int]:
    """Ordinals by word, in all their forms, with the first ones in digits."""
    in_digits = fact_words()[language].numbers.in_digits.split()
    return {**_ordinals(language), **{word: number for number, word in enumerate(in_digits, 1)}}


def _in_digits(word: str, language: str) -> int | None:
    if signed := re.fullmatch(_SIGNED, word):
        return int(signed[1])
    digits = re.fullmatch(_DIGITS, word)
    is_ordinal = digits and digits[2] in fact_words()[language].numbers.digit_endings.split()
    return int(digits[1]) if digits and is_ordinal else None


@cache
def _ordinals(language: str) -> Mapping[str, int]:
    table = fact_words()[language].numbers
    endings = table.ordinal_endings.split()
    return {word: number for form, number in _numbered(table.ordinals) for word in _ended(form, endings)}


@cache
def _cardinals(language: str) -> Mapping[str, int]:
    return dict(_numbered(fact_words()[language].numbers.cardinals))


def _numbered(table: str) -> Iterator[tuple[str, int]]:
    for number, forms in enumerate(table.split()):
        for form in forms.split("/"):
            yield form, number


def _ended(form: str, endings: Sequence[str]) -> Sequence[str]:
    return [form[:-1] + ending for ending in endings] if form.endswith("-") else [form]

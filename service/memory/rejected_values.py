"""Recognises values that a person has rejected, in any notation, so that no model sets them again."""

import re
from collections.abc import Iterable, Mapping
from functools import cache

from memlog.eventlog.codec.content_ids import fold_content
from memlog.projector.text.stemming import stop_words_of_languages
from memlog.projector.text.tokens import is_cjk
from memlog.query.records import RejectedValue
from memlog.service.memory.compared_text import Text, is_in_dictionary, negates_next_word
from memlog.service.memory.duplicates import first_difference, similarity_of_near_duplicates
from memlog.service.memory.word_tables import load_patterns, load_tables, load_words


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return load_patterns(__file__)


@cache
def _digits_by_word() -> dict[str, str]:
    numbers = load_tables(__file__)["words"]["numbers"].split()
    return {word: str(number) for number, forms in enumerate(numbers) for word in forms.split("/")}


_YEAR = r"(?P<y>\d{4})"
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th|\.)?"
_DAYS = [
    re.compile(rf"\b{_YEAR}[-/.年 ]+(?P<m>\d{{1,2}})[-/.月 ]+(?P<d>\d{{1,2}})(?!\d)"),
    re.compile(rf"\b(?P<d>\d{{1,2}})[-/. ]+(?P<m>\d{{1,2}})[-/. ]+{_YEAR}\b"),
    re.compile(rf"\b(?P<m>\d{{1,2}})[-/]+(?P<d>\d{{1,2}})[-/]+{_YEAR}\b"),
    re.compile(rf"\b{_DAY}(?: of)? (?P<name>[^\W\d]+)\.?,? {_YEAR}\b"),
    re.compile(rf"\b(?P<name>[^\W\d]+)\.? {_DAY},? {_YEAR}\b"),
]

_PHONE = re.compile(r"\+?\(?\d[\d ()./-]{5,}\d")
_OWN_DIGITS = 7
"""How many final digits all notations of a telephone number share."""


def to_digits(word: str) -> str:
    """Return the digits of a small number word, such as `2` for `two`; any other word unchanged."""
    return _digits_by_word().get(word, word)


def find_days(text: str) -> set[tuple[int, int, int]]:
    """Return the days in a folded text as (year, month, day); both readings of an ambiguous date."""
    found = (match.groupdict() for pattern in _DAYS for match in pattern.finditer(text))
    return {
        (int(each["y"]), month, int(each["d"]))
        for each in found
        for month in _parse_months(each.get("m"), each.get("name") or "")
    }


def find_phones(text: str) -> set[str]:
    """Return the last digits of the telephone numbers in a text."""
    bare = (re.sub(r"\D", "", match[0]) for match in _PHONE.finditer(text) if not find_days(match[0]))
    return {digits[-_OWN_DIGITS:] for digits in bare if len(digits) >= _OWN_DIGITS}


def _parse_months(number: str | None, name: str) -> list[int]:
    if number is not None:
        return [int(number)] if 1 <= int(number) <= 12 else []
    months = load_tables(__file__)["words"]["months"].split()
    return [at for at, begins in enumerate(months, 1) if re.match(begins, name)]


_LONGEST = 2000
"""The maximum number of characters in a value that is compared by its words."""

_STEM = 5
"""How many leading letters the forms of a word share: smoker, smokes; allergies, allergic."""

_SHORTEST = 3
"""The minimum number of letters in a meaningful word of a key."""

_MOST_MORE = 3
"""How many words a value may add or omit, under a similar key, and still say the same."""

_LEAST_PART = 0.5
"""The fraction of a rejected value's words that suffices to say the same under any key."""

_LONG_STEM, _SHORT_STEM = 8, 4


def is_rejected(key: str, value: str, rejected: Iterable[RejectedValue]) -> bool:
    """Whether a person has rejected this value, a similar value, or a value that this value contains."""
    return any(_is_same_value(key, value, each) for each in rejected)


def _is_same_value(key: str, value: str, old: RejectedValue) -> bool:
    are_alike = any(
        this.startswith(that[:_STEM]) or that.startswith(this[:_STEM])
        for this in _split_key(key)
        for that in _split_key(old.key)
        if min(len(this), len(that)) >= _SHORTEST
    )
    if len(old.value) > _LONGEST:
        return fold_content(value) == fold_content(old.value)
    if _is_same_notation(value, old.value) or _has_all_significant_words(value, old):
        return True
    new_words, old_words = _token_words(value), _token_words(old.value)
    if new_words == old_words:
        return are_alike or not _is_bare_answer(value)
    if not new_words or not old_words:
        return False
    if _is_bare_answer(old.value):
        return are_alike and old_words <= new_words
    new, was = Text(value), Text(old.value)
    if (
        similarity_of_near_duplicates(new, was) is not None
        or similarity_of_near_duplicates(was, new) is not None
    ):
        return True
    added, missing = new_words - old_words, old_words - new_words
    if any(negates_next_word(word) or word.isdigit() for word in added | missing) or (added and missing):
        return False
    if are_alike and len(added | missing) <= _MOST_MORE:
        return True
    if missing:
        return are_alike or len(new_words) >= _LEAST_PART * len(old_words)
    subject = _patterns()["subject"].match(fold_content(value))
    light = (
        load_words(__file__, "words", "light")
        | stop_words_of_languages(("english", "finnish"))
        | {*_split_key(key), *_split_key(old.key)}
        | ({subject[1]} if subject else set())
    )
    return added <= light


def _is_bare_answer(value: str) -> bool:
    return _patterns()["answer"].fullmatch(to_digits(fold_content(value).strip(" ."))) is not None


def _is_same_notation(value: str, old: str) -> bool:
    """Whether two values share a day or telephone number, or differ only in spaces and signs."""
    new, was = fold_content(value), fold_content(old)
    if not find_days(was).isdisjoint(find_days(new)) or not find_phones(was).isdisjoint(find_phones(new)):
        return True
    bare, bare_old = re.sub(r"[\W_\u00ad]+", "", new), re.sub(r"[\W_\u00ad]+", "", was)
    if not bare_old or _is_bare_answer(old):
        return False
    is_cjk_name = len(bare_old) > 1 and all(map(is_cjk, bare_old))
    return bare == bare_old or (is_cjk_name and bare_old in bare and not _contradicts(value, old))


def _has_all_significant_words(value: str, old: RejectedValue) -> bool:
    """Whether `value` has all significant words of the old value, in any form.

    A single significant word must be a name or a number: a common word may occur in any sentence.
    """
    if _is_bare_answer(old.value) or _contradicts(value, old.value):
        return False
    light = load_words(__file__, "words", "light") | stop_words_of_languages(("english", "finnish"))
    telling = {word for word in _token_words(old.value) if word not in light and word.isalnum()}
    if len(telling) == 1:
        (word,) = telling
        is_name = not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", old.value) or not is_in_dictionary(word)
        if not is_name and not word.isdigit():
            return False
    words = _token_words(value)
    return bool(telling) and all(any(_is_word_form(each, word) for each in words) for word in telling)


def _contradicts(value: str, old: str) -> bool:
    """Whether a value negates the old value, or puts it in the past."""
    added = _token_words(value) - _token_words(old)
    return any(map(negates_next_word, added)) or (
        _patterns()["past"].search(fold_content(value)) is not None
        and not _patterns()["past"].search(fold_content(old))
    )


def _is_word_form(word: str, of: str) -> bool:
    """Whether a word is a form of the word `of`, such as Oulussa for Oulu."""
    if word == of:
        return True
    common = first_difference(word, of)
    is_like = abs(len(word) - len(of)) <= _STEM and not of.isdigit() and len(of) >= _SHORT_STEM
    needed = len(of) - (3 if len(of) > _LONG_STEM else 2)
    if not is_like or common < needed:
        return False
    return common >= _SHORT_STEM or (common == _SHORTEST and _patterns()["cases"].search(word) is not None)


def _token_words(text: str) -> set[str]:
    return {to_digits(token.word) for token in Text(text).tokens}


def _split_key(key: str) -> list[str]:
    return [part for part in fold_content(key).split("_") if part]

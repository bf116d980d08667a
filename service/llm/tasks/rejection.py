"""Tells whether a value of the profile is one that somebody has removed or replaced, under any key."""

import re
from collections.abc import Iterable

from memlog.eventlog.codec.content_ids import folded
from memlog.projector.text.stemming import stop_words_in
from memlog.projector.text.tokens import is_cjk
from memlog.query.core_memory import RejectedValue
from memlog.service.llm.answers import LONGEST
from memlog.service.memory.compared_text import Text, is_known, negates
from memlog.service.memory.duplicates import similarity

_MONTHS = [
    "jan|янв|tammi",
    "feb|фев|helmi",
    "mar(?!ras)|мар|maalis|mär",
    "apr|апр|huhti",
    "may|ма[йя]|touko|mai",
    "jun|июн|kesä",
    "jul|июл|heinä",
    "aug|авг|elo",
    "sep|сен|syys",
    "oct|окт|loka|okt",
    "nov|ноя|marras",
    "dec|дек|joulu|dez",
]
"""How the names of the months begin."""

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
"""Digits at the end of a telephone number that belong to it in every notation."""

_NUMBERS = {
    word: str(number)
    for number, words in enumerate(
        [
            "zero ноль nolla 零",
            "one один одна yksi 一",
            "two два две двое kaksi 二 两 兩",
            "three три трое kolme 三",
            "four четыре четверо neljä 四",
            "five пять viisi 五",
            "six шесть kuusi 六",
            "seven семь seitsemän 七",
            "eight восемь kahdeksan 八",
            "nine девять yhdeksän 九",
            "ten десять kymmenen 十",
            "eleven одиннадцать yksitoista 十一",
            "twelve двенадцать kaksitoista 十二",
        ]
    )
    for word in words.split()
}


def in_digits(word: str) -> str:
    """Return a small number in digits: `2` for `two`; any other word as it is."""
    return _NUMBERS.get(word, word)


def days_in(text: str) -> set[tuple[int, int, int]]:
    """Return the days that a folded text names, each with year, month and day; an ambiguous one twice."""
    found = (match.groupdict() for pattern in _DAYS for match in pattern.finditer(text))
    return {
        (int(each["y"]), month, int(each["d"]))
        for each in found
        for month in _months(each.get("m"), each.get("name") or "")
    }


def phones_in(text: str) -> set[str]:
    """Return the ends of the telephone numbers in a text, in which all notations agree."""
    bare = (re.sub(r"\D", "", match[0]) for match in _PHONE.finditer(text) if not days_in(match[0]))
    return {digits[-_OWN_DIGITS:] for digits in bare if len(digits) >= _OWN_DIGITS}


def _months(number: str | None, name: str) -> list[int]:
    if number is not None:
        return [int(number)] if 1 <= int(number) <= len(_MONTHS) else []
    return [at for at, begins in enumerate(_MONTHS, 1) if re.match(begins, name)]


_STEM = 5
"""Letters by which two forms of a word are known: smoker, smokes."""

_SHORTEST = 3
"""Letters of a word of a key that tells what the key is about."""

_MOST_MORE = 3
"""Words that a value may add, or leave out, under a key like the old one, and say the same."""

_LEAST_PART = 0.5
"""Of the words of a rejected value, the part that says the same under any key."""

_ANSWER = re.compile(r"yes|no|true|false|none|\d|да|нет|是|否|有|无|没有|kyllä|ei|on")
"""A value that says nothing without its key."""

_LIGHT = frozenset(
    "user lives living resides resident based works working likes loves prefers speaks uses has drinks eats"
    " wants near city suffers suffering diagnosed married since home"
    " asuu tykkää käyttää puhuu живет живёт любит работает 住 在 喜 欢 户 用".split()
)
"""Words that a sentence has around a value."""

_PAST = re.compile(
    r"\b(?:moved|left|former(?:ly)?|previous(?:ly)?|until|earlier|переехал\w*|раньше|бывш\w*|muutti\w*|entinen"
    r"|aiemmin)\b|搬|以前|曾"
)
"""What says that a value held once, which is another one."""

_CASES = re.compile(r"(?:ss[aä]|st[aä]|ll[aä]|lt[aä]|lle|un)$")
"""Endings before which Finnish changes a stem: Turku, Turussa."""

_LONG_STEM, _SHORT_STEM = 8, 4

_SUBJECT = re.compile(
    r"(?:the )?(\w+) (?:is|has|lives|works|likes|loves|prefers|speaks|uses|drinks|eats|wants)\b"
)


def is_rejected(key: str, value: str, rejected: Iterable[RejectedValue]) -> bool:
    """Whether a value is among the rejected ones: the same, nearly so, or with other words around it."""
    return any(_is_same(key, value, each) for each in rejected)


def _is_same(key: str, value: str, old: RejectedValue) -> bool:
    are_alike = _are_alike(key, old.key)
    if len(old.value) > LONGEST:
        return folded(value) == folded(old.value)
    if _is_same_notation(value, old.value) or _has_all_that_tells(value, old):
        return True
    new_words, old_words = _words(value), _words(old.value)
    if new_words == old_words:
        return are_alike or not _is_answer(value)
    if not new_words or not old_words:
        return False
    if _is_answer(old.value):
        return are_alike and old_words <= new_words
    if any(similarity(*texts) is not None for texts in _both_ways(value, old.value)):
        return True
    added, missing = new_words - old_words, old_words - new_words
    if any(negates(word) or word.isdigit() for word in added | missing) or (added and missing):
        return False
    if are_alike and len(added | missing) <= _MOST_MORE:
        return True
    if missing:
        return are_alike or len(new_words) >= _LEAST_PART * len(old_words)
    subject = _SUBJECT.match(folded(value))
    light = (
        _LIGHT
        | stop_words_in(("english", "finnish"))
        | {*_parts(key), *_parts(old.key)}
        | ({subject[1]} if subject else set())
    )
    return added <= light


def _is_answer(value: str) -> bool:
    return _ANSWER.fullmatch(in_digits(folded(value).strip(" ."))) is not None


def _is_same_notation(value: str, old: str) -> bool:
    """Whether a value has the days or the telephone numbers of an old one, or only other spaces and signs."""
    new, was = folded(value), folded(old)
    if not days_in(was).isdisjoint(days_in(new)) or not phones_in(was).isdisjoint(phones_in(new)):
        return True
    bare, bare_old = re.sub(r"[\W_\u00ad]+", "", new), re.sub(r"[\W_\u00ad]+", "", was)
    if not bare_old or _is_answer(old):
        return False
    is_cjk_name = len(bare_old) > 1 and all(map(is_cjk, bare_old))
    return bare == bare_old or (is_cjk_name and bare_old in bare and not _turns_round(value, old))


def _has_all_that_tells(value: str, old: RejectedValue) -> bool:
    """Whether a value has all significant words of an old one, in any form: names and numbers, or several.

    One common word may stand in any sentence.
    """
    if _is_answer(old.value) or _turns_round(value, old.value):
        return False
    light = _LIGHT | stop_words_in(("english", "finnish"))
    telling = {word for word in _words(old.value) if word not in light and word.isalnum()}
    if len(telling) == 1:
        (word,) = telling
        is_name = not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", old.value) or not is_known(word)
        if not is_name and not word.isdigit():
            return False
    words = _words(value)
    return bool(telling) and all(any(_is_form(each, word) for each in words) for word in telling)


def _turns_round(value: str, old: str) -> bool:
    """Whether a value denies what the old one says, or says that it held once."""
    added = _words(value) - _words(old)
    return any(map(negates, added)) or (
        _PAST.search(folded(value)) is not None and not _PAST.search(folded(old))
    )


def _is_form(word: str, of: str) -> bool:
    """Whether a word is a form of another one: Oulussa, Oulu."""
    if word == of:
        return True
    common = next((n for n, (one, other) in enumerate(zip(word, of, strict=False)) if one != other), None)
    common = min(len(word), len(of)) if common is None else common
    is_like = abs(len(word) - len(of)) <= _STEM and not of.isdigit() and len(of) >= _SHORT_STEM
    needed = len(of) - (3 if len(of) > _LONG_STEM else 2)
    if not is_like or common < needed:
        return False
    return common >= _SHORT_STEM or (common == _SHORTEST and _CASES.search(word) is not None)


def _both_ways(one: str, other: str) -> Iterable[tuple[Text, Text]]:
    texts = Text(one), Text(other)
    return texts, texts[::-1]


def _words(text: str) -> set[str]:
    return {in_digits(token.word) for token in Text(text).tokens}


def _parts(key: str) -> list[str]:
    return [part for part in folded(key).split("_") if part]


def _are_alike(one: str, other: str) -> bool:
    """Whether two keys share a word, in any form."""
    return any(
        this.startswith(that[:_STEM]) or that.startswith(this[:_STEM])
        for this in _parts(one)
        for that in _parts(other)
        if min(len(this), len(that)) >= _SHORTEST
    )

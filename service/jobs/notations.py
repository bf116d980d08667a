"""Reads what may be written in several ways: days, telephone numbers, small numbers."""

import re

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

"""Finds values behind names in texts of people: `my password is …`, in several scripts and notations.

For what is sent to providers, and for warnings: memlog masks these values nowhere else, since a plain text
may look so, too. The search is linear: each pattern reads a bounded number of characters behind a name.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from memlog.eventlog.key_shapes import APART, OPAQUE_WORD, SHAPES

_STEMS = "pass pw kennw salasana парол contraseña 密 口令 api secret token".split()
"""A text without any holds no name."""

_NAME = (
    r"(?:(?P<password>passw(?:or[dt]|d)s?|passwörter|pass(?:phrase|code)s?|kennw(?:ort|örter)|salasana"
    r"|парол[ьи]|contraseñas?|密码|密碼|口令"
    r"|(?<![^\W_])(?:pg)?(?:pass|pwd?)(?=[\"'`*]{0,3}\s{0,2}[:=：]\s?[\"'`]{0,2}[^\s\d]{0,63}\d))"
    r"|api[ _-]?key|secret|token)"
)
_VALUE = r"(?:[^\s\"'`*»”<,;\[\]]|[,;](?=[^\s\"'\]])){4,128}"
_DIGIT = r"(?=[^\s\d]{0,63}\d)"
_QUOTES = r"[\s\"'`*«“>-]{0,4}"
_MORE = rf"(?:,\s{_DIGIT}{_VALUE}){{0,4}}"

_BEHIND = (
    # password: …
    rf"[\s\"'`*]{{0,3}}[:=：]{_QUOTES}(?=[^\s]{{4}})({_VALUE}{_MORE})",
    # password: "… …"
    r"[\s\"'`*]{0,3}[:=：]\s{0,3}(?:\"(?!\[REDACTED:)([^\"\n]{4,128})\"|“([^”\n]{4,128})”|'([^'\n]{4,128})')",
)
# the password is …
_IS = (
    rf"(?:(?:\s(?:is|was|ist|war|on|это|will\sbe)|['’]s)(?:\s(?:now|jetzt))?[\s:]{{1,3}}|是)[\"'`*«“]{{0,2}}"
    rf"(?=\D{{0,63}}\d)({_VALUE})"
)
# Password …
_NEXT = rf"\s[\"'`]?{_DIGIT}(?=[^\sA-Za-z]{{0,63}}[A-Za-z])([^\s\"'`<>,;()\[\]]{{6,128}})"
# password for the wifi: …, password (wifi) → …, | password | …, <password>…
_SEPARATOR = r"[:=：|→>–\n]|\sis\s|\sist\s"
_BEHIND_SEPARATOR = rf"{_QUOTES}{_DIGIT}({_VALUE})"
_GAP = 44
_FLAG = rf"--[\w-]{{0,32}}?{_NAME}[ =][\"']?{_DIGIT}([^\s\"'`<>,;()\[\]]{{4,128}})"
_WORDS = r"passphrase[\s\"'`*]{0,3}(?:[:=：]|\sis\s)\s{0,3}(?!\[REDACTED:)([^\s][^\n]{3,128})"
_VERBS = frozenset("is as was ist als".split())
_BEFORE = 160
"""Characters before a name in which its value may stand: `… is the password`."""
_REACH = 200
"""Characters behind a name in which the digit of its value stands."""

_TAIL = 300
"""Characters of the end of a text in which a key may begin."""

_SHORTEST_START = 4
"""Characters of a fixed text that tells a key which is cut off behind it; `sk-` does, too."""


def named_values(text: str) -> Iterator[tuple[int, int]]:
    """Yield the place of each value that a name in the text tells."""
    if not may_name(text):
        return
    digit, digits = -1, _compiled(r"\d")
    for name in _compiled(_NAME).finditer(text):
        end = name.end()
        patterns = [*_BEHIND]
        if digit < end:
            digit = found.start() if (found := digits.search(text, end)) else len(text) + _REACH
        if is_near := digit - end < _REACH:
            patterns.append(_IS)
        for pattern in patterns:
            if match := _compiled(pattern).match(text, end):
                yield match.span(match.lastindex or 0)
        if name["password"]:
            if is_near:
                yield from _loosely_behind(text, end)
            yield from _before(text, name.start())
    for pattern in (_FLAG, _WORDS):
        for match in _compiled(pattern).finditer(text):
            yield match.span(1)


def _loosely_behind(text: str, end: int) -> Iterator[tuple[int, int]]:
    """Return the value behind a name that ends at `end`, and behind other words."""
    separator = _compiled(_SEPARATOR).search(text, end, end + _GAP)
    for pattern, start in ((_NEXT, end), (_BEHIND_SEPARATOR, separator.end() if separator else len(text))):
        if match := _compiled(pattern).match(text, start):
            yield match.span(1)


def _before(text: str, start: int) -> Iterator[tuple[int, int]]:
    """The value before a name that begins at `start`: `… is the password`."""
    head = text[max(0, start - _BEFORE) : start]
    if not _compiled(r"\d").search(head):
        return
    words = head.split()[-6:]
    for word, verb in pairwise(words):
        if verb.casefold() in _VERBS and opaque_words(word):
            at = text.rindex(word, 0, start)
            yield at, at + len(word)


def may_name(text: str) -> bool:
    """Whether a text may hold a name of a value. Most do not: this is cheap."""
    folded = text.casefold()
    return any(stem in folded for stem in _STEMS)


def opaque_words(text: str) -> list[tuple[int, int]]:
    """Return the places of the words that may be keys: letters and digits."""
    return [match.span(1) for match in _opaque().finditer(text)]


def begun_key(text: str) -> tuple[int, int] | None:
    """Return the place of a key that is cut off at the end of a text, by the fixed text it begins with."""
    start = max(0, len(text) - _TAIL)
    match = _begun().search(text, start)
    return match.span(1) if match else None


@cache
def _begun() -> re.Pattern[str]:
    fixed = {each for shape in SHAPES if shape.before == APART for each in shape.fixed.split()}
    starts = ["sk-", *(each for each in fixed if len(each) >= _SHORTEST_START and each[-1] in "-_.")]
    either = "|".join(map(re.escape, starts))
    rest = r"(?=[^\s\d]{0,63}\d)[\w.+/=-]{8,200}"
    return re.compile(rf"{APART}((?:{either}){rest})[\s…\"'`*).]{{0,8}}\Z", re.ASCII)


@cache
def _opaque() -> re.Pattern[str]:
    return re.compile(OPAQUE_WORD, re.ASCII)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled at first use: most processes send nothing."""
    return re.compile(pattern, re.IGNORECASE)

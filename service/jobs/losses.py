"""What a text loses of the memories that it is to stand for, or makes up.

In doubt it has lost something, and the memories stay as they are.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from memlog.eventlog.text import nfkc
from memlog.projector.text import stemming
from memlog.projector.text.holding import Holds, by_words
from memlog.projector.text.language_files import languages
from memlog.projector.text.spaceless import is_cjk
from memlog.projector.text.stemming import ENGLISH
from memlog.service.memories.compared_text import cut, is_known
from memlog.service.memories.meaning_words import fills, joins, turns

_MOST = 2 / 3
"""Of the content words of a sentence: with so many it is covered. Of health, with all."""

_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|[。！？；;\n]+")
_CLAUSE_ENDS = re.compile(r"(?<!\d)[,:]|[,:](?!\d)|[—–()，、：（）]|\s-\s")
_THOUSANDS = re.compile(r"(?<=\d)[,'’\u00a0\u202f](?=\d{3}(?!\d))")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_CHINESE_LIMIT = re.compile("最多|最少|至多|至少|以前|以后|之前|之后|以内|曾")
_CHINESE_NUMBER = re.compile("[零〇二两三四五六七八九十百千万亿]")
_VERB_ENDINGS = ("s", "ed", "ing")

_CONTRASTS = frozenset("but however while yet а но зато mutta vaan 但 而 却".split())
"""They begin a clause; those of each language that join equal parts are in its file."""

_LIMITS = frozenset(
    "most least more less few until before after used"
    " больше меньше до после раньше enemmän vähemmän ennen".split()
)
"""Beside the words that turn a sentence and are no function words."""

_CHINESE = "chinese"
_CHINESE_NEGATIONS = frozenset("不没未无别勿莫非")
_VERY = "非常"
"""It contains a sign of negation, and negates nothing."""

_CURRENCIES = {
    "€": "€ eur euro* евро 欧",
    "$": "$ usd dollar* доллар* dollari* 美",
    "£": "£ gbp pound* фунт* punta* punna* 镑",
    "¥": "¥ cny rmb yuan* yen* юан* иен* 元 块",
    "₽": "₽ rub rouble* ruble* руб* rupla* 卢",
    "%": "% percent* процент* prosent*",
}
"""By a sign the words, and the Chinese characters, that say the same."""


class _ClauseWords(NamedTuple):
    """The content words of a part of a sentence, those that its negation is about, and its numbers."""

    words: frozenset[str]
    denied: frozenset[str]
    numbers: frozenset[str]

    def has_numbers_in(self, others: Sequence["_ClauseWords"]) -> bool:
        """Whether each of its numbers stands beside one of its words in another clause, too."""
        return not self.words or all(
            any(number in each.numbers and (not each.words or each.words & self.words) for each in others)
            for number in self.numbers
        )


class _Statement(NamedTuple):
    """What a text says that another one may lose.

    subjects: words with a capital that begin a sentence; names: that do not. limits: words such as "Monday",
        "twelve", "stopped".
    """

    numbers: Counter[str]
    prices: set[str]
    names: set[str]
    subjects: set[str]
    limits: set[str]
    sentences: list[frozenset[str]]
    clauses: list[_ClauseWords]

    @property
    def words(self) -> frozenset[str]:
        """All content words."""
        return frozenset(self.limits).union(*self.sentences)

    def denies_more_than(self, clauses: Iterable[_ClauseWords], words: frozenset[str]) -> bool:
        """Whether it denies what others, with these clauses and words, say without denying it."""
        denied = frozenset().union(*(clause.words for clause in clauses if clause.denied))
        return any(
            clause.denied and not ((told := clause.denied & words) and told <= denied)
            for clause in self.clauses
        )


def loss(sources: Sequence[str], text: str) -> str | None:
    """Return what `text` loses of `sources`, such as "a number", or what it makes up; None where it says
    what they say.
    """
    language = _language_of(" ".join(sources))
    merged = _said(text, language)
    told = [_said(source, language) for source in sources]
    words, clauses = merged.words, merged.clauses
    joined = [*_with_appositions(clauses)]
    for source, each in zip(sources, told, strict=True):
        most = 1.0 if by_words(source) & Holds.HEALTH else _MOST
        lost = {
            "a number": bool(each.numbers - merged.numbers)
            or not all(clause.has_numbers_in(joined) for clause in each.clauses),
            "a price": bool(each.prices - merged.prices),
            "a date or a limit": bool(each.limits - words),
            "a name": bool((each.names | each.subjects) - words),
            "a negation": each.denies_more_than(clauses, words),
            "a sentence": any(len(said & words) < most * len(said) for said in each.sentences),
        }
        if any(lost.values()):
            return next(what for what, is_lost in lost.items() if is_lost)
    words = frozenset().union(*(each.words for each in told))
    clauses = [clause for each in told for clause in each.clauses]
    numbers = {number for each in told for number in each.numbers}
    made_up = {
        "a number that nobody named": bool(merged.numbers.keys() - numbers),
        "a name that nobody named": bool(merged.names - words),
        "a negation that nobody said": merged.denies_more_than(clauses, words),
    }
    return next((what for what, is_made_up in made_up.items() if is_made_up), None)


def _language_of(text: str) -> str:
    found = stemming.language_of(text)
    return _CHINESE if found == stemming.OTHER_SCRIPT and any(map(is_cjk, text)) else found


def _said(text: str, language: str) -> _Statement:
    plain = _THOUSANDS.sub("", nfkc(text)).replace(_VERY, "")
    limits = {*_CHINESE_LIMIT.findall(plain)}
    said = _Statement(Counter(_numbers(plain)), set(), set(), set(), limits, [], [])
    for sentence in filter(str.strip, _SENTENCE_ENDS.split(plain)):
        first, begins = len(said.clauses), True
        for part in filter(str.strip, _CLAUSE_ENDS.split(sentence)):
            for pieces in _clauses(part):
                said.clauses.append(_read(said, pieces, language, begins=begins))
                begins = False
        said.sentences.append(frozenset().union(*(each.words for each in said.clauses[first:])))
    return said


def _numbers(plain: str) -> Iterator[str]:
    yield from (number.replace(",", ".").lstrip("0") or "0" for number in _NUMBER.findall(plain))
    yield from _CHINESE_NUMBER.findall(plain)


def _with_appositions(clauses: Iterable[_ClauseWords]) -> Iterator[_ClauseWords]:
    """Yield clauses, those of one word with the words of the one before: "the rent, 900 euros"."""
    before = frozenset[str]()
    for clause in clauses:
        yield clause._replace(words=clause.words | before) if len(clause.words) == 1 else clause
        before = clause.words


def _clauses(part: str) -> Iterator[list[str]]:
    """Yield the words between those that join clauses."""
    words: list[str] = []
    for piece, _, _ in cut(part):
        if joins(piece.lower()) or piece.lower() in _CONTRASTS:
            yield words
            words = []
        else:
            words.append(piece)
    yield words


def _read(said: _Statement, pieces: list[str], language: str, *, begins: bool) -> _ClauseWords:
    """Note what the words of a clause say, and return its content words."""
    words, denied, is_denied = set[str](), set[str](), False
    is_shouted = len(pieces) > 1 and "".join(pieces).isupper()
    for number, piece in enumerate(pieces):
        word = piece.lower().replace("ё", "е").replace("’", "'").removesuffix("'s")
        said.prices.update(sign for sign, spelt in _currencies().items() if spelt.fullmatch(word))
        if _negates(word, language):
            is_denied, denied = True, set()
            continue
        if not word.isalpha() or _is_empty(word, language):
            continue
        stem = _stem(word, language)
        words.add(stem)
        denied.add(stem)
        if turns(word) or word in _LIMITS:
            said.limits.add(stem)
        elif piece[0].isupper() and not is_shouted:
            if not begins or number > 0:
                said.names.add(stem)
            elif not _is_verb(word, language):
                said.subjects.add(stem)
    numbers = frozenset(number for piece in pieces for number in _numbers(piece))
    return _ClauseWords(frozenset(words), frozenset(denied or words) if is_denied else frozenset(), numbers)


@cache
def _currencies() -> dict[str, re.Pattern[str]]:
    return {
        sign: re.compile("|".join(re.escape(word).replace(r"\*", r"\w{0,4}") for word in words.split()))
        for sign, words in _CURRENCIES.items()
    }


def _negates(word: str, language: str) -> bool:
    return word in _negations(language) or word.endswith("n't")


_FOREIGN_NEGATIONS = frozenset(
    "nicht kein keine keinen keinem keiner keines nie niemals nichts niemand pas jamais rien aucun aucune"
    " nunca jamás nadie ninguno ninguna ningún non mai nessuno nessuna não ninguém nenhum nenhuma"
    " inte aldrig ingen inget niet geen nooit".split()
)
"""Words of negation of languages that memlog has no other words of, and does not tell apart in a sentence:
none of them is another word of those that it knows."""


@cache
def _negations(language: str) -> frozenset[str]:
    """The words of negation of a language; one without a table of its own has them among those that turn."""
    if language == _CHINESE:
        return _CHINESE_NEGATIONS
    known = languages("memories").get(language)
    words = "" if known is None else known.memories.negating or known.memories.turning
    return frozenset(words.split()) | _FOREIGN_NEGATIONS


def _is_empty(word: str, language: str) -> bool:
    if word in _LIMITS:
        return False
    return word in stemming.stop_words().get(language, ()) or fills(word, language)


def _is_verb(word: str, language: str) -> bool:
    """Whether a word that begins a sentence is an English verb, as in "Prefers tea"."""
    stems = (word.removesuffix(ending) for ending in _VERB_ENDINGS if word.endswith(ending))
    return language == ENGLISH and any(is_known(stem) or is_known(f"{stem}e") for stem in stems)


def _stem(word: str, language: str) -> str:
    if language == ENGLISH and stemming.is_latin(word):
        return stemming.english_stem(word)
    return next((stem for _, stem in stemming.stems([word], [language])), word)

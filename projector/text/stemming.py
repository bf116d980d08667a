"""What language a text is in, as far as finding its words needs it, and the stems of its words.

A script with one language here names it: Russian, Greek, Arabic, Hindi, Tamil, Armenian. So a word of these
has one stem wherever it stands. Latin letters are read in the language whose stop words and letters of its
own the text has most of; several may be equal. A text that has none of either is in no language.

English has no stems here: FTS5's porter makes them.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from operator import itemgetter
from typing import Protocol

from memlog.projector.text import language_files
from memlog.projector.text.language_files import TextWords

ENGLISH = "english"

_MOST_LANGUAGES = 4

# What tells of a language, and how much: letters are in more languages than stop words are, the rest in all.
_OF_A_STOP_WORD = 4
_OF_A_LETTER = 2
_OF_AN_ENDING = 1

_LATIN_ENDS = 0x024F
_MORE_LATIN = 0x1E00  # Vietnamese, and letters with dots
_SHORTEST = 3
_LONGEST = 64
"""Characters; what is longer is no word, and a stemmer takes the square of its length."""


class _Stemmer(Protocol):
    def stemWords(self, words: list[str]) -> list[str]: ...  # noqa: N802


def snowball_version() -> str:
    """The version of the stemmers; another one may have other stems."""
    import Stemmer

    return str(Stemmer.version())


@cache
def stop_words() -> dict[str, frozenset[str]]:
    """By language the words that carry grammar, in lower case."""
    texts = ((name, language.text) for name, language in language_files.languages("text").items())
    return {name: frozenset(f"{text.stop_words} {text.more_stop_words}".split()) for name, text in texts}


@cache
def latin() -> tuple[str, ...]:
    """The languages in Latin letters of which the index has stems."""
    return tuple(name for name in _told_apart() if name != ENGLISH)


@cache
def with_own_letters() -> frozenset[str]:
    """The languages that each word shows by its letters."""
    return frozenset(name for _, _, name, _ in _scripts())


def is_plain_english(text: str) -> bool:
    """Whether a text is seen at once to be English, or to have nothing of another language in Latin letters.

    False says nothing.
    """
    for sign in _english_signs():
        if sign in text:
            return True
    if not text.isascii():
        return False
    words = text.lower().replace(".", " ").replace(",", " ").split()
    foreign = sum(map(_foreign_words().__contains__, words))
    if sum(map(_english_words().__contains__, words)) > foreign:
        return True
    return not (
        foreign
        or any(pair in text for pair in _languages_of_pairs())
        or not _foreign_endings().isdisjoint([word[-3:] for word in words])
    )


def languages(words: Iterable[str], *, by_letters: bool = True) -> tuple[str, ...]:
    """The likeliest languages of a text; none where nothing tells.

    words: in Latin letters and lower case.
    by_letters: False where stop words alone may tell.
    """
    words = tuple(words)
    scores = Counter[str]()
    for word in words:
        for name in _languages_of_stop_words().get(word, ()):
            scores[name] += _OF_A_STOP_WORD
        for name in _languages_of_endings().get(word[-3:], ()):
            scores[name] += _OF_AN_ENDING
    text = " ".join(words)
    for pair, names in _languages_of_pairs().items():
        if pair in text:
            for name in names:
                scores[name] += _OF_AN_ENDING
    for letter in set() if text.isascii() else set(text):
        for name, worth in _languages_of_letters().get(letter, ()):
            scores[name] += worth
    best = max(scores.values(), default=0)
    if best < (1 if by_letters else _OF_A_STOP_WORD):
        return ()
    return tuple(name for name in _told_apart() if scores[name] == best)[:_MOST_LANGUAGES]


def stems(words: Iterable[str], latin: Collection[str]) -> list[tuple[str, str]]:
    """Words with their stems, in no particular order; those in Latin letters in each language of `latin`.

    words: in lower case. Stop words of a language have no stem in it, words of one or two letters and
    very long ones none.
    """
    by_language: dict[str, list[str]] = {}
    for word in words:
        for name in _languages_of(word, latin):
            if word not in _stop_words_of(name):
                by_language.setdefault(name, []).append(word)
    return [
        pair for name, said in by_language.items() for pair in zip(said, _stems_in(name, said), strict=True)
    ]


def english_stem(word: str) -> str:
    """The stem as FTS5 makes it, for what looks at words outside of SQLite."""
    return _stemmer("porter").stemWords([word])[0] if len(word) <= _LONGEST else word


def is_latin(word: str) -> bool:
    """Whether `word` begins with a letter of a to z, or one made from them."""
    first = ord(word[0])
    return word[0].isalpha() and (first <= _LATIN_ENDS or _MORE_LATIN <= first < _MORE_LATIN + 0x100)


def is_mostly_latin(text: str) -> bool:
    """Whether at least half of the letters of `text` are Latin, so that a model of English can read it.

    True without any letter.
    """
    if text.isascii():
        return True
    letters = [letter for letter in text if letter.isalpha()]
    return 2 * sum(map(is_latin, letters)) >= len(letters)


def _stems_in(language: str, words: list[str]) -> list[str]:
    text = language_files.languages("text")[language].text
    stems = _stemmer(text.stemmer).stemWords(words)
    dropped = text.dropped_endings
    return [_without_ending(stem, dropped) for stem in stems] if dropped else stems


def _without_ending(stem: str, dropped: str) -> str:
    """Snowball leaves liina and liino of liinaa and liinoja, koira and koir of koiraa and koiria."""
    return stem[:-1] if len(stem) > _SHORTEST and stem[-1] in dropped else stem


def _languages_of(word: str, latin: Collection[str]) -> Collection[str]:
    first = ord(word[0])
    if not _SHORTEST <= len(word) <= _LONGEST:
        return ()
    if first <= _LATIN_ENDS:
        return latin if word.isalpha() else ()
    for start, end, name, foreign in _scripts():
        if start <= first <= end:
            return (name,) if foreign.isdisjoint(word) else ()
    return ()


def _stop_words_of(language: str) -> frozenset[str]:
    return stop_words().get(language, frozenset())


@cache
def _told_apart() -> dict[str, TextWords]:
    """The languages that are told apart by their words, the preferred ones first."""
    texts = [(name, language.text) for name, language in language_files.languages("text").items()]
    found = [(text.preference, name, text) for name, text in texts if text.preference is not None]
    return {name: text for _, name, text in sorted(found, key=itemgetter(0, 1))}


@cache
def _scripts() -> tuple[tuple[int, int, str, frozenset[str]], ...]:
    """Per range of characters: its ends, its language, and the letters in it that are of other languages."""
    return tuple(
        (start, end, name, frozenset(language.text.foreign_letters))
        for name, language in language_files.languages("text").items()
        for start, end in language.text.characters
    )


@cache
def _english_signs() -> tuple[str, ...]:
    # Looking for them costs a tenth of looking at each word.
    return language_files.languages("text")[ENGLISH].text.signs


@cache
def _stemmer(language: str) -> _Stemmer:
    import Stemmer

    # Without its own cache: that was measured no faster, and it is what would be shared between threads.
    stemmer: _Stemmer = Stemmer.Stemmer(language, 0)
    return stemmer


@cache
def _languages_of_stop_words() -> dict[str, list[str]]:
    return _turned({name: stop_words()[name] for name in _told_apart()})


@cache
def _languages_of_endings() -> dict[str, list[str]]:
    return _turned({name: text.endings.split() for name, text in _told_apart().items()})


@cache
def _languages_of_pairs() -> dict[str, list[str]]:
    return _turned({name: text.pairs.split() for name, text in _told_apart().items()})


@cache
def _languages_of_letters() -> dict[str, list[tuple[str, int]]]:
    """For each letter that tells what it is worth for each language: less than nothing without it."""
    having = _turned({name: text.letters for name, text in _told_apart().items()})
    return {
        letter: [(name, _OF_A_LETTER if name in names else -_OF_A_LETTER) for name in latin()]
        for letter, names in having.items()
    }


@cache
def _foreign_words() -> frozenset[str]:
    return frozenset(_languages_of_stop_words()) - stop_words()[ENGLISH]


@cache
def _english_words() -> frozenset[str]:
    """The stop words that no other language has."""
    return frozenset(word for word, names in _languages_of_stop_words().items() if names == [ENGLISH])


@cache
def _foreign_endings() -> frozenset[str]:
    return frozenset(_languages_of_endings()) - frozenset(_told_apart()[ENGLISH].endings.split())


def _turned(signs: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """By each sign, the languages that have it."""
    turned = defaultdict[str, list[str]](list)
    for name, having in signs.items():
        for sign in having:
            turned[sign].append(name)
    return dict(turned)

"""Detects the language of a text, as precisely as search needs it, and stems words.

Languages with a script of their own (Russian, Greek, Arabic, Hindi, Tamil, Armenian) are detected word by
word from the letters. For text in Latin letters, the languages with the most stop words and special letters
win: several in a tie, none if there are no such words or letters. FTS5 stems English (porter).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from itertools import chain
from operator import itemgetter
from typing import NamedTuple, Protocol

from memlog.projector.text import language_files
from memlog.projector.text.language_files import TextWords

ENGLISH = "english"

_MOST_LANGUAGES = 4

# Weights of the signs of a language: a letter occurs in more languages than a stop word, an ending in most.
_OF_A_STOP_WORD = 4
_OF_A_LETTER = 2
_OF_AN_ENDING = 1

_LATIN_ENDS = 0x024F
_MORE_LATIN = 0x1E00  # Vietnamese, and letters with dots
_SHORTEST = 3
OTHER_SCRIPT = "other"
"""The language of a text in an unknown script."""

_SIGNS_IN = 400
"""Characters of a text to inspect for its language."""

_SIGNS = 2
_FEW_WORDS = 3
_WORD = re.compile(r"[^\W\d_]+")

_LONGEST = 64
"""The most characters in a word: longer runs of letters are not words, and stemming is quadratic."""


class _Stemmer(Protocol):
    def stemWords(self, words: list[str]) -> list[str]: ...  # noqa: N802


def snowball_version() -> str:
    """Return the stemmers' version, which determines the stems."""
    import Stemmer

    return str(Stemmer.version())


@cache
def stop_words() -> dict[str, frozenset[str]]:
    """Return the stop words of each language, in lower case."""
    texts = (
        (name, language.text) for name, language in language_files.load_languages_with_table("text").items()
    )
    return {name: frozenset(f"{text.stop_words} {text.more_stop_words}".split()) for name, text in texts}


@cache
def latin_languages() -> tuple[str, ...]:
    """Return the languages in Latin letters whose stems are indexed."""
    return tuple(name for name in _languages_by_preference() if name != ENGLISH)


@lru_cache(maxsize=64)
def stop_words_of_languages(names: tuple[str, ...]) -> frozenset[str]:
    """Return the stop words of the named languages and of all languages with a script of their own."""
    with_own_script = {name for _, _, name, _ in _script_ranges()}
    return frozenset().union(*(stop_words()[name] for name in {*names, *with_own_script}))


def is_plain_english(text: str) -> bool:
    """Whether a quick check finds English, or no sign of another language in Latin letters.

    If False, the text may still be English.
    """
    # Ten times as fast as testing all words.
    for sign in language_files.load_languages_with_table("text")[ENGLISH].text.signs:
        if sign in text:
            return True
    if not text.isascii():
        return False
    signs = _language_signs()
    words = text.lower().replace(".", " ").replace(",", " ").split()
    foreign = sum(map(signs.foreign.__contains__, words))
    if sum(map(signs.english.__contains__, words)) > foreign:
        return True
    return not (
        foreign
        or any(pair in text for pair in signs.pairs)
        or not signs.foreign_endings.isdisjoint([word[-3:] for word in words])
    )


def detect_languages(words: Iterable[str], *, by_letters: bool = True) -> tuple[str, ...]:
    """Return the likeliest languages of a text, up to four in a tie; () if there is no sign of any.

    words: in Latin letters and lower case. by_letters: whether letters and endings alone are enough;
      otherwise the signs must weigh at least as much as a stop word.
    """
    signs = _language_signs()
    words = tuple(words)
    scores = Counter[str]()
    for word in words:
        for name in signs.words.get(word, ()):
            scores[name] += _OF_A_STOP_WORD
        for name in signs.endings.get(word[-3:], ()):
            scores[name] += _OF_AN_ENDING
    text = " ".join(words)
    for pair, names in signs.pairs.items():
        if pair in text:
            for name in names:
                scores[name] += _OF_AN_ENDING
    for letter in set() if text.isascii() else set(text):
        for name, worth in signs.letters.get(letter, ()):
            scores[name] += worth
    best = max(scores.values(), default=0)
    if best < (1 if by_letters else _OF_A_STOP_WORD):
        return ()
    return tuple(name for name in _languages_by_preference() if scores[name] == best)[:_MOST_LANGUAGES]


def detect_language(text: str) -> str:
    """Detect the language at the start of `text`; return English if nothing suggests another language.

    In mostly non-Latin text, the first word in a script of only one language decides; OTHER_SCRIPT if there
    is no such word.

    In Latin text, the signs are stop words, and words with a letter that English lacks. Usually two are
    needed, since "no", "ned" and "o" happen to be stop words of other languages; see
    docs/tools/context-details.md.
    """
    return _detect_language(text[:_SIGNS_IN])


@lru_cache(8192)
def _detect_language(text: str) -> str:
    if not is_mostly_latin(text):
        return next(chain.from_iterable(map(_language_by_script, _WORD.findall(text))), OTHER_SCRIPT)
    if is_plain_english(text):
        return ENGLISH
    # An acronym such as KES is not a word.
    is_cased = not text.isupper()
    found = (word for word in _WORD.findall(text) if not (is_cased and len(word) > 1 and word.isupper()))
    words = [word for word in map(str.lower, found) if starts_with_latin_letter(word)]
    names = detect_languages(words)
    common = stop_words()[ENGLISH].intersection(words)
    if ENGLISH in names:
        # "on" and "no" are also words of other languages.
        names = tuple(name for name in names if common and common <= stop_words()[name] and name != ENGLISH)
    if not names:
        return ENGLISH
    special = sum(not word.isascii() for word in words)
    foreign = {word for word in words if word not in common and len(word) > 1}

    def count_signs(name: str) -> tuple[int, int]:
        return len(foreign & stop_words()[name]), sum(_word_looks_like(word, name) for word in foreign)

    name = max(names, key=count_signs)
    stops, weak = count_signs(name)
    is_foreign = special + stops >= _SIGNS or (special > 0 and len(words) <= _FEW_WORDS)
    if not is_foreign and common <= stop_words()[name] and stops + weak:
        is_foreign = stops + weak + len(common) >= _SIGNS or len(words) == _FEW_WORDS
    return name if is_foreign else ENGLISH


def _word_looks_like(word: str, language: str) -> bool:
    """Whether a word has an ending or a pair of letters typical of `language`."""
    signs = _language_signs()
    return language in signs.endings.get(word[-3:], ()) or any(
        pair in word and language in names for pair, names in signs.pairs.items()
    )


def stem_words(words: Iterable[str], latin: Collection[str]) -> list[tuple[str, str]]:
    """Return (word, stem) pairs, unordered; Latin words are stemmed in each of the languages `latin`.

    words: in lower case. Stop words of the language, words of one or two letters, and very long words are
      skipped.
    """
    by_language: dict[str, list[str]] = {}
    for word in words:
        for name in _languages_to_stem_word_in(word, latin):
            if word not in stop_words().get(name, ()):
                by_language.setdefault(name, []).append(word)
    return [
        pair
        for name, found in by_language.items()
        for pair in zip(found, _stem_in_language(name, found), strict=True)
    ]


def english_stem(word: str) -> str:
    """Return the stem that FTS5 uses for an English word, for code outside SQLite."""
    return _stemmer("porter").stemWords([word])[0] if len(word) <= _LONGEST else word


def starts_with_latin_letter(word: str) -> bool:
    """Whether `word` starts with a Latin letter."""
    first = ord(word[0])
    return word[0].isalpha() and (first <= _LATIN_ENDS or _MORE_LATIN <= first < _MORE_LATIN + 0x100)


def is_mostly_latin(text: str) -> bool:
    """Whether at least half of the letters in `text` are Latin; True if there are no letters."""
    if text.isascii():
        return True
    beyond_ascii = [letter for letter in text if letter > "\x7f" and letter.isalpha()]
    other = len(beyond_ascii) - sum(map(starts_with_latin_letter, beyond_ascii))
    return 2 * other <= sum(map(str.isalpha, text))


def _stem_in_language(language: str, words: list[str]) -> list[str]:
    text = language_files.load_languages_with_table("text")[language].text
    stems = _stemmer(text.stemmer).stemWords(words)
    # Snowball stems liinaa and liinoja to liina and liino, koiraa and koiria to koira and koir.
    dropped = text.dropped_endings
    return [stem[:-1] if len(stem) > _SHORTEST and stem[-1] in dropped else stem for stem in stems]


def _languages_to_stem_word_in(word: str, latin: Collection[str]) -> Collection[str]:
    if not _SHORTEST <= len(word) <= _LONGEST:
        return ()
    if ord(word[0]) <= _LATIN_ENDS:
        return latin if word.isalpha() else ()
    return _language_by_script(word)


def _language_by_script(word: str) -> tuple[str, ...]:
    """Return the one language that uses the word's script, as a 1-tuple; () if ambiguous or unknown."""
    first = ord(word[0])
    for start, end, name, foreign in _script_ranges():
        if start <= first <= end:
            return (name,) if foreign.isdisjoint(word) else ()
    return ()


@cache
def _languages_by_preference() -> dict[str, TextWords]:
    """Return the languages that are detected by their words, in order of preference."""
    texts = [
        (name, language.text) for name, language in language_files.load_languages_with_table("text").items()
    ]
    found = [(text.preference, name, text) for name, text in texts if text.preference is not None]
    return {name: text for _, name, text in sorted(found, key=itemgetter(0, 1))}


@cache
def _script_ranges() -> tuple[tuple[int, int, str, frozenset[str]], ...]:
    """Return script ranges: first, last, language, and the letters that only other languages use."""
    return tuple(
        (start, end, name, frozenset(language.text.foreign_letters))
        for name, language in language_files.load_languages_with_table("text").items()
        for start, end in language.text.characters
    )


@cache
def _stemmer(language: str) -> _Stemmer:
    import Stemmer

    # Without its cache, which is not faster, and which threads would share.
    stemmer: _Stemmer = Stemmer.Stemmer(language, 0)
    return stemmer


class _Signs(NamedTuple):
    """Languages, keyed by their signs: stop words, endings, pairs of letters, and special letters.

    letters: special letters, with the weight for each language, negative for languages without the letter.
    english: stop words found in no other language. foreign, foreign_endings: the stop words and endings that
        English lacks.
    """

    words: dict[str, list[str]]
    endings: dict[str, list[str]]
    pairs: dict[str, list[str]]
    letters: dict[str, list[tuple[str, int]]]
    english: frozenset[str]
    foreign: frozenset[str]
    foreign_endings: frozenset[str]


@cache
def _language_signs() -> _Signs:
    texts = _languages_by_preference()
    words = _map_words_to_languages({name: stop_words()[name] for name in texts})
    endings = _map_words_to_languages({name: text.endings.split() for name, text in texts.items()})
    having = _map_words_to_languages({name: text.letters for name, text in texts.items()})
    return _Signs(
        words=words,
        endings=endings,
        pairs=_map_words_to_languages({name: text.pairs.split() for name, text in texts.items()}),
        letters={
            letter: [(name, _OF_A_LETTER if name in names else -_OF_A_LETTER) for name in latin_languages()]
            for letter, names in having.items()
        },
        english=frozenset(word for word, names in words.items() if names == [ENGLISH]),
        foreign=frozenset(words) - stop_words()[ENGLISH],
        foreign_endings=frozenset(endings) - frozenset(texts[ENGLISH].endings.split()),
    )


def _map_words_to_languages(signs: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    turned = defaultdict[str, list[str]](list)
    for name, having in signs.items():
        for sign in having:
            turned[sign].append(name)
    return dict(turned)

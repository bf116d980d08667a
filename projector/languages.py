"""What language a text is in, as far as finding its words needs it, and the stems of its words.

A script with one language here names it: Russian, Greek, Arabic, Hindi, Tamil, Armenian. So a word of these
has one stem wherever it stands. Latin letters are read in the language whose stop words and letters of its
own the text has most of; several may be equal. A text that has none of either is in no language.

English has no stems here: FTS5's porter makes them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Protocol

from memlog.projector.shipped import shipped

ENGLISH = "english"

OWN_LETTERS = {
    # In the order of preference where a text has nothing but letters that tell.
    "finnish": "äöå",
    "swedish": "åäöé",
    "german": "äöü",
    "french": "àâæçéèêëîïôœùûüÿ",
    "spanish": "áéíñóúü",
    "portuguese": "áâãàçéêíóôõú",
    "italian": "àèéìíîòóùú",
    "polish": "ąćęłńóśźż",
    "norwegian": "æøåéòô",
    "danish": "æøåé",
    "dutch": "éëïöüè",
    "turkish": "çğıöşüâî",
    "czech": "áčďéěíňóřšťúůýž",
    "hungarian": "áéíóöőúüű",
    "romanian": "ăâîșşțţ",
    "estonian": "äõöüšž",
    "lithuanian": "ąčęėįšųūž",
    "catalan": "àèéíïòóúüç",
    "irish": "áéíóú",
    "esperanto": "ĉĝĥĵŝŭ",
    "basque": "ñ",
    "indonesian": "",
    ENGLISH: "",
}
"""The languages that are told apart by their words, with the letters that they have beside a to z."""

_ENDINGS = {
    "finnish": "ssa ssä sta stä lla llä lta ltä lle ksi nen iin vat vät nsa nsä kin mme",
    "swedish": "rna rad ade igt",
    "german": "ung eit ich sch cht",
    "french": "eux ait ées eau ère",
    "spanish": "ión ado ada ndo aba dad",
    "portuguese": "ção ões ado ada ndo ava",
    "italian": "one ato ata tto gli chi ità",
    "polish": "ego ość ych ami cie",
    "dutch": "ijk eid tje",
    "turkish": "lar ler yor dır nda nde",
    "czech": "ého ách ých ost ení",
    "hungarian": "nak nek ban ben val vel ság ség",
    ENGLISH: "ing ion ess ght ent ous ers est",
}
"""The last three letters of many words of a language, and of few of the others."""

_PAIRS = {
    "finnish": "aa ii uu yy ää öö kk",
    "estonian": "aa uu õõ ää",
    "dutch": "aa uu ij",
    "german": "sch",
    "polish": "sz cz rz",
    "hungarian": "sz gy",
}
"""Letters that stand next to each other in a language, and seldom in English."""

LATIN = tuple(name for name in OWN_LETTERS if name != ENGLISH)
"""Those of them that have stems."""

_MOST_LANGUAGES = 4

# What tells of a language, and how much: letters are in more languages than stop words are, the rest in all.
_OF_A_STOP_WORD = 4
_OF_A_LETTER = 2
_OF_AN_ENDING = 1

_SCRIPTS = (
    (0x0370, 0x03FF, "greek"),
    (0x0400, 0x052F, "russian"),
    (0x0530, 0x058F, "armenian"),
    (0x0620, 0x06FF, "arabic"),
    (0x0900, 0x097F, "hindi"),
    (0x0B80, 0x0BFF, "tamil"),
    (0x1F00, 0x1FFF, "greek"),
)
_LATIN_ENDS = 0x024F
_MORE_LATIN = 0x1E00  # Vietnamese, and letters with dots
_SHORTEST = 3
_LONGEST = 64
"""Characters; what is longer is no word, and a stemmer takes the square of its length."""

# Of these Snowball has no stemmer, and Russian's would cut them wrongly.
_NOT_RUSSIAN = frozenset("іїєґўђјљњћџ")

# English alone has these. Looking for them costs a tenth of looking at each word.
_ENGLISH_SIGNS = (
    " the ",
    " and ",
    " you",
    " that",
    " my ",
    "I'm",
    " with ",
    " it ",
    "'s ",
    " have ",
    " this ",
)


class _Stemmer(Protocol):
    def stemWords(self, words: list[str]) -> list[str]: ...  # noqa: N802


def snowball_version() -> str:
    """The version of the stemmers; another one may have other stems."""
    import Stemmer

    return str(Stemmer.version())


@cache
def stop_words() -> dict[str, frozenset[str]]:
    """By language the words that carry grammar, in lower case."""
    text = shipped("stopwords.txt")
    found: dict[str, frozenset[str]] = {}
    for section in text.split("\n[")[1:]:
        name, _, words = section.partition("]")
        name = name.removesuffix("+")
        found[name] = found.get(name, frozenset()).union(words.split())
    return found


def is_plain_english(text: str) -> bool:
    """Whether a text is seen at once to be English, or to have nothing of another language in Latin letters.

    False says nothing.
    """
    for sign in _ENGLISH_SIGNS:
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
    return tuple(name for name in OWN_LETTERS if scores[name] == best)[:_MOST_LANGUAGES]


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
        pair
        for name, said in by_language.items()
        for pair in zip(said, map(_ENDS.get(name, str), _stemmer(name).stemWords(said)), strict=True)
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


def _without_last_vowel(stem: str) -> str:
    """Snowball leaves liina and liino of liinaa and liinoja, koira and koir of koiraa and koiria."""
    return stem[:-1] if len(stem) > _SHORTEST and stem[-1] in "aeiouyäö" else stem


_ENDS = {"finnish": _without_last_vowel}
"""What is left of a stem, where Snowball's tells forms of one word apart."""


def _languages_of(word: str, latin: Collection[str]) -> Collection[str]:
    first = ord(word[0])
    if not _SHORTEST <= len(word) <= _LONGEST:
        return ()
    if first <= _LATIN_ENDS:
        return latin if word.isalpha() else ()
    for start, end, name in _SCRIPTS:
        if start <= first <= end:
            return () if name == "russian" and not _NOT_RUSSIAN.isdisjoint(word) else (name,)
    return ()


def _stop_words_of(language: str) -> frozenset[str]:
    return stop_words().get(language, frozenset())


@cache
def _stemmer(language: str) -> _Stemmer:
    import Stemmer

    # Without its own cache: that was measured no faster, and it is what would be shared between threads.
    stemmer: _Stemmer = Stemmer.Stemmer(language, 0)
    return stemmer


@cache
def _languages_of_stop_words() -> dict[str, list[str]]:
    return _turned({name: stop_words()[name] for name in OWN_LETTERS})


@cache
def _languages_of_endings() -> dict[str, list[str]]:
    return _turned({name: endings.split() for name, endings in _ENDINGS.items()})


@cache
def _languages_of_pairs() -> dict[str, list[str]]:
    return _turned({name: pairs.split() for name, pairs in _PAIRS.items()})


@cache
def _languages_of_letters() -> dict[str, list[tuple[str, int]]]:
    """For each letter that tells what it is worth for each language: less than nothing without it."""
    having = _turned(OWN_LETTERS)
    return {
        letter: [(name, _OF_A_LETTER if name in names else -_OF_A_LETTER) for name in LATIN]
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
    return frozenset(_languages_of_endings()) - frozenset(_ENDINGS[ENGLISH].split())


def _turned(signs: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """By each sign, the languages that have it."""
    turned: dict[str, list[str]] = {}
    for name, having in signs.items():
        for sign in having:
            turned.setdefault(sign, []).append(name)
    return turned

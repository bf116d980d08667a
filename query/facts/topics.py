"""The keys of facts: however a topic is spelled, and in whatever number, it has one key.

docs/memory/facts.md says the rules.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

from memlog.eventlog.errors import BadInput
from memlog.eventlog.text import nfkc
from memlog.query.spelling import american

LONGEST = 128
"""Characters of a key."""

BUILT_IN = {
    "favorite_colors": {
        "english": "color",
        "russian": "цвет цвета цвету цветом цвете цветов цветам цветами цветах",
        "finnish": "väri värin väriä värit värejä värien väreistä väreihin väreissä väreiksi väristä",
    },
    "favorite_cryptos": {
        "english": "crypto cryptocurrency crypto_currency crypto_coin",
        "russian": "крипта крипты крипту крипте криптой криптовалюта криптовалюты криптовалюту криптовалюте"
        " криптовалютой криптовалют криптовалютам криптовалютами криптовалютах",
        "finnish": "krypto krypton kryptoa kryptot kryptoja kryptojen kryptoista kryptovaluutta"
        " kryptovaluutan kryptovaluuttaa kryptovaluutat kryptovaluuttoja kryptovaluuttojen kryptovaluutoista",
    },
    "favorite_tv": {
        "english": "tv tv_show tv_series television television_show television_series tv_program",
        "russian": "сериал сериала сериалу сериалом сериале сериалы сериалов сериалам сериалами сериалах"
        " телесериал телесериалы телесериалов",
        "finnish": "tv_sarja tv_sarjan tv_sarjaa tv_sarjat tv_sarjoja tv_sarjojen tv_sarjoista"
        " televisiosarja televisiosarjan televisiosarjaa televisiosarjat televisiosarjoja televisiosarjoista",
    },
    "favorite_candies": {
        "english": "candy sweet",
        "russian": "конфета конфеты конфету конфете конфетой конфет конфетам конфетами конфетах",
        "finnish": "karkki karkin karkkia karkit karkkeja karkkien karkeista makeinen makeisen makeista"
        " makeiset makeisia makeisten makeisista",
    },
}
"""The topics that have one key in three languages, and the words for them: English ones in the singular, the
others in their forms."""

FAVORITE = {
    "english": "favorite favorites favourite favourites fav favs fave faves",
    "russian": "любимый любимая любимое любимые любимого любимой любимому любимым любимом любимую любимых"
    " любимыми",
    "finnish": "lempi suosikki",
}
"""Words that say of a topic that it is a favourite one. In Finnish they begin a word."""

OWN = {
    "english": "my",
    "russian": "мой моя моё мое мои моего моей моему моим моём моем мою моих моими",
    "finnish": "minun mun",
}
"""Words that say whose it is."""

_AS = {
    **{"programme": "program", "programmes": "programs"},
    **dict.fromkeys(("favourite", "favorites", "favourites", "fav", "favs", "fave", "faves"), "favorite"),
}
"""Words that stand for another one in a key, beside the two spellings of English."""

_IRREGULAR = {
    **{"children": "child", "people": "person", "men": "man", "women": "woman", "feet": "foot"},
    **{"teeth": "tooth", "mice": "mouse", "geese": "goose", "lives": "life", "wives": "wife"},
    **{"knives": "knife", "leaves": "leaf", "wolves": "wolf", "shelves": "shelf", "buses": "bus"},
    **{"shoes": "shoe", "toes": "toe", "caches": "cache", "headaches": "headache", "quizzes": "quiz"},
    **{
        f"{word}s": word
        for word in "brownie calorie cookie hoodie movie pie smoothie tie veggie zombie".split()
    },
}
_SAME = frozenset(
    "advice atlas canvas chaos christmas furniture jeans kudos lens music news pajamas pants series shorts"
    " software species weather".split()
)
"""Words that are the same in both numbers, or have one."""

_PLURALS = (
    (r"(?:ss|us|is)$", None),
    (r"(?<=[^aeiou])ies$", "y"),
    (r"(?<=ss|ch|sh)es$|(?<=[^ao]us)es$|(?<=[xo])es$", ""),
    (r"s$", ""),
)
"""Endings of a plural and what they are in the singular; None where a word ends so in the singular. The first
that fits counts."""

_SHORTEST_PLURAL = 4
_APART = r"[\s_\-‐-―]+"
_POSSESSIVE = r"['’]s\b"
_AROUND = " \t.,:;!?\"'`«»“”„‘’()[]{}*"
_FINNISH_OWN = "ni"


def key_of(name: str) -> str:
    """The key of a topic: `favourite colour` and `My-Favorite-Colors` are `favorite_colors`.

    Raises:
        BadInput: it names nothing, has a control character, or makes a key of more than 128 characters.
    """
    _check(name)
    key = _key(words_of(name))
    if not key:
        raise BadInput(f"{name!r} names no topic", hint="name one, such as favorite_colors")
    if len(key) > LONGEST:
        raise BadInput(
            f"a topic's key of {len(key)} characters: {key[:40]!r}…", hint=f"at most {LONGEST} characters"
        )
    return key


def same_key(stored: str) -> str:
    """The key of a topic as it stands in a log that others wrote, too: what makes no key is its own."""
    return _key(words_of(stored)) or stored


def words_of(text: str) -> list[str]:
    """The words of a name, folded: without case, signs around them, and what cannot be seen."""
    folded = nfkc(nfkc(text).casefold())
    seen = "".join(letter for letter in folded if unicodedata.category(letter) != "Cf")
    words = (word.strip(_AROUND) for word in re.split(_APART, re.sub(_POSSESSIVE, "", seen)))
    return [word for word in words if word]


def built_in(words: Sequence[str], language: str) -> str | None:
    """The key of the built-in topic that these words name; None where they name none.

    words: folded, without those that say that it is a favourite one.
    """
    return _built_in()[language].get("_".join(words))


def favorite_part(words: Sequence[str], language: str) -> list[str] | None:
    """What the words name beside being a favourite; None where they do not begin with that."""
    if not words:
        return None
    if language != "finnish":
        return list(words[1:]) if words[0] in _forms(FAVORITE[language]) else None
    for prefix in FAVORITE["finnish"].split():
        if words[0].startswith(prefix) and (rest := words[0].removeprefix(prefix)) != "":
            return [rest, *words[1:]]
        if words[0] == prefix:
            return list(words[1:])
    return None


def without_finnish_owner(word: str) -> str:
    """`värini` (my colour) as `väri`; a word without that ending as it is."""
    return word.removesuffix(_FINNISH_OWN) if len(word) > len(_FINNISH_OWN) + 2 else word


def singular(word: str) -> str:
    """An English word in the singular, as far as its ending and a short list tell."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word in _SAME or len(word) < _SHORTEST_PLURAL or not (word.isascii() and word.isalpha()):
        return word
    for ending, instead in _PLURALS:
        if re.search(ending, word):
            return word if instead is None else re.sub(ending, instead, word)
    return word


def is_plural(word: str) -> bool:
    """Whether an English word is seen to be a plural."""
    return singular(word) != word


def _check(name: str) -> None:
    odd = next((letter for letter in name if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")), None)
    if odd is not None:
        raise BadInput(
            f"a topic's name has the control character U+{ord(odd):04X}",
            hint="a name is a few words on one line",
        )


def _key(words: Sequence[str]) -> str:
    while len(words) > 1 and any(words[0] in _forms(own) for own in OWN.values()):
        words = words[1:]
    for language in FAVORITE:
        part = favorite_part(words, language)
        if part is not None:
            return _favorite_key(words, part, language)
    return "_".join(_american(words, singular)) if words else ""


def _favorite_key(words: Sequence[str], part: Sequence[str], language: str) -> str:
    if language == "english":
        named = _american(part, singular)
        return built_in(named, language) or "_".join(["favorite", *_american(part, _plural)])
    bare = [*part[:-1], without_finnish_owner(part[-1])] if language == "finnish" and part else part
    return built_in(part, language) or built_in(bare, language) or "_".join(words)


def _american(words: Sequence[str], number: Callable[[str], str]) -> list[str]:
    """English words as Americans spell them, the last one in a `number`."""
    spelled = [_AS.get(word) or american(word) for word in words]
    return [*spelled[:-1], *(number(word) for word in spelled[-1:])]


def _plural(word: str) -> str:
    one = singular(word)
    if one in _SAME or not (one.isascii() and one.isalpha()):
        return one
    return next((many for many, single in _IRREGULAR.items() if single == one), _regular_plural(one))


def _regular_plural(word: str) -> str:
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}es" if re.search(r"(?:s|x|ch|sh)$", word) else f"{word}s"


@cache
def _forms(words: str) -> frozenset[str]:
    return frozenset(words.split())


@cache
def _built_in() -> dict[str, dict[str, str]]:
    """By language and word, the key."""
    return {
        language: {word: key for key, words in BUILT_IN.items() for word in words[language].split()}
        for language in FAVORITE
    }

"""Topic keys, under which facts are stored, and the normal forms by which questions find them.

Storing keeps apart names that may differ in meaning (`http` and `https`); asking also finds a topic in
another number or spelling. docs/memory/facts.md describes the rules.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from memlog.eventlog.errors import BadInput
from memlog.eventlog.text import normalise_to_nfkc
from memlog.projector.sqlite import Connection
from memlog.projector.text import language_files
from memlog.projector.text.language_files import EnglishWords, FactWords
from memlog.projector.text.stemming import ENGLISH
from memlog.projector.text.tokens import to_american

LONGEST = 128
"""The most characters in a key."""

_PLURALS = (
    (r"(?:ss|us|is)$", None),
    (r"(?<=[^aeiou])ies$", "y"),
    (r"(?<=ss|ch|sh)es$|(?<=[^ao]us)es$|(?<=[xo])es$", ""),
    (r"s$", ""),
)
"""Plural endings and their singulars; None marks singular endings. The first match counts."""

_FAVORITE = "favorite"
_SHORTEST_PLURAL = 4
_VOWELS = "aeiouy"
_SEPARATORS = r"[\s_\-‐-―]+"
_POSSESSIVE = "'s"
_BEFORE = " \t\"'`«»“”„‘’([{*"
_AROUND = f"{_BEFORE}.,:;!?)]}}"


@cache
def load_fact_words() -> Mapping[str, FactWords]:
    """Return the fact words of every language that has `[facts]`, English first."""
    words = {
        name: language.facts for name, language in language_files.load_languages_with_table("facts").items()
    }
    return dict(sorted(words.items(), key=lambda named: named[0] != ENGLISH))


def make_topic_key(name: str) -> str:
    """Return a topic's key: `My-City` becomes `city`, `favourite colour` becomes `favorite_colors`.

    Raises:
        BadInput: the name is empty or has a control character, or its key exceeds 128 characters.
    """
    odd = next((letter for letter in name if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")), None)
    if odd is not None:
        raise BadInput(
            f"the topic name contains the control character U+{ord(odd):04X}",
            hint="use a few words on one line",
        )
    key = _make_key_of_words(split_into_folded_words(name))
    if not key:
        raise BadInput(f"invalid topic name: {name!r}", hint="use a name, for example favorite_colors")
    if len(key) > LONGEST:
        raise BadInput(
            f"the topic's key has {len(key)} characters: {key[:40]!r}…",
            hint=f"use at most {LONGEST} characters",
        )
    return key


def normalise_stored_topic_key(stored: str) -> str:
    """Return the key of a topic that any program stored; `stored` itself if it yields no key."""
    return _make_key_of_words(split_into_folded_words(stored)) or stored


def define_sql_function_topic_key(db: Connection) -> None:
    """Define the SQL function `topic_key`, which maps all spellings of a topic to the same key."""
    db.create_function(
        "topic_key",
        1,
        lambda topic: (
            None if topic is None else normalise_key_for_comparison(normalise_stored_topic_key(topic))
        ),
        deterministic=True,
    )


def normalise_key_for_comparison(key: str) -> str:
    """Normalise a key, ignoring number, spelling, possessives and surrounding signs.

    Older versions stored topics under this form.
    """
    bare = (word.strip(_AROUND).removesuffix(_POSSESSIVE) for word in key.split("_"))
    words = [word for word in bare if word]
    if len(words) > 1 and words[0] == _FAVORITE:
        return "_".join([_FAVORITE, *_spell_words_american(words[1:], _word_to_plural)])
    return "_".join(_spell_words_american(words, to_singular)) or key


def split_into_folded_words(text: str) -> list[str]:
    """Split a name into folded words, without surrounding punctuation or invisible characters.

    A sign before a word stays: `.net` is not `net`.
    """
    words = (
        word.lstrip(_BEFORE).rstrip(_AROUND)
        for word in re.split(_SEPARATORS, fold_visible_characters(text).replace("’", "'"))
    )
    return [word for word in words if word.strip(_AROUND)]


def fold_visible_characters(text: str) -> str:
    """Fold `text` and remove its invisible characters."""
    folded = normalise_to_nfkc(normalise_to_nfkc(text).casefold())
    return "".join(letter for letter in folded if unicodedata.category(letter) != "Cf")


def find_built_in_topic_key(words: Sequence[str], language: str) -> str | None:
    """Return the key of the built-in topic named by these folded words, "favourite" excluded, or None."""
    return _built_in_keys()[language].get("_".join(words))


def strip_word_for_favorite(words: Sequence[str], language: str) -> list[str] | None:
    """Return `words` without the one for "favourite"; None if they have no such word."""
    table = load_fact_words()[language]
    if not words:
        return None
    if words[0] in _split_forms(table.favorite):
        return list(words[1:])
    if words[-1] in _split_forms(table.favorite_behind):
        return list(words[:-1])
    if words[0] in _favorite_words():
        return None
    for prefix in table.favorite_prefixes.split():
        if words[0] == prefix:
            return list(words[1:])
        if words[0].startswith(prefix):
            return [words[0].removeprefix(prefix), *words[1:]]
    return None


def strip_possessive(word: str, language: str) -> str:
    """Strip the possessive ending: Finnish `värini` (my colour) becomes `väri`."""
    suffix = load_fact_words()[language].own_suffix
    return word.removesuffix(suffix) if len(word) > len(suffix) + 2 else word


def to_singular(word: str) -> str:
    """Return the singular of an English word, going by its ending and a short table."""
    irregular = _pairs(_english_words().plurals)
    if word in irregular:
        return irregular[word]
    if (
        word in _split_forms(_english_words().invariable)
        or len(word) < _SHORTEST_PLURAL
        or not (word.isascii() and word.isalpha())
        # `https` and `nfs` are abbreviations.
        or not any(vowel in word for vowel in _VOWELS)
    ):
        return word
    for ending, instead in _PLURALS:
        if re.search(ending, word):
            return word if instead is None else re.sub(ending, instead, word)
    return word


def is_plural(word: str) -> bool:
    """Whether `word` is recognisably an English plural."""
    return to_singular(word) != word


def _make_key_of_words(words: Sequence[str]) -> str:
    while len(words) > 1 and any(words[0] in _split_forms(table.own) for table in load_fact_words().values()):
        words = words[1:]
    for language in load_fact_words():
        part = strip_word_for_favorite(words, language)
        if part:
            return _make_key_of_favorite(words, part, language)
    return "_".join(words)


def _make_key_of_favorite(words: Sequence[str], part: Sequence[str], language: str) -> str:
    if language == ENGLISH:
        return find_built_in_topic_key(_spell_words_american(part, to_singular), language) or "_".join(
            [_FAVORITE, *part]
        )
    bare = [*part[:-1], *(strip_possessive(word, language) for word in part[-1:])]
    return (
        find_built_in_topic_key(part, language) or find_built_in_topic_key(bare, language) or "_".join(words)
    )


def _spell_words_american(words: Sequence[str], number: Callable[[str], str]) -> list[str]:
    """Convert English words to American spelling, and apply `number` to the last one."""
    spelled = [_pairs(_english_words().short).get(word) or to_american(word) for word in words]
    return [*spelled[:-1], *(number(word) for word in spelled[-1:])]


def _word_to_plural(word: str) -> str:
    one = to_singular(word)
    if one in _split_forms(_english_words().invariable) or not (one.isascii() and one.isalpha()):
        return one
    for many, single in _pairs(_english_words().plurals).items():
        if single == one:
            return many
    if re.search(r"[^aeiou]y$", one):
        return f"{one[:-1]}ies"
    return f"{one}es" if re.search(r"(?:s|x|ch|sh)$", one) else f"{one}s"


def _english_words() -> EnglishWords:
    return language_files.load_languages_with_table("english")[ENGLISH].english


_pairs = cache(language_files.split_pairs)


@cache
def _favorite_words() -> frozenset[str]:
    """Return the words for "favourite" in all languages: English `favorite` starts with Swedish `favorit`."""
    return frozenset(word for table in load_fact_words().values() for word in table.favorite.split())


@cache
def _split_forms(words: str) -> frozenset[str]:
    return frozenset(words.split())


@cache
def _built_in_keys() -> dict[str, dict[str, str]]:
    return {
        language: {word: key for key, words in table.topics.items() for word in words.split()}
        for language, table in load_fact_words().items()
    }

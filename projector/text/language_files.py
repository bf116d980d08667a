"""Loads the words of languages: one TOML file each, in the folder `languages`.

A new file adds a language; no code names it. Words are separated by white space, phrases by commas.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec


class TextWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Words and letters that detect and index texts of a language; `TEXT_SHA256` covers them.

    stemmer: a Snowball algorithm, by default that of the language's name. FTS5 stems English.
    dropped_endings: final letters to drop from a stem, where Snowball does not unify the forms of a word.
    characters: ranges of code points that only this language uses; without any, it uses Latin letters.
    foreign_letters: letters in those ranges that only other languages use.
    preference: the rank among equally likely languages in Latin letters; the lowest wins.
    letters: letters beside a to z.
    endings: the last three letters of many of its words, but few in other languages.
    pairs: pairs of letters that are frequent in it but rare in English.
    signs: parts of sentences unique to it.
    stop_words: function words, as the Snowball project lists them. more_stop_words: those that memlog adds.
    """

    stemmer: str = ""
    dropped_endings: str = ""
    characters: tuple[tuple[int, int], ...] = ()
    foreign_letters: str = ""
    preference: int | None = None
    letters: str = ""
    endings: str = ""
    pairs: str = ""
    signs: tuple[str, ...] = ()
    stop_words: str = ""
    more_stop_words: str = ""


class GateWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Phrases that people say to an agent, for `query.gate`.

    Folded: lower case, `'` for each apostrophe, е for ё. `word*` matches the start of a word, `*word` its
    end.

    greetings, acknowledgements: phrases that need no answer from the memory, alone or several in a row.
    openings: the same, together with the words after them: `thanks for the help`. fillers: add nothing.
    memory: phrases that refer to earlier talk or ask to keep something, like "my" and "favourite" in `facts`.
    asks: phrases that begin a question. asks_anywhere: phrases that make a sentence a question.
    """

    greetings: str = ""
    acknowledgements: str = ""
    openings: str = ""
    fillers: str = ""
    memory: str = ""
    asks: str = ""
    asks_anywhere: str = ""


class QuestionWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Phrases around the topic in a question about facts, folded. None may change the question's meaning.

    leads: begin a question, in any number. listing: leads that ask for a whole list. tails: end a question.
    owners, owners_behind: mean "my", before the topic as `FactWords.own`, and after it.
    fillers: add nothing, before the topic. every: ask for the whole list.
    joints: join two ordinals. first: mean the first place, before the favourite: `most favourite`.
    top: mean the first places, before their number. plural: occur only before a plural topic.
    idioms: whole questions, by the names of their topic, the likeliest first.
    """

    leads: str = ""
    listing: str = ""
    tails: str = ""
    owners: str = ""
    owners_behind: str = ""
    fillers: str = ""
    every: str = ""
    joints: str = ""
    first: str = ""
    top: str = ""
    plural: str = ""
    idioms: Mapping[str, str] = {}


class NumberWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers as words, from 0 on; forms of one number with `/` between them.

    ordinal_endings: replace a `-` at the end of an ordinal.
    digit_endings: make an ordinal of the digits before them. in_digits: the first ordinals in digits.
    marks: phrases that make an ordinal of the number after them.
    """

    cardinals: str = ""
    ordinals: str = ""
    ordinal_endings: str = ""
    digit_endings: str = ""
    in_digits: str = ""
    marks: str = ""


class ListWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a text introduces a ranked list of its author's favourites.

    favorite: words for "favourite" before the topic. inflected: those after which no name follows.
    statement: a regular expression for the sentence before the list, without its line breaks. `%(begins)s` is
        the beginning of a sentence, `%(topic)s` the topic, `%(lists)s` the sign before a list; `%(favorite)s`
        and `%(number)s` are words.
    ranked_statement: the same for a sentence that names a rank.
    ordinal: a regular expression for what precedes a value; `%(ordinal)s` are words.
    doubts: phrases beside the list that make it uncertain whether, or of whom, it is meant.
    open: phrases that leave a value open. In both, `*phrase` matches the end of a word.
    joints: join a value to the next one. no_topic: words that occur in no topic's name.
    name: of the topic, to make its key of; `%(topic)s` are the words in the text.
    """

    favorite: str
    statement: str
    ranked_statement: str
    ordinal: str
    doubts: str = ""
    open: str = ""
    joints: str = ""
    no_topic: str = ""
    name: str = "%(topic)s"
    inflected: str = ""


class FactWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words with which people name topics and ask for them, folded.

    favorite: words for "favourite" before a topic. favorite_behind: the same, after it.
    favorite_prefixes: the same, as beginnings of the topic's first word.
    own: words for "my", which a topic's key leaves out. own_suffix: the same, as an ending.
    other_suffixes: endings for "your", "his" and the like.
    gradation: letters in stems, and those that replace them.
    plural_ending: the ending of a topic whose whole list is requested.
    topics: by key, the words for topics that have one key in all languages; `_` joins words.
    """

    favorite: str = ""
    favorite_behind: str = ""
    favorite_prefixes: str = ""
    own: str = ""
    own_suffix: str = ""
    other_suffixes: str = ""
    gradation: tuple[str, str] | None = None
    plural_ending: str = ""
    topics: Mapping[str, str] = {}
    question: QuestionWords = QuestionWords()
    numbers: NumberWords = NumberWords()
    lists: ListWords | None = None


class MemoryWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words that tell near duplicates of a memory from memories that differ, in lower case.

    turning: change the meaning of a sentence: numbers, days, limits. `word*` matches the beginning of a word.
        A word too many prevents a merge, one too few may lose a memory.
    negating: the same, of words that also change what a filler after them says: "not always" is not "not".
    turning_endings: as `turning`, as endings; `ending*` may have up to 20 letters after it.
    filling: do not change the meaning of a sentence; in Chinese perhaps with the character before. A language
        without fillers is not understood. joints: join two parts that may change places.
    light: function words in a sentence that a merge may join; without them, it joins none of a language.
        reaching: words in no such sentence, as they reach beyond their part; as `turning`.
    certain, foreign: regular expressions for text that occurs in the language but not in similar ones, and
      the reverse.
    """

    negating: str = ""
    turning: str = ""
    turning_endings: str = ""
    filling: str = ""
    joints: str = ""
    light: str = ""
    reaching: str = ""
    certain: str = ""
    foreign: str = ""


class AlwaysWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Phrases of memories that every context includes, for `phrases.classify_memory`; folded as `GateWords`,
    where `*word*` also matches any part of a word.

    allergies: of allergies and intolerances. health: of illnesses, medicines and diets.
    prohibitions: say what must not be. idioms: phrases in which such words say none of this: `never mind`.
    """

    allergies: str = ""
    health: str = ""
    prohibitions: str = ""
    idioms: str = ""


class ChangeWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Phrases by which a memory says that an earlier one no longer holds; folded as `GateWords`.

    cues: phrases that suffice alone. present: phrases that only say that it holds now. several: verbs for
      things of which several may hold at a time.
    """

    cues: str = ""
    present: str = ""
    several: str = ""


class EnglishWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tables for English nouns and spelling; pairs have `/` between them.

    american: beginnings of words in British and in American spelling.
    short: words, and the words that replace them in a topic's key.
    plurals: irregular plurals and their singulars. invariable: words with one form only.
    """

    american: str = ""
    short: str = ""
    plurals: str = ""
    invariable: str = ""


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of one language file."""

    text: TextWords = TextWords()
    gate: GateWords = GateWords()
    facts: FactWords = FactWords()
    memories: MemoryWords = MemoryWords()
    always: AlwaysWords = AlwaysWords()
    changes: ChangeWords = ChangeWords()
    english: EnglishWords = EnglishWords()


Table = Literal["text", "gate", "facts", "memories", "always", "changes", "english"]

TEXT_SHA256 = "b3d9e565782d8256881e5ab5ee85ac5d308eaca90ccbb12dbf8f7179e450048f"
"""The hash of all `TextWords` and `AlwaysWords`, which a test compares with the files; part of the projection
id."""


def split_phrases(table: str) -> list[str]:
    """Return the phrases in a member of a language file in order, with single spaces between words."""
    return [phrase for part in table.split(",") if (phrase := " ".join(part.split()))]


def split_pairs(table: str) -> dict[str, str]:
    """Return the pairs in a member of a language file as a mapping."""
    return dict(pair.split("/") for pair in table.split())


@cache
def languages(table: Table) -> Mapping[str, Language]:
    """Return the languages whose files have a table, by name in alphabetical order.

    Raises ValueError like `parse_language`, and OSError if the files are missing from the installation.
    """
    return {
        name: parse_language(name, source)
        for name, source in _read_sources().items()
        if f"[{table}]" in source
    }


@cache
def _read_sources() -> Mapping[str, str]:
    files = sorted(Path(__file__).with_name("languages").glob("*.toml"))
    return {file.stem: file.read_bytes().decode() for file in files}


@cache
def parse_language(name: str, source: str) -> Language:
    """Return the language `name` from the source of its file.

    Raises ValueError for an invalid line, an unknown key, or a value of the wrong type.
    """
    try:
        tables = _parse_tables(source)
        if "text" in tables:
            tables["text"].setdefault("stemmer", name)
        return msgspec.convert(tables, Language)
    except (ValueError, msgspec.DecodeError) as error:
        raise ValueError(f"{name}.toml: {error}") from error


def _parse_tables(source: str) -> dict[str, Any]:
    """Parse TOML of strings in `'` or `'''`, or one-line JSON values: importing tomllib would take 2 ms."""
    tables: dict[str, Any] = {}
    table = tables
    lines = iter(source.splitlines())
    for line in lines:
        key, sign, value = line.partition(" = ")
        if sign:
            table[key.strip('"')] = _parse_value(value, lines)
        elif line.startswith("[") and line.endswith("]"):
            table = tables
            for part in line[1:-1].split("."):
                table = table.setdefault(part, {})
        elif line and not line.startswith("#"):
            raise ValueError(f"neither a table nor `key = value`: {line!r}")
    return tables


def _parse_value(value: str, following: Iterator[str]) -> object:
    """Parse a value that begins with `value` and may continue on the following lines."""
    if value.startswith("'''"):
        while not value.endswith("'''", 3):
            if (line := next(following, None)) is None:
                raise ValueError(f"unterminated string: {value[:40]!r}…")
            value = f"{value}\n{line}"
        return value[3:-3]
    if value.startswith("'") and value.endswith("'", 1):
        return value[1:-1]
    return msgspec.json.decode(value)

"""Loads the words of languages: one TOML file each, in the folder `languages`.

A new file adds a language; no module names it. Words are separated by white space, phrases by commas.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec


class TextWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How texts of a language are recognised and indexed. `TEXT_SHA256` covers all of it.

    stemmer: a Snowball algorithm; its name is by default the language's. The index has the stems of all
        languages but English, which FTS5 makes.
    dropped_endings: letters of which a stem loses one at its end, where Snowball tells forms of a word apart.
    characters: ranges of code points that belong to this language alone. Without any, its letters are Latin.
    foreign_letters: letters in those ranges that only other languages have.
    preference: which of several equally likely languages in Latin letters is taken; the lowest first.
    letters: letters beside a to z.
    endings: the last three letters of many of its words, and of few of other languages.
    pairs: letters that stand next to each other in it, and seldom in English.
    signs: parts of sentences that no other language has.
    stop_words: words that carry grammar, not the subject, as the Snowball project lists them.
    more_stop_words: those that memlog adds.
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

    Folded: lower case, `'` for every apostrophe, е for ё. A word that ends with `*` stands for every word
    that begins so, one that begins with `*` for every word that ends so.

    greetings, acknowledgements: say by themselves that nothing is asked; so does any row of them.
    openings: the same, with whatever stands behind them: `thanks for the help`.
    fillers: say nothing beside those.
    memory: point at what was said, or is to be kept, as the words for "my" and "favourite" of `facts` do.
    asks: what a question begins with, where nothing else says that it is one.
    asks_anywhere: the same, wherever in a sentence it stands.
    """

    greetings: str = ""
    acknowledgements: str = ""
    openings: str = ""
    fillers: str = ""
    memory: str = ""
    asks: str = ""
    asks_anywhere: str = ""


class QuestionWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Phrases around the topic in a question of facts, folded. No phrase may turn what a question means.

    leads: what a question begins with, any number of them. listing: leads that ask for all of a list.
    tails: what it ends with.
    owners: say whose it is, before the topic. owners_behind: the same, behind it.
    fillers: say nothing, before the topic. every: say that the whole list is wanted.
    joints: stand between ordinals. first: say that it is the first of its list, before the favourite.
    top: stand before a number: so many from the beginning of the list.
    plural: words that only a question of several has, before the topic.
    idioms: by the names of a topic, the likeliest first, whole questions that ask for it.
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

    ordinal_endings: take the place of a `-` at the end of an ordinal.
    digit_endings: make an ordinal of the digits before them. in_digits: the first ordinals in digits.
    marks: phrases that make an ordinal of the number behind them.
    """

    cardinals: str = ""
    ordinals: str = ""
    ordinal_endings: str = ""
    digit_endings: str = ""
    in_digits: str = ""
    marks: str = ""


class ListWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a text says a ranked list of its author's favourites.

    favorite: forms of the word that may stand before the topic.
    statement: an expression of what leads to the list. Line breaks in it do not count. `%(begins)s` is where
        a sentence begins, `%(topic)s` the topic, `%(lists)s` the sign before a list; `%(favorite)s` and
        `%(number)s` are words.
    ranked_statement: the same where each place of the list says it.
    ordinal: an expression of what stands before a value; `%(ordinal)s` are words, `%(topic)s` is the topic.
    doubts: phrases beside the list that make it doubtful whether it is meant, and by whom.
    open: phrases that leave a value open. In both, a phrase that begins with `*` may end a word.
    joints: words that join a value to the next one.
    no_topic: words that are in no topic's name, since they turn what is said.
    """

    favorite: str
    statement: str
    ranked_statement: str
    ordinal: str
    doubts: str = ""
    open: str = ""
    joints: str = ""
    no_topic: str = ""


class FactWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How people name and ask for facts, folded.

    favorite: words before a topic that make it a favourite one. favorite_behind: the same, behind it.
    favorite_prefixes: the same, at the beginning of its first word.
    own: words for "my" that a topic's key leaves out. own_suffix: the same, at the end of a word.
    other_suffixes: endings that say that something is another person's.
    gradation: letters in stems, and those that they stand for.
    plural_ending: of a topic of which all is asked for.
    topics: by key, the words for topics that have one key in all languages; `_` between two words of one.
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
    """Words that tell whether two memories say the same, in lower case.

    turning: turn what a sentence says: a number, a day, a negation, a limit. Before a `*` stands the
        beginning of any word. A word too many costs a merge, one too few may cost a memory.
    turning_endings: do so at the end of a word; one that ends with `*` has up to 20 letters behind it.
    filling: leave what a sentence says as it is.
    joints: what stands on both sides of them may be exchanged.
    irregular_verbs: forms of one verb with `/` between them.
    tense_endings: an expression of what verbs end with, where Snowball's stems tell their tenses apart.
    """

    turning: str = ""
    turning_endings: str = ""
    filling: str = ""
    joints: str = ""
    irregular_verbs: str = ""
    tense_endings: str = ""


class EnglishWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the rules for English nouns and their spelling need, as pairs with `/` between them.

    american: what the words of a family begin with, as Britons and as Americans spell it.
    short: words, and those that stand for them in a topic's key.
    plurals: irregular ones, and their singular. invariable: the same in both numbers, or of one number.
    """

    american: str = ""
    short: str = ""
    plurals: str = ""
    invariable: str = ""


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file."""

    text: TextWords = TextWords()
    gate: GateWords = GateWords()
    facts: FactWords = FactWords()
    memories: MemoryWords = MemoryWords()
    english: EnglishWords = EnglishWords()


Table = Literal["text", "gate", "facts", "memories", "english"]

TEXT_SHA256 = "ff7df41b3fe7c5bd225b363d87a52392657e9de9d3f9613421464a59eb6a55f3"
"""The hash of all `TextWords`; part of the projection id. A constant, so that no command reads the files for
the id alone; a test compares it with the files."""


def phrases(table: str) -> list[str]:
    """The phrases of a text, in their order, with one space between two words."""
    return [phrase for part in table.split(",") if (phrase := " ".join(part.split()))]


def pairs(table: str) -> dict[str, str]:
    """Maps what stands before the `/` of each pair to what stands behind it."""
    return dict(pair.split("/") for pair in table.split())


@cache
def languages(table: Table) -> Mapping[str, Language]:
    """The languages whose files have a table, by name in alphabetical order.

    Raises:
        ValueError: see `parsed`.
        OSError: the installation lacks the files.
    """
    empty = getattr(Language(), table)
    return {name: language for name, language in _all().items() if getattr(language, table) != empty}


@cache
def _all() -> Mapping[str, Language]:
    files = sorted(Path(__file__).with_name("languages").glob("*.toml"))
    return {file.stem: parsed(file.stem, file.read_bytes().decode()) for file in files}


def parsed(name: str, source: str) -> Language:
    """The language that the source of its file describes.

    name: of the language, which is that of its file.

    Raises:
        ValueError: a line cannot be read, a key is unknown, or a value has the wrong type.
    """
    try:
        tables = _tables(source)
        if "text" in tables:
            tables["text"].setdefault("stemmer", name)
        return msgspec.convert(tables, Language)
    except (ValueError, msgspec.DecodeError) as error:
        raise ValueError(f"{name}.toml: {error}") from error


def _tables(source: str) -> dict[str, Any]:
    """Reads TOML whose values are text in `'` or `'''`, or on one line what JSON spells alike.

    Importing tomllib takes 2 ms, at the start of each command that needs a word.
    """
    tables: dict[str, Any] = {}
    table = tables
    lines = iter(source.splitlines())
    for line in lines:
        key, sign, value = line.partition(" = ")
        if sign:
            table[key.strip('"')] = _value(value, lines)
        elif line.startswith("[") and line.endswith("]"):
            table = tables
            for part in line[1:-1].split("."):
                table = table.setdefault(part, {})
        elif line and not line.startswith("#"):
            raise ValueError(f"neither a table nor `key = value`: {line!r}")
    return tables


def _value(value: str, following: Iterator[str]) -> object:
    """A value that begins with `value`, and may go on in the lines that follow."""
    if value.startswith("'''"):
        while not value.endswith("'''", 3):
            if (line := next(following, None)) is None:
                raise ValueError(f"a text does not end: {value[:40]!r}…")
            value = f"{value}\n{line}"
        return value[3:-3]
    if value.startswith("'") and value.endswith("'", 1):
        return value[1:-1]
    return msgspec.json.decode(value)

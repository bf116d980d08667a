"""Loads the word lists of the languages, one TOML file each, from the folder `languages`.

Adding a file adds a language; no code refers to one by name. Words are separated by white space, phrases by
commas.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

Unit = Literal["day", "week", "month", "year"]


class TextWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Words and letters for detecting and indexing texts in a language; covered by `TEXT_SHA256`.

    stemmer: a Snowball algorithm; defaults to the one named after the language. FTS5 stems English.
    dropped_endings: final letters to drop from a stem where Snowball does not unify the forms of a word.
    characters: ranges of code points that only this language uses; without any, it uses Latin letters.
    foreign_letters: letters in those ranges that only other languages use.
    preference: the rank among equally likely languages in Latin letters; the lowest wins.
    letters: letters other than a to z.
    endings: three-letter endings that are common in its words but rare in other languages.
    pairs: pairs of letters that are common in it but rare in English.
    signs: parts of sentences that occur only in it.
    stop_words: function words, as listed by the Snowball project. more_stop_words: those added by memlog.
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

    Folded: lower case, `'` for every apostrophe, е for ё. `word*` matches the start of a word, `*word` the
    end.

    greetings, acknowledgements: phrases that need no answer from memory, alone or several in a row.
    openings: the same, together with the words after them: `thanks for the help`.
    fillers: words without meaning.
    memory: phrases that refer to earlier conversations or ask to keep something, like "my" and "favourite" in
        `facts`.
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

    leads: phrases that start a question; there may be several. listing: leads that ask for a whole list.
    tails: phrases that end a question.
    leads_behind: phrases that end a question and also ask: `my second favourite colour was which`.
    copulas: words between the topic and the favourite: `which colour is my favourite`.
    past: verbs that may ask for an earlier value, unless the question has a rank.
    owners, owners_behind: words for "my": before the topic, like `FactWords.own`, and after it.
    fillers: words without meaning before the topic. every: words that ask for the whole list.
    joints: words that join two ordinals. plural: words that occur only before a plural topic.
    first: words for the first place, before "favourite": `most favourite`.
    top: words for the first places, before their number.
    idioms: whole questions, keyed by the names of their topic, likeliest first.
    """

    leads: str = ""
    listing: str = ""
    tails: str = ""
    leads_behind: str = ""
    copulas: str = ""
    past: str = ""
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
    """Numbers as words, starting from 0; forms of the same number are separated by `/`.

    ordinal_endings: replace a `-` at the end of an ordinal.
    digit_endings: turn the digits before them into an ordinal. in_digits: the first ordinals as digits.
    marks: phrases that turn the number after them into an ordinal.
    """

    cardinals: str = ""
    ordinals: str = ""
    ordinal_endings: str = ""
    digit_endings: str = ""
    in_digits: str = ""
    marks: str = ""


class ListWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a text introduces a ranked list of its author's favourites.

    favorite: words for "favourite" before the topic. inflected: those that no name follows.
    statement: a regular expression for the sentence before the list, without its line breaks. `%(begins)s` is
        the beginning of a sentence, `%(topic)s` the topic, `%(lists)s` the sign before a list; `%(favorite)s`
        and `%(number)s` are words.
    ranked_statement: the same for a sentence that names a rank.
    ordinal: a regular expression for what precedes a value; `%(ordinal)s` are words.
    doubts: phrases next to the list that cast doubt on whether it is meant, or whose it is.
    open: phrases that leave a value open. In both, `*phrase` matches the end of a word.
    joints: join a value to the next one. no_topic: words that occur in no topic's name.
    name: the name of the topic, from which its key is made; `%(topic)s` are the words in the text.
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
    """Words that people use to name topics and to ask about them, folded.

    favorite: words for "favourite" before a topic. favorite_behind: the same, after it.
    favorite_prefixes: the same, as prefixes of the topic's first word.
    own: words for "my", which a topic's key leaves out. own_suffix: the same, as an ending.
    other_suffixes: endings for "your", "his" and the like.
    gradation: letters in stems, and the letters that replace them.
    plural_ending: the ending of a topic whose whole list is wanted.
    topics: words for topics with the same key in all languages, keyed by it; `_` joins words.
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
    """Lower-case words that distinguish near duplicates of a memory from different memories.

    known: words that the English dictionary lacks, but that occur in preferences about answers.
    turning: change the meaning of a sentence: numbers, days, limits. `word*` matches the start of a word.
        One word too many prevents a merge; one too few may lose a memory.
    negating: similar words that also change what a filler after them says: "not always" is not "not".
    turning_endings: like `turning`, but endings; `ending*` may be followed by up to 20 letters.
    filling: do not change the meaning of a sentence; in Chinese, perhaps together with the preceding
        character. A language without fillers is not understood. joints: join two parts that may swap places.
    light: function words in a sentence that a merge may join; without any, a language's sentences stay apart.
        reaching: words that no such sentence may have, since they reach beyond it; matched like `turning`.
    certain, foreign: regular expressions for text that occurs in this language but not in similar ones, and
        vice versa.
    """

    known: str = ""
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
    """Phrases that put a memory into every context, for `phrases.reasons_to_always_tell_memory`.

    Folded like `GateWords`; in addition, `*word*` matches any part of a word.

    allergies: about allergies and intolerances. health: about illnesses, medicines and diets.
    prohibitions: about what must not happen.
    idioms: phrases in which such words mean something else: `never mind`.
    """

    allergies: str = ""
    health: str = ""
    prohibitions: str = ""
    idioms: str = ""


class ChangeWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Phrases with which a memory says that an earlier one no longer holds; folded like `GateWords`.

    cues: phrases that are enough on their own. present: phrases that merely say that something holds now.
    several: verbs that may apply to several things at the same time.
    """

    cues: str = ""
    present: str = ""
    several: str = ""


class TimeWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a text names days, for `query.time_words`; all but the lists are regular expressions.

    Patterns have the named groups that their readers use; `%(number)s`, `%(unit)s`, `%(weekday)s`,
    `%(month)s` and `%(ordinal)s` are words.

    past, future: words that mark a sentence as being about the past, or the future; without line breaks.
    bounds: words that make the time after them a mere bound.
    numbers: the words for one, two, … units. units: the beginnings of the words for day, week,
        month and year.
    weekdays, months: from Monday, and from January. ordinals: the words for the days of a month.
    ago: a number of units ago. rolling: the last few units, up to today. date: one pattern per line.
    calendar: for each unit, the words for units before the current one, then those for the current one.
    """

    past: str
    future: str
    bounds: str
    numbers: str
    units: str
    weekdays: str
    months: str
    ago: str
    rolling: str
    weekday: str
    weekend: str
    month: str
    year: str
    date: str
    calendar: Mapping[Unit, Sequence[str]]
    ordinals: str = ""


class EnglishWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tables of English nouns and spellings; pairs are separated by `/`.

    american: word beginnings in British and American spelling.
    short: words, and the words that replace them in a topic's key.
    plurals: irregular plurals and their singulars. invariable: words with only one form.
    """

    american: str = ""
    short: str = ""
    plurals: str = ""
    invariable: str = ""


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A language file's contents."""

    text: TextWords = TextWords()
    gate: GateWords = GateWords()
    facts: FactWords = FactWords()
    memories: MemoryWords = MemoryWords()
    always: AlwaysWords = AlwaysWords()
    changes: ChangeWords = ChangeWords()
    times: TimeWords | None = None
    english: EnglishWords = EnglishWords()


Table = Literal["text", "gate", "facts", "memories", "always", "changes", "times", "english"]

TEXT_SHA256 = "b3d9e565782d8256881e5ab5ee85ac5d308eaca90ccbb12dbf8f7179e450048f"
"""The hash of all `TextWords` and `AlwaysWords`, which a test compares with the files; part of the projection
id."""


def split_phrases(table: str) -> list[str]:
    """Return the phrases in a member of a language file in order, with single spaces between words."""
    return [phrase for part in table.split(",") if (phrase := " ".join(part.split()))]


def split_pairs(table: str) -> dict[str, str]:
    """Return the pairs in a member of a language file as a dict."""
    return dict(pair.split("/") for pair in table.split())


@cache
def load_languages_with_table(table: Table) -> Mapping[str, Language]:
    """Return the languages whose files have the table, keyed by name in alphabetical order.

    Raises ValueError like `parse_language`, and OSError if the files are missing from the installation.
    """
    return {
        name: parse_language(name, source)
        for name, source in _read_language_files().items()
        if f"[{table}]" in source
    }


@cache
def _read_language_files() -> Mapping[str, str]:
    files = sorted(Path(__file__).with_name("languages").glob("*.toml"))
    return {file.stem: file.read_bytes().decode() for file in files}


@cache
def parse_language(name: str, source: str) -> Language:
    """Parse the language file for `name`.

    Raises ValueError for an invalid line, an unknown key, or a value of the wrong type.
    """
    try:
        tables = parse_tables(source)
        if "text" in tables:
            tables["text"].setdefault("stemmer", name)
        return msgspec.convert(tables, Language)
    except (ValueError, msgspec.DecodeError) as error:
        raise ValueError(f"{name}.toml: {error}") from error


def parse_tables(source: str) -> dict[str, Any]:
    """Parse TOML with only `'` and `'''` strings and one-line JSON values; importing tomllib takes 2 ms."""
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
    """Parse a value that starts with `value` and may continue on the following lines."""
    if value.startswith("'''"):
        while not value.endswith("'''", 3):
            if (line := next(following, None)) is None:
                raise ValueError(f"unterminated string: {value[:40]!r}…")
            value = f"{value}\n{line}"
        return value[3:-3]
    if value.startswith("'") and value.endswith("'", 1):
        return value[1:-1]
    return msgspec.json.decode(value)

"""Loads the words of languages: one TOML file each, in the folder `languages`.

A new file adds a language; no module names it. Words stand in one text with white space between them, phrases
with commas.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec


class TextWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How texts of a language are recognised and indexed. `TEXT_SHA256` covers all of it.

    stemmer: a Snowball algorithm. The index has the stems of all languages but English, which FTS5 makes.
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


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file."""

    text: TextWords = TextWords()
    gate: GateWords = GateWords()


TEXT_SHA256 = "ff7df41b3fe7c5bd225b363d87a52392657e9de9d3f9613421464a59eb6a55f3"
"""The hash of all `TextWords`; part of the projection id. A constant, so that no command reads the files for
the id alone; a test compares it with the files."""


def phrases(table: str) -> list[str]:
    """The phrases of a text, in their order, with one space between two words."""
    return [phrase for part in table.split(",") if (phrase := " ".join(part.split()))]


@cache
def languages() -> Mapping[str, Language]:
    """All languages by name, in alphabetical order.

    Raises:
        ValueError: a file is no TOML, or has an unknown key or a value of the wrong type.
        OSError: the installation lacks the files.
    """
    folder = Path(__file__).with_name("languages")
    files = sorted(file for file in folder.iterdir() if file.suffix == ".toml")
    return {file.stem: parsed(file.name, file.read_text(encoding="utf-8")) for file in files}


def parsed(name: str, text: str) -> Language:
    """The language that a file's text describes.

    name: of the file, for errors.

    Raises:
        ValueError: the text is no TOML, or has an unknown key or a value of the wrong type.
    """
    import tomllib

    try:
        return msgspec.convert(tomllib.loads(text), Language)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"{name}: {error}") from error

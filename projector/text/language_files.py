"""Loads the words of languages: one TOML file each, in the folder `languages`.

A new file adds a language; no module names it. A value is text between quotes: words apart by white space.
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


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file."""

    text: TextWords = TextWords()


TEXT_SHA256 = "ff7df41b3fe7c5bd225b363d87a52392657e9de9d3f9613421464a59eb6a55f3"
"""The hash of all `TextWords`; part of the projection id. A constant, so that no command reads the files for
the id alone; a test compares it with the files."""


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

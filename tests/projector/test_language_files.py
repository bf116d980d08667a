"""The language files: what a wrong one is told, and what of them is in the projection id."""

import re
import tomllib
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from memlog.projector.text import language_files
from memlog.projector.text.language_files import (
    TEXT_SHA256,
    Language,
    load_languages_with_table,
    parse_language,
    parse_tables,
)
from memlog.service.memory import word_tables

FILES = sorted(Path(language_files.__file__).with_name("languages").glob("*.toml"))
WORD_TABLES = sorted(Path(word_tables.__file__).parent.glob("*.toml"))


def test_an_unknown_key_or_a_wrong_type_is_an_error_that_names_file_and_key():
    for text, told in [
        ('[text]\nstop_wrods = "og"', "unknown field `stop_wrods` - at `$.text`"),
        ("[text]\nletters = 7", "Expected `str`, got `int` - at `$.text.letters`"),
        ('[texts]\nletters = "æ"', "unknown field `texts`"),
        ("[text\n", "neither a table nor `key = value`: '[text'"),
        ("[gate]\ngreetings = 'hej", "JSON is malformed"),
        ("[gate]\ngreetings = '''hej,\nhallo\n", 'unterminated string: "'),
    ]:
        with pytest.raises(ValueError, match=rf"^nynorsk\.toml: .*{re.escape(told)}"):
            parse_language("nynorsk", text)


def test_the_projection_id_covers_the_words_that_shape_the_index():
    texts = {name: _joined(language.text) for name, language in load_languages_with_table("text").items()}
    always = {
        name: _joined(language.always) for name, language in load_languages_with_table("always").items()
    }
    found = sha256(msgspec.json.encode([texts, always])).hexdigest()
    assert found == TEXT_SHA256, f"a [text] or [always] table has changed: let TEXT_SHA256 be {found}"


def _joined(text):
    """Where lines break is no matter."""
    values = msgspec.structs.asdict(text)
    return type(text)(
        **{
            name: " ".join(value.split()) if isinstance(value, str) else value
            for name, value in values.items()
        }
    )


def test_no_two_languages_share_a_preference_or_a_character():
    texts = [language.text for language in load_languages_with_table("text").values()]
    preferences = [text.preference for text in texts if text.preference is not None]
    assert len(preferences) == len(set(preferences))
    ranges = sorted(each for text in texts for each in text.characters)
    assert all(before[1] < after[0] for before, after in pairwise(ranges))


def test_a_file_is_read_as_any_reader_of_toml_reads_it():
    for file in FILES:
        source = file.read_text(encoding="utf-8")
        by_toml = tomllib.loads(source)
        if "text" in by_toml:
            by_toml["text"]["stemmer"] = file.stem
        assert parse_language(file.stem, source) == msgspec.convert(by_toml, Language), file
    for file in WORD_TABLES:
        source = file.read_text(encoding="utf-8")
        assert parse_tables(source) == tomllib.loads(source), file

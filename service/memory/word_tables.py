"""Loads a module's words and patterns, on first use, from the TOML file beside it.

The members of a table below `patterns` are alternatives of one pattern, in which line breaks are ignored
and `%(name)s` stands for the member `name` of the table `parts`. Other tables list words separated by white
space.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from memlog.projector.text.language_files import parse_tables


@cache
def load_tables(module: str) -> Mapping[str, Any]:
    """Return the tables in a module's file. module: its `__file__`."""
    return parse_tables(Path(module).with_suffix(".toml").read_bytes().decode())


@cache
def load_words(module: str, table: str, name: str) -> frozenset[str]:
    """Return the words in a member of a table."""
    return frozenset(load_tables(module)[table][name].split())


def load_patterns(module: str) -> Mapping[str, re.Pattern[str]]:
    """Return the patterns in a module's file, keyed by name."""
    tables = load_tables(module)
    given = tables.get("parts", {})
    parts = {name: part % given for name, part in given.items()}
    texts = {name: "|".join(members.values()) % parts for name, members in tables["patterns"].items()}
    return {name: re.compile(text.replace("\n", "")) for name, text in texts.items()}

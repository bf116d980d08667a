"""Loads the words and patterns of a module, on first use, from the TOML file beside it.

The members of a table below `patterns` are alternatives, whose line breaks do not count; `%(name)s` in them
stands for the member `name` of the table `parts`. Other tables have words, separated by white space.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from memlog.projector.text.language_files import parse_tables


@cache
def load_tables(module: str) -> Mapping[str, Any]:
    """Return the tables in the file of a module. module: its `__file__`."""
    return parse_tables(Path(module).with_suffix(".toml").read_bytes().decode())


@cache
def load_words(module: str, table: str, name: str) -> frozenset[str]:
    """Return the words in a member of a table."""
    return frozenset(load_tables(module)[table][name].split())


def load_patterns(module: str) -> Mapping[str, re.Pattern[str]]:
    """Return the patterns in the file of a module, by name."""
    tables = load_tables(module)
    given = tables.get("parts", {})
    parts = {name: part % given for name, part in given.items()}
    texts = {name: "|".join(members.values()) % parts for name, members in tables["patterns"].items()}
    return {name: re.compile(text.replace("\n", "")) for name, text in texts.items()}

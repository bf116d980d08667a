"""`eventlog/log/layout.py` alone spells the names of what stands in a store."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from memlog.eventlog.log import layout
from tests.support.places import ROOT

FOLDERS = ("eventlog", "projector", "query", "service", "cli")
NAMES = {
    part
    for name, value in vars(layout).items()
    if name.isupper() and isinstance(value, str) and name != "WRITER"
    for part in PurePosixPath(value).parts
}
ELSEWHERE = {
    ("cli/options/settings.py", "memlog.toml"),  # where a setting comes from, as `memlog config` says it
    # Of a person's documents:
    ("service/documents/scan.py", ".gitignore"),
    # Of klaw's files:
    ("service/exchange/formats/klaw.py", "core_memory.json"),
}
"""Names that mean something else there."""


def spelled_in(path: Path) -> Iterator[str]:
    """The texts of a module that are part of a path, or can be nothing but the name of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.BinOp(op=ast.Div(), right=ast.Constant(value=str(text))):
                yield from PurePosixPath(text).parts
            case ast.Call(func=ast.Attribute(attr="joinpath" | "with_name"), args=given):
                yield from (each.value for each in given if isinstance(each, ast.Constant))
            case ast.Call(func=ast.Name(id="Path"), args=[_, *given]):
                yield from (each.value for each in given if isinstance(each, ast.Constant))
            case ast.Constant(value=str(text)) if not text.islower() or "." in text or "/" in text:
                yield text


def test_no_other_module_spells_a_name_in_a_store() -> None:
    assert {"log", "CURRENT", "build.lock", "embeddings.db", "seals.jsonl"} <= NAMES
    spelled = {
        (path.relative_to(ROOT).as_posix(), text)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for text in spelled_in(path)
        if text in NAMES
    }
    assert {module for module, _ in spelled} >= {"eventlog/log/layout.py"}
    assert {each for each in spelled if each[0] != "eventlog/log/layout.py"} == ELSEWHERE


def test_what_names_a_writer_is_what_the_pattern_of_its_files_takes() -> None:
    for name in (
        *("k7f3qz", "abcdef", "a23456", "7f3qzk", "k7f3q", "k7f3qzz", "k1f3qz", "K7f3qz", "k7f3q\n"),
        *("²7f3qz", ""),
    ):
        is_named = re.fullmatch(layout.WRITER, name) is not None
        assert layout.is_writer_name(name) is is_named, name
        assert layout.is_seals_file(f"seals.{name}.jsonl") is is_named, name


def test_the_seals_of_an_older_memlog_are_seals() -> None:
    assert layout.is_seals_file("seals.jsonl")
    assert not layout.is_seals_file("seals.")

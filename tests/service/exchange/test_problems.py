"""What an import cannot read is named by its file and its line, counted from 1, in words without Python's."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import memlog
from tests.support.places import FIXTURES

MAP = '[message]\nchat_id = "c"\ncontent = "t"\n'

CASES: dict[str, tuple[str, str, bytes, str, str]] = {
    "a line that is no JSON": (
        "claude-code",
        "s.jsonl",
        b'{"type":"mode"}\n{"type" "mode"}\n',
        "s.jsonl: line 2",
        "no JSON: Expecting ':' delimiter at character 9",
    ),
    "a line that is not UTF-8": (
        "pi",
        "s.jsonl",
        b'{"type":"session"}\n\xff\n',
        "s.jsonl: line 2",
        "not UTF-8, at byte 1",
    ),
    "a line that lacks a member": (
        "pi",
        "s.jsonl",
        b'{"type":"session"}\n{"type":"message","id":"a"}\n',
        "s.jsonl: line 2",
        "the member message is missing",
    ),
    "a line with a member of another type": (
        "pi",
        "s.jsonl",
        b'{"type":"session"}\n\n{"type":"message","id":"a","message":7}\n',
        "s.jsonl: line 3",
        "a member has an unexpected type",
    ),
    "a document that is no JSON": (
        "klaw",
        "core_memory.json",
        b'{"user": {\n  "name" "Anna"\n}}',
        "core_memory.json: line 2",
        "no JSON: Expecting ':' delimiter at character 10",
    ),
    "a document that is nested too deeply": (
        "klaw",
        "core_memory.json",
        b"[" * 100_000,
        "core_memory.json",
        "it is nested too deeply",
    ),
    "notes that are not UTF-8": (
        "memory-folder",
        "notes.md",
        b"- tea\n- caf\xe9\n",
        "notes.md: line 2",
        "neither UTF-8 nor UTF-16 with a byte order mark",
    ),
    "a line without the content of its map": (
        "jsonl",
        "a.jsonl",
        b'{"c":"1","t":"a"}\n\n{"c":"1"}\n',
        "a.jsonl: line 3",
        "content: nothing at t",
    ),
    "a row without the chat of its map": (
        "jsonl",
        "a.csv",
        b"c,t\n1,a\n,b\n",
        "a.csv: line 3",
        "chat_id: nothing at c",
    ),
    "a record of a document without the content of its map": (
        "jsonl",
        "a.json",
        b'[{"c":"1","t":"a"},\n{"c":"1"}]',
        "a.json: record 2",
        "content: nothing at t",
    ),
    "a row of a table with a value of another type": (
        "tiered",
        "memory.db",
        b"UPDATE memories SET importance = 'high' WHERE id = 2",
        "memory.db, memories 2",
        "a member has an unexpected type",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_problem_names_its_file_and_its_line_as_people_count(tmp_path: Path, case: str) -> None:
    format, name, data, where, why = CASES[case]
    file = tmp_path / "source" / name
    file.parent.mkdir()
    if format == "tiered":
        with closing(sqlite3.connect(file)) as db:
            db.executescript((FIXTURES / "imports/tiered.sql").read_text())
            db.execute(data.decode())
            db.commit()
    else:
        file.write_bytes(data)
    (tmp_path / "map.toml").write_text(MAP)
    with memlog.open(tmp_path / "store") as store:
        chosen = tmp_path / "map.toml" if format == "jsonl" else None
        report = store.exchange.import_from(format, [file.parent], map=chosen)
    assert [(each.where, each.why) for each in report.problems][:1] == [(where, why)]

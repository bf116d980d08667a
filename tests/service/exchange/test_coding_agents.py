"""memlog import pi, gemini-cli and opencode: what their sessions become, and what they survive."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memlog
from tests.support.agent_samples import opencode, sample

PI = "91000000-0000-4000-8000-000000000001"
GEMINI, OLD_GEMINI = "6e000000-0000-4000-8000-000000000001", "6e111111-0000-4000-8000-000000000002"


def imported(store: memlog.Store, format: str, *paths: Path) -> memlog.ImportReport:
    report: memlog.ImportReport = store.exchange.import_from(format, paths)
    assert report.found == report.used + sum(report.skipped.values()) + report.unreadable
    made = report.appended + report.restored + report.known + report.updated
    assert report.events == made + report.forgotten + report.refused
    return report


def chats(store: memlog.Store) -> dict[str, int]:
    return {each.chat.partition(":")[2]: each.messages for each in store.conversations.sessions()}


def texts(store: memlog.Store, chat: str) -> list[str]:
    window = store.conversations.window(chat, last=99)
    return [each.content.partition("\n```")[0] for each in window.messages]


COUNTED: dict[str, tuple[tuple[int, int, int, int], dict[str, int], dict[str, int]]] = {
    # The thinking is a block of a line that has messages, too.
    "pi": ((7, 8, 0, 2), {"structure": 2, "title": 1}, {PI: 6}),
    "gemini-cli": (
        (9, 10, 2, 3),
        {"bookkeeping": 1, "duplicate_in_source": 1, "structure": 3, "title": 1},
        {GEMINI: 8 - 2, OLD_GEMINI: 2},
    ),
    "opencode": (
        (8 + 19, 8 + 19, 0, 6),
        {
            "harness": 1 + 2,
            "inherited": 1,
            "mirror": 2,
            "pending": 1 + 2,
            "structure": 4 + 5,
            "thinking": 1 + 1,
        },
        {"ses_a01": 5, "ses_b01": 2, "ses_c01": 11, "ses_d01": 3, "ses_e01": 2, "ses_f01": 2},
    ),
}
"""By format: used, appended, updated and described; skipped by reason; messages by chat."""


@pytest.mark.parametrize("format", COUNTED)
def test_a_sample_gives_what_was_counted_by_hand_and_a_second_run_nothing(
    tmp_path: Path, format: str
) -> None:
    home, (counts, skipped, messages) = sample(format, tmp_path / "home"), COUNTED[format]
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, format, home)
        assert (report.used, report.appended, report.updated, report.described) == counts
        assert (report.skipped, report.unreadable, report.unknown_columns) == (skipped, 0, {})
        assert chats(store) == messages
        again = imported(store, format, home)
        assert (again.appended, again.updated, again.described, again.problems) == (0, 0, 0, [])


def lines_of(home: Path) -> Iterator[None]:
    """Let the files of a home grow line by line."""
    files = {path: path.read_bytes().splitlines(keepends=True) for path in home.rglob("*.jsonl")}
    for step in range(1, max(map(len, files.values())) + 1):
        for path, lines in files.items():
            path.write_bytes(b"".join(lines[:step]))
        yield


def rows_of(home: Path) -> Iterator[None]:
    """Let the tables of messages grow message by message."""
    with closing(sqlite3.connect(home / "opencode.db")) as db:
        rows: dict[str, list[tuple[str, tuple[Any, ...]]]] = {}
        for table, message in (("part", 1), ("session_message", 0)):
            for row in db.execute(f"SELECT * FROM {table}"):
                rows.setdefault(row[message], []).append((table, row))
            db.execute(f"DELETE FROM {table}")
        for those in rows.values():
            for table, row in those:
                db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
            db.commit()
            yield


@pytest.mark.parametrize(
    ("format", "grow"), [("pi", lines_of), ("gemini-cli", lines_of), ("opencode", rows_of)]
)
def test_a_home_that_has_grown_is_imported_as_if_it_had_been_whole(
    tmp_path: Path, format: str, grow: Callable[[Path], Iterator[None]]
) -> None:
    digests = []
    for name, is_grown in {"whole": False, "grown": True}.items():
        home = sample(format, tmp_path / name / "home")
        if format == "opencode":
            # ses_d01 stays as one version has it: the other one has no more of it.
            with closing(sqlite3.connect(home / "opencode.db")) as db:
                db.execute("DELETE FROM message WHERE session_id = 'ses_d01'")
                db.commit()
        with memlog.open(tmp_path / name / "store") as store:
            for _ in grow(home) if is_grown else ():
                imported(store, format, home)
            assert imported(store, format, home).appended == (0 if is_grown else COUNTED[format][0][1])
            digests.append(store.maintenance.digest(content=True))
    assert digests[0] == digests[1]


@pytest.mark.parametrize("format", COUNTED)
def test_keys_are_masked(tmp_path: Path, format: str) -> None:
    key = "sk-ant-" + "api03-" + "A" * 24
    home = sample(format, tmp_path / "home")
    if format == "opencode":
        with closing(sqlite3.connect(home / "opencode.db")) as db:
            db.execute("UPDATE session_message SET data = replace(data, 'ls shelf', ?)", (key,))
            db.execute("UPDATE session_v2 SET title = ?, directory = ?", (key, f"/home/{key}"))
            db.commit()
    for path in home.rglob("*.jsonl"):
        text = path.read_text().replace('"on"', f'"{key}"').replace("shelf.txt", key)
        path.write_text(text.replace("Tea order", key).replace("Hot water", key).replace("/home/mia", key))
    with memlog.open(tmp_path / "store") as store:
        imported(store, format, home)
        assert any("[REDACTED:anthropic-key]" in str(each) for each in store.conversations.sessions())
    stored = (path for path in (tmp_path / "store/log").rglob("*") if path.is_file())
    assert not any(key in path.read_text() for path in stored)


def test_chats_have_title_folder_and_parent(tmp_path: Path) -> None:
    gemini = sample("gemini-cli", tmp_path / "gemini-cli")
    agent = gemini / f"tmp/teapot/chats/{GEMINI}/5ba0.jsonl"
    agent.parent.mkdir()
    head = {"sessionId": "5ba0", "projectHash": "f", "kind": "subagent", "startTime": "2026-07-01T10:00:01Z"}
    told = {"id": "s1", "timestamp": "2026-07-01T10:00:02Z", "type": "gemini", "content": "Two teas."}
    agent.write_text("".join(json.dumps(each) + "\n" for each in (head, told)))
    (gemini / "tmp/teapot/.project_root").unlink()  # projects.json names the folder, too
    with memlog.open(tmp_path / "store") as store:
        imported(store, "gemini-cli", gemini)
        imported(store, "pi", sample("pi", tmp_path / "pi"))
        imported(store, "opencode", sample("opencode", tmp_path / "opencode"))
        shown = {each.chat: each for each in store.conversations.sessions()}
    assert {each.folder for each in shown.values()} == {"/home/mia/src/teapot"}
    assert {each.chat: each.parent_chat for each in shown.values() if each.parent_chat} == {
        "gemini-cli:5ba0": f"gemini-cli:{GEMINI}",
        "opencode:ses_b01": "opencode:ses_a01",
        "opencode:ses_e01": "opencode:ses_c01",
        "opencode:ses_f01": "opencode:ses_c01",
    }
    assert [shown[chat].title for chat in (f"pi:{PI}", f"gemini-cli:{GEMINI}", "opencode:ses_a01")] == [
        *("Hot water", "Tea order", "Pot colours")
    ]


def test_a_fork_of_pi_has_only_what_is_its_own_also_when_its_parent_is_gone(tmp_path: Path) -> None:
    home = sample("pi", tmp_path / "home")
    parent = next(home.rglob("*.jsonl"))
    header, *lines = parent.read_text().splitlines(keepends=True)
    fork = parent.with_name("2026-03-01T06-00-00-000Z_91000000-0000-4000-8000-00000000000f.jsonl")
    opened = json.loads(header) | {"id": "f", "parentSession": f"/home/mia/{parent.name}"}
    own = json.loads(lines[1]) | {"id": "0000000f", "timestamp": "2026-03-02T07:00:00Z"}
    fork.write_text("".join([json.dumps(opened) + "\n", *lines[:4], json.dumps(own) + "\n"]))
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, "pi", home).skipped["duplicate_in_source"] == 4
        assert chats(store) == {PI: 6, "f": 1}
        parent.unlink()
        assert imported(store, "pi", home).skipped["inherited"] == 3
        assert chats(store) == {PI: 6, "f": 1}
    with memlog.open(tmp_path / "alone") as store:
        imported(store, "pi", home)
        assert chats(store) == {"f": 5}


def test_lines_of_the_first_version_of_pi_have_no_ids(tmp_path: Path) -> None:
    said = {
        "type": "message",
        "timestamp": "2025-12-01T07:00:00Z",
        "message": {"role": "user", "content": "ok"},
    }
    shell = {"role": "bashExecution", "command": "ls", "output": "pot", "exitCode": 1}
    lines = [{"type": "session", "id": "s", "cwd": "/tea"}, said, said, said | {"message": shell}]
    (tmp_path / "x_s.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, "pi", tmp_path / "x_s.jsonl").appended == 3
        assert texts(store, "pi:s") == ["ok", "ok", "$ ls\npot"]
        assert imported(store, "pi", tmp_path / "x_s.jsonl").appended == 0


def gemini_lines(home: Path, *lines: Any) -> None:
    with next(home.rglob("*.jsonl")).open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in lines)


def test_a_rewind_to_an_unknown_message_takes_back_all(tmp_path: Path) -> None:
    home = sample("gemini-cli", tmp_path / "home")
    gemini_lines(home, {"$rewindTo": "m99"})
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, "gemini-cli", home).updated == 8
        assert chats(store) == {OLD_GEMINI: 2}


def test_a_compressed_history_adds_its_summary_and_hides_nothing(tmp_path: Path) -> None:
    home = sample("gemini-cli", tmp_path / "home")
    kept = {"id": "m7", "type": "gemini", "content": [{"text": "[output is masked]"}]}
    summary = {"id": "n1", "type": "user", "content": [{"text": "<state_snapshot>Mint.</state_snapshot>"}]}
    answer = {"id": "n2", "type": "gemini", "content": [{"text": "Got it."}]}
    gemini_lines(
        home, {"$set": {"messages": [summary, answer, kept]}}, {"$set": {"messages": [summary, kept]}}
    )
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, "gemini-cli", home).types["summary_written"] == 1
        assert chats(store)[GEMINI] == 6
        (found,) = store.conversations.summaries()
        assert found.from_message_id == f"gemini-cli/{GEMINI}/m1"


def test_a_session_of_gemini_that_went_on_in_the_newer_format_is_one_chat(tmp_path: Path) -> None:
    home = sample("gemini-cli", tmp_path / "home")
    old = next(home.rglob("session-*.json"))
    whole = json.loads(old.read_text())
    head = {name: value for name, value in whole.items() if name != "messages"}
    new = {"id": "o3", "timestamp": "2026-06-02T09:00:00Z", "type": "user", "content": "And now?"}
    with memlog.open(tmp_path / "store") as store:
        imported(store, "gemini-cli", home)
        lines = [head, *whole["messages"], new]
        old.with_suffix(".jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
        report = imported(store, "gemini-cli", home)
        assert (report.appended, report.problems) == (1, [])
        assert texts(store, f"gemini-cli:{OLD_GEMINI}") == ["Old format?", "Yes, old.", "And now?"]


def test_a_session_of_gemini_that_was_resumed_in_another_file_is_one_chat(tmp_path: Path) -> None:
    home = sample("gemini-cli", tmp_path / "home")
    file = next(home.rglob("*.jsonl"))
    own = {"id": "m8", "timestamp": "2026-07-02T10:00:00Z", "type": "user", "content": "Is it here?"}
    resumed = file.with_name("session-2026-07-02T10-00-6e000000.jsonl")
    added = (json.dumps(own), json.dumps({"$set": {"summary": "Mint tea"}}), '{"$rewindTo":"m7"}')
    resumed.write_text(file.read_text().replace("Tea order", "Tea") + "\n".join([*added, ""]))
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, "gemini-cli", home)
        assert (report.appended, report.updated, report.problems) == (11, 2 + 2, [])
        assert chats(store)[GEMINI] == 7 - 2
        assert "Mint tea" in {each.title for each in store.conversations.sessions()}
        assert imported(store, "gemini-cli", home).described == 0


def test_a_live_database_of_opencode_is_read_beside_its_writer(tmp_path: Path) -> None:
    home = opencode(tmp_path / "home", "v1")
    row = "INSERT INTO part VALUES(?, 'msg_b2', 'ses_b01', 1782900004000, 1782900004000, ?)"
    with closing(sqlite3.connect(home / "opencode.db", timeout=0)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(row, ("prt_b22", '{"type":"text","text":"and green"}'))
        db.commit()
        with memlog.open(tmp_path / "store") as store:
            db.execute(row, ("prt_b23", '{"type":"text","text":"and black"}'))
            assert imported(store, "opencode", home).appended == 9
            db.commit()
            assert imported(store, "opencode", home).appended == 1
            assert texts(store, "opencode:ses_b01")[1:] == ["blue, white", "and green", "and black"]


def test_messages_that_opencode_2_took_over_are_known_by_their_old_names(tmp_path: Path) -> None:
    home = opencode(tmp_path / "home", "v1")
    with memlog.open(tmp_path / "store") as store:
        imported(store, "opencode", home)
        with closing(sqlite3.connect(home / "opencode.db")) as db:
            script = (Path(__file__).parents[3] / "fixtures/importers/opencode/v2.sql").read_text()
            db.executescript(script.replace("'ses_d01','user'", "'ses_x','user'"))
            db.execute("UPDATE session_message SET session_id = 'ses_d01' WHERE session_id = 'ses_x'")
            new = (
                *("msg_y1", "ses_b01", "user", 1, 0, 0),
                '{"time":{"created":1782900003000},"text":"List the colours"}',
            )
            db.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?, ?)", new)
            db.commit()
        report = imported(store, "opencode", home)
        assert (report.appended, report.updated, report.changed) == (19, 0, 0)
        assert chats(store)["ses_b01"] == 2


def test_what_the_user_of_opencode_took_back_is_marked_and_a_copy_adds_nothing(tmp_path: Path) -> None:
    home = opencode(tmp_path / "home", "v1")
    with closing(sqlite3.connect(home / "opencode.db")) as db:
        db.execute(
            """UPDATE session SET revert = '{"messageID":"msg_b2"}', title = 'T' WHERE id = 'ses_b01'"""
        )
        db.commit()
    shutil.copy(home / "opencode.db", home / "opencode-beta.db")
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, "opencode", home)
        assert (report.appended, report.updated, report.skipped["duplicate_in_source"]) == (8, 1, 6)
        assert texts(store, "opencode:ses_b01") == ["List the colours"]
        with closing(sqlite3.connect(home / "opencode.db")) as db:
            db.execute("UPDATE session SET title = 'U', time_updated = time_updated + 1 WHERE id = 'ses_b01'")
            db.commit()
        again = imported(store, "opencode", home)
        assert (again.appended, again.updated, again.described, again.problems) == (0, 0, 1, [])
        assert "U" in {each.title for each in store.conversations.sessions()}


@pytest.mark.parametrize("format", ["pi", "gemini-cli"])
@pytest.mark.parametrize(
    ("line", "unreadable", "unknown"),
    [
        ("[1]", 1, False),
        ("{nonsense", 1, False),
        ('{"type":"dream","id":"d1","timestamp":"2026-09-01T08:00:00Z"}', 0, True),
        ('{"type":"message","id":"d2","timestamp":7,"message":{"role":"user","content":7}}', None, None),
        ('{"type":"compaction","id":"d4","summary":true}', None, None),
        ('{"type":"user","id":"d3","content":{"text":["x"]}}', None, None),
        ('{"$set":{"messages":7}}', None, None),
        ('{"$rewindTo":{}}', None, None),
    ],
)
def test_a_bad_line_costs_no_other_and_an_unknown_type_is_named(
    tmp_path: Path, format: str, line: str, unreadable: int | None, unknown: bool | None
) -> None:
    home = sample(format, tmp_path / "home")
    file = next(home.rglob("*.jsonl"))
    first, _, rest = file.read_text().partition("\n")
    file.write_text(f"{first}\n{line}\n{rest}")
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, format, home)
        assert sum(chats(store).values()) >= sum(COUNTED[format][2].values())
    assert unreadable is None or (report.unreadable, report.unknown_columns != {}) == (unreadable, unknown)


@pytest.mark.parametrize("column", ["data", "id", "session_id", "time_created"])
@pytest.mark.parametrize("value", [None, 7, b"\xff", "x", '{"time":7,"content":7}', '{"content":[7]}'])
@pytest.mark.parametrize("table", ["message", "part", "session_message"])
def test_a_bad_row_of_opencode_costs_no_other(tmp_path: Path, table: str, column: str, value: Any) -> None:
    home = opencode(tmp_path / "home")
    with closing(sqlite3.connect(home / "opencode.db")) as db:
        db.execute(f"UPDATE {table} SET {column} = ? WHERE id IN ('msg_b2', 'prt_b21', 'msg_e2')", (value,))
        db.commit()
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, "opencode", home).appended >= 26

"""`memlog forget` as processes: what it asks, lists and prints."""

import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_tree import MEMLOG

Run = Callable[..., Any]

LINE = ["id", "stream", "segment", "offset", "line", "type", "words"]


@pytest.fixture
def number(memlog: Run) -> None:
    """A message with a phone number, and one without."""
    for name, content in (("m1", "my number is 5551234"), ("m2", "thank you")):
        memlog("append", "message", "--chat", "x:1", "--role", "user", "--id", name, "--content", content)


@pytest.mark.usefixtures("number")
def test_the_shape_of_what_was_forgotten(memlog: Run) -> None:
    done = memlog("forget", "m1", "--yes", "--reason", "private", "--json")
    assert done.code == 0
    assert list(done.json) == ["lines", "redacted", "already", "vectors", "unreachable", "dry_run"]
    (line,) = done.json["lines"]
    assert list(line) == LINE
    assert (line["id"], line["offset"], line["line"], line["type"]) == ("m1", 0, 1, "message")
    assert (done.json["redacted"], done.json["dry_run"]) == (1, False)
    assert memlog("verify").code == 0


@pytest.mark.usefixtures("number")
def test_a_dry_run_lists_and_leaves_all_as_it_is(memlog: Run, store: Path) -> None:
    before = [path.read_bytes() for path in (store / "log").rglob("*.jsonl")]
    done = memlog("forget", "--match", "number", "--dry-run")
    assert b"my number is 5551234" in done.out
    assert done.err.endswith(b"memlog: 1 line would be forgotten\n")
    assert memlog("forget", "m1", "--dry-run", "--jsonl").lines[0]["words"] == "my number is 5551234"
    assert [path.read_bytes() for path in (store / "log").rglob("*.jsonl")] == before


@pytest.mark.usefixtures("number")
def test_without_a_terminal_and_without_yes_it_is_wrong_usage(memlog: Run) -> None:
    done = memlog("forget", "m1", "--json")
    assert (done.code, done.error["code"]) == (2, "usage")
    assert "--yes" in done.error["message"]
    assert memlog("show", "m1").code == 0


@pytest.mark.usefixtures("number")
@pytest.mark.parametrize("args", [[], ["m1", "--match", "x"], ["--memory", "m", "--stream", "memory"]])
def test_not_exactly_one_thing_to_forget_is_wrong_usage(memlog: Run, args: list[str]) -> None:
    assert memlog("forget", *args, "--yes").code == 2


@pytest.mark.usefixtures("number")
@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 1), (b"n\n", 0)])
def test_a_person_is_asked_and_sees_what_would_go(
    memlog: Run, environment: dict[str, str], answer: bytes, code: int
) -> None:
    ours, its = pty.openpty()
    os.write(ours, answer)
    done = subprocess.run(
        [MEMLOG, "forget", "m1"], stdin=its, env=environment, capture_output=True, timeout=60, check=False
    )
    os.close(its)
    os.close(ours)
    assert done.returncode == 0
    assert b"conversations/x_1" in done.stderr
    assert b"my number is 5551234\nForget 1 line? [y/N]: " in done.stderr
    assert (b"nothing was forgotten" in done.stderr) == (code == 0)
    assert memlog("show", "m1").code == code


def test_what_is_unknown_and_what_is_no_pattern(memlog: Run) -> None:
    memlog("append", "session_break", "--chat", "x:1")
    for args, error in (
        (["nothing"], "event_not_found"),
        (["--memory", "nothing"], "memory_not_found"),
        (["--chat", "x:nobody"], "session_not_found"),
    ):
        done = memlog("forget", *args, "--yes", "--json")
        assert (done.code, done.error["code"]) == (1, error)
    done = memlog("forget", "--match", "(", "--yes", "--json")
    assert (done.code, done.error["code"]) == (65, "bad_input")
    nothing = memlog("forget", "--match", "nobody says this", "--yes")
    assert (nothing.code, nothing.out) == (0, b"")
    assert b"nothing to forget" in nothing.err


def test_where_a_line_stands_that_no_redaction_reaches_is_said(memlog: Run, segment: Any) -> None:
    segment("elsewhere", b'{"content":"my number"}\n')
    done = memlog("forget", "--match", "number", "--yes")
    assert b"elsewhere/2026-02-24.jsonl:1 (byte 0) is in no stream" in done.err


@pytest.mark.usefixtures("number")
def test_the_shapes_of_scrub_and_of_its_proof(memlog: Run) -> None:
    memlog("forget", "m1", "--yes")
    done = memlog("scrub", "--prove", "5551234", "--json")
    assert (done.code, list(done.json)) == (1, ["found", "files", "bytes", "left_out", "git"])
    assert [list(each) for each in done.json["found"]][:1] == [["file", "offset"]]
    done = memlog("scrub", "--yes", "--json")
    assert list(done.json) == ["lines", "bytes", "segments", "done", "generation", "vectors", "notes"]
    assert (done.code, done.json["lines"], done.json["done"]) == (0, 1, True)
    done = memlog("scrub", "--prove", "-", input=b"5551234\n")
    assert (done.code, done.out) == (0, b"")
    assert b"not found in" in done.err
    assert memlog("verify", "--strict").code == 0


@pytest.mark.usefixtures("number")
def test_scrub_asks_and_says_what_it_cannot_reach(memlog: Run, environment: dict[str, str]) -> None:
    memlog("forget", "m1", "--yes")
    assert memlog("scrub").code == 2
    assert memlog("scrub", "--yes", "--prove", "x").code == 2
    ours, its = pty.openpty()
    os.write(ours, b"n\ny\n")
    for said in (b"nothing was done", b"1"):
        done = subprocess.run(
            [MEMLOG, "scrub"], stdin=its, env=environment, capture_output=True, timeout=60, check=False
        )
        assert b"Overwrite 1 line in 1 segment permanently, and build a new read model? [y/N]" in done.stderr
        assert said in done.stdout
    assert b"out of reach: backups, snapshots" in done.stderr
    os.close(its)
    os.close(ours)


def test_a_pipe_in_the_store_is_named_by_the_proof(memlog: Run, store: Path) -> None:
    memlog("append", "session_break", "--chat", "x:1")
    os.mkfifo(store / "pipe")
    done = memlog("scrub", "--prove", "nothing")
    assert b"not a file, so it was not read: " in done.err
    assert done.code == 1, "it proves nothing about what it has not read"


@pytest.mark.usefixtures("number")
@pytest.mark.parametrize("where", [".", "log", ".."])
def test_the_proof_names_a_git_whose_history_it_cannot_search(memlog: Run, store: Path, where: str) -> None:
    memlog("forget", "m1", "--yes")
    memlog("scrub", "--yes")
    assert memlog("scrub", "--prove", "5551234", "--json").json["git"] == []
    repository = (store / where).resolve()
    subprocess.run(["git", "init"], cwd=repository, check=True, capture_output=True, timeout=60)
    done = memlog("scrub", "--prove", "5551234")
    assert (done.code, done.out) == (0, b"")
    assert f"{repository}/.git: git's history was not searched".encode() in done.err
    assert b"docs/copies.md" in done.err


def test_a_reason_that_says_what_is_forgotten_is_refused(memlog: Run, store: Path) -> None:
    memlog("append", "message", "--chat", "c:1", "--role", "user", "--content", "my number is 0405551234")
    segment = next(store.glob("log/**/*.jsonl"))
    before = segment.read_bytes()
    done = memlog("forget", "--match", r"\d{7}", "--reason", "0405551234 is private", "--yes", "--json")
    assert (done.code, done.error["code"]) == (65, "bad_input")
    assert "0405551234" not in done.error["message"]
    assert segment.read_bytes() == before
    assert memlog("forget", "--match", r"\d{7}", "--reason", "a phone number", "--yes").code == 0

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


@pytest.fixture
def number(memlog: Run) -> None:
    """A message with a phone number, and one without."""
    for name, content in (("m1", "my number is 5551234"), ("m2", "thank you")):
        memlog("append", "message", "--chat", "x:1", "--role", "user", "--id", name, "--content", content)


@pytest.mark.usefixtures("number")
def test_without_a_terminal_and_without_yes_it_is_wrong_usage(memlog: Run) -> None:
    done = memlog("forget", "m1", "--json")
    assert (done.code, done.error["code"]) == (2, "usage")
    assert "--yes" in done.error["message"]
    assert memlog("show", "m1").code == 0


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


def test_where_a_line_stands_that_no_redaction_reaches_is_said(memlog: Run, segment: Any) -> None:
    segment("elsewhere", b'{"content":"my number"}\n')
    done = memlog("forget", "--match", "number", "--yes")
    assert b"elsewhere/2026-02-24.jsonl:1 (byte 0) is in no stream" in done.err


@pytest.mark.usefixtures("number")
def test_the_proof_has_a_verdict(memlog: Run) -> None:
    memlog("forget", "m1", "--yes")
    assert memlog("scrub", "--prove", "5551234").code == 1
    assert memlog("scrub", "--yes").code == 0
    done = memlog("scrub", "--prove", "-", input=b"5551234\n")
    assert (done.code, done.out) == (0, b"")
    assert b"not found in" in done.err


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

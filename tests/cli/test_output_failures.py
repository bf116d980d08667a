"""Output that cannot be written: what is stored is said to be, and a reader that goes is no failure."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.support.command_tree import MEMLOG, called
from tests.support.forked_memlog import run_memlog
from tests.support.sample_calls import BY_OPERATION, arguments_of

Run = Callable[..., Any]

APPENDS_OTHERWISE = {
    "maintenance.watch",  # tested in test_watch.py
    "context",  # that memories were given is counted; nobody appends it again
}
APPENDING = [
    ("append", "message"),
    *(
        path
        for path, each in BY_OPERATION.items()
        if each.name == "erasure.forget" or (each.effect == "append" and each.name not in APPENDS_OTHERWISE)
    ),
]
"""Every command that appends and prints what it has done."""


@pytest.fixture
def full() -> Iterator[BinaryIO]:
    """What takes no byte."""
    with Path("/dev/full").open("wb") as opened:
        yield opened


def run(environment: dict[str, str], *args: str, stdout: BinaryIO | None, **options: Any) -> tuple[int, str]:
    done = run_memlog(*args, env=environment, stdout=stdout, **options)
    return done.returncode, done.stderr.decode()


def ids_in(store: Path) -> set[str]:
    lines = [line for path in (store / "log").rglob("*.jsonl") for line in path.open()]
    return {str(json.loads(line).get("id")) for line in lines}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("path", APPENDING, ids=called)
def test_what_was_stored_is_named_where_the_answer_cannot_be_written(
    environment: dict[str, str], store: Path, tmp_path: Path, full: BinaryIO, path: tuple[str, ...]
) -> None:
    before = ids_in(store)
    code, err = run(environment, *path, *arguments_of(path, tmp_path), stdout=full)
    stored = ids_in(store) - before
    assert stored
    assert code == 74
    last, hint = err.splitlines()[-2:]
    assert "stored" in last
    assert "could not be written: No space left on device" in last
    assert "do not append" in hint
    assert any(event_id in last for event_id in stored)


def test_a_closed_stdout_is_no_output_and_takes_no_file_of_the_store(
    environment: dict[str, str], store: Path
) -> None:
    said = ("append", "message", "--chat", "c:1", "--role", "user", "--content", "tea")
    code, err = run(environment, *said, stdout=None, preexec_fn=lambda: os.close(1))
    (event_id,) = ids_in(store)
    assert code == 74
    assert f"the event {event_id} is stored" in err


def test_a_pipe_whose_reader_goes_names_what_it_did_not_acknowledge(
    environment: dict[str, str], store: Path
) -> None:
    line = b'{"type":"memory_saved","content":"tea"}\n'
    process = subprocess.Popen(
        [MEMLOG, "append"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    process.stdin.write(line)
    acknowledged = process.stdout.readline().decode()
    process.stdout.close()
    process.stdin.write(line)
    process.stdin.close()
    err = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(60) == 74
    (unacknowledged,) = [event_id for event_id in ids_in(store) if event_id not in acknowledged]
    assert f"the event {unacknowledged} is stored" in err
    assert [event_id for event_id in ids_in(store) if event_id in err] == [unacknowledged]


@pytest.fixture
def nobody() -> Iterator[BinaryIO]:
    """A pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as opened:
        yield opened


PRINTING_MUCH = (
    *("query tea --mode text", "query tea --mode text --jsonl", "context tea", "window --chat x:1"),
    *("log cat", "log cat --raw", "log tail", "session content x:1", "sessions", "memory list --json"),
    *("memory history likes", "daily list --format md", "fact list", "core get", "docs list", "docs tree"),
    *("--help", "help --json", "completion bash"),
)


@pytest.mark.usefixtures("filled")
def test_a_reader_that_has_gone_is_no_failure(environment: dict[str, str], nobody: BinaryIO) -> None:
    for command in PRINTING_MUCH:
        code, err = run(environment, *command.split(), stdout=nobody)
        notes = [line for line in err.splitlines() if "there was no read model" not in line]
        assert (code, notes) == (0, []), command


def test_head_ends_a_long_output_without_a_word(environment: dict[str, str], store: Path) -> None:
    """More than a pipe holds, so that memlog writes after `head` has gone."""
    segment = store / "log/conversations/x_1/2026-02-24.jsonl"
    segment.parent.mkdir(parents=True)
    segment.write_text('{"role":"user","content":"green tea and trains"}\n' * 2000)
    for command in ("project --no-embed", "log cat", "log cat --raw", "window --chat x:1 --last 2000"):
        script = f"{{ {MEMLOG} {command}; echo $? >&2; }} | head -1"
        done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, timeout=60)
        assert done.stderr == b"0\n", command
        assert len(done.stdout.splitlines()) == 1, command


@pytest.mark.usefixtures("filled")
def test_a_reader_that_has_gone_changes_no_verdict(
    environment: dict[str, str], store: Path, nobody: BinaryIO
) -> None:
    assert run(environment, "verify", stdout=nobody)[0] == 0
    (segment,) = (store / "log" / "memory").iterdir()
    segment.write_bytes(segment.read_bytes().replace(b'"likes tea"', b'"likes TEA"'))
    assert run(environment, "verify", stdout=nobody)[0] == 3
    assert run(environment, "gate", "ok", stdout=nobody)[0] == 1


def test_an_answer_that_cannot_be_written_and_stores_nothing_may_be_tried_again(
    environment: dict[str, str], full: BinaryIO
) -> None:
    code, err = run(environment, "gate", "what is my name?", stdout=full)
    assert code == 74
    assert err.splitlines() == [
        "memlog: the output: No space left on device",
        "hint: make it writable, then try again",
    ]


def test_notes_that_cannot_be_written_stop_nothing(environment: dict[str, str], full: BinaryIO) -> None:
    event = b'{"type":"memory_saved","content":"tea","nmae":"Anna"}\n'
    done = subprocess.run(
        [MEMLOG, "append"], env=environment, input=event, stdout=subprocess.PIPE, stderr=full, check=False
    )
    assert (done.returncode, b'"warnings"' in done.stdout) == (0, True)

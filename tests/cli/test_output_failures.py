"""Output that cannot be written: what is stored is said to be, and a reader that goes is no failure."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.support.command_tree import COMMANDS, MEMLOG, does_something
from tests.support.forked_memlog import run_memlog

Run = Callable[..., Any]

APPENDING: dict[str, tuple[str, ...]] = {
    "append message": ("--chat", "c:1", "--role", "user", "--content", "tea"),
    "core import": ("core.json",),
    "core set": ("user", "name", "Anna"),
    "core delete": ("user", "city"),
    "daily compress": ("d1", "--memory-id", "m"),
    "daily record": ("--summary", "went to Tampere"),
    "decay": (),
    "jobs run": ("daily",),
    "import": ("klaw", "core.json"),
    "docs add": ("folder",),
    "docs refresh": (),
    "docs remove": ("kept",),
    "fact extract": ("My favourite colours are 1) Blue, 2) Green",),
    "fact remove": ("city",),
    "fact set": ("color", "red"),
    "forget": ("m1", "--yes"),
    "memory save": ("--content", "Anna likes coffee"),
    "memory touch": ("m",),
    "memory update": ("m", "--content", "green tea"),
    "memory archive": ("m",),
    "memory unmerge": ("n",),
    "memory delete": ("m",),
    "prune": ("--category", "context", "--threshold", "1"),
    "workspace add": ("notes",),
    "workspace remove": ("agent",),
}
"""Every command that appends and prints what it has done, in a way that appends something. None keeps a later
one from doing so."""

APPENDS_OTHERWISE = {
    *("append", "watch"),  # tested by themselves, below and in test_watch.py
    "context",  # that memories were given is counted; nobody appends it again
}


@pytest.fixture
def filled(memlog: Run, store: Path, tmp_path: Path) -> None:
    """A store in which each of `APPENDING` has something to do."""
    events = (
        b'{"type":"message","id":"m1","channel":"c","chat_id":"1","role":"user","content":"x"}',
        b'{"type":"memory_saved","memory_id":"m","content":"tea","category":"context"}',
        b'{"type":"memory_saved","memory_id":"p","content":"pears","category":"context"}',
        b'{"type":"memory_saved","id":"n1","memory_id":"n","content":"nuts"}',
        b'{"type":"memory_saved","id":"n2","memory_id":"o","content":"Nuts"}',
        b'{"type":"memory_archived","memory_id":"o","extraction":{"id":"n3","model":"memlog","prompt":"x"}}',
        b'{"type":"memories_merged","id":"n3","event_ids":["n2"],"decisions":[{"relation":"same",'
        b'"memory_ids":["n","o"],"event_ids":["n1","n2"],"memory_id":"n"}]}',
        b'{"type":"daily_event_recorded","id":"d1","summary":"x"}',
        b'{"type":"core_memory_updated","section":"user","key":"city","value":"Helsinki"}',
        b'{"type":"fact_stored","topic_key":"city","value":"Helsinki"}',
    )
    assert memlog("append", input=b"\n".join(events)).code == 0
    (tmp_path / "core.json").write_text('{"user":{"pet":"cat"},"agent":{}}')
    for name in ("folder", "kept", "notes", "agent"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "MEMORY.md").write_text("# Tea\n\nGreen.\n")
    assert memlog("docs", "add", tmp_path / "kept").code == 0
    assert memlog("workspace", "add", tmp_path / "agent").code == 0
    (tmp_path / "kept" / "new.md").write_text("new\n")


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
def test_what_was_stored_is_named_where_the_answer_cannot_be_written(
    environment: dict[str, str], store: Path, tmp_path: Path, full: BinaryIO
) -> None:
    for command, args in APPENDING.items():
        before = ids_in(store)
        code, err = run(environment, *command.split(), *args, stdout=full, cwd=tmp_path)
        stored = ids_in(store) - before
        assert stored, command
        assert code == 74, command
        last, hint = err.splitlines()[-2:]
        assert "stored" in last, command
        assert "could not be written: No space left on device" in last, command
        assert "do not append" in hint, command
        assert any(event_id in last for event_id in stored), command


def test_every_command_that_may_append_is_tried() -> None:
    named = {" ".join(path) for path, command in COMMANDS.items() if path and does_something(command)}
    assert set(APPENDING) | APPENDS_OTHERWISE <= named
    reading = {
        *(
            "ask",
            "buffer",
            "completion",
            "config",
            "extract",
            "daily distil",
            "prompts show",
            "core get",
            "daily list",
            "digest",
            "docs jobs",
            "docs list",
        ),
        *(
            "docs show",
            "docs status",
            "docs tree",
            "doctor",
            "embed",
            "fact get",
            "fact list",
            "gate",
            "help",
            "export sqlite",
            "jobs list",
            "jobs log",
            "jobs schedule",
            "memory conflicts",
            "mcp",
        ),
        *("init", "log cat", "log tail", "memory history", "memory list", "memory show", "project"),
        *("projects list", "projects remove", "projects show", "quarantine", "query", "scrub", "seal"),
        *(
            "secrets",
            "serve",
            "session content",
            "sessions",
            "show",
            "stats",
            "status",
            "summaries",
            "verify",
        ),
        *("window", "workspace list"),
    }
    types = {name for name in named if name.startswith("append ")}
    assert named - types - reading == (set(APPENDING) - types) | APPENDS_OTHERWISE


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
    *("query tea --mode text", "query tea --mode text --jsonl", "context tea", "window --chat c:1"),
    *("log cat", "log cat --raw", "log tail", "session content c:1", "sessions", "memory list --json"),
    *("memory history m", "daily list --format md", "fact list", "core get", "docs list", "docs tree"),
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
    segment.write_bytes(segment.read_bytes().replace(b'"tea"', b'"TEA"'))
    assert run(environment, "verify", stdout=nobody)[0] == 3
    assert run(environment, "gate", "ok", stdout=nobody)[0] == 1


def test_an_answer_that_cannot_be_written_and_stores_nothing_may_be_tried_again(
    environment: dict[str, str], full: BinaryIO
) -> None:
    code, err = run(environment, "gate", "what is my name?", stdout=full)
    assert code == 74
    assert err.splitlines() == [
        "memlog: the output: No space left on device",
        "hint: see that it can be written, then try again",
    ]


def test_notes_that_cannot_be_written_stop_nothing(environment: dict[str, str], full: BinaryIO) -> None:
    event = b'{"type":"memory_saved","content":"tea","nmae":"Anna"}\n'
    done = subprocess.run(
        [MEMLOG, "append"], env=environment, input=event, stdout=subprocess.PIPE, stderr=full, check=False
    )
    assert (done.returncode, b'"warnings"' in done.stdout) == (0, True)

"""memlog append: one event from options, or JSON Lines from a pipe that may stay open."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def memory(content: str, **members: Any) -> bytes:
    return json.dumps({"type": "memory_saved", "content": content} | members).encode() + b"\n"


def stored(store: Path, position: dict[str, Any]) -> dict[str, Any]:
    """The line at a position."""
    data = (store / "log" / position["stream"] / position["segment"]).read_bytes()
    members: dict[str, Any] = json.loads(data[position["offset"] :].partition(b"\n")[0])
    return members


def contents(store: Path) -> list[str]:
    """What the memories in the log say, in order."""
    lines = [line for path in sorted((store / "log/memory").iterdir()) for line in path.open("rb")]
    return [json.loads(line)["content"] for line in lines]


# One event


def test_a_message_is_stored_with_all_that_was_given(memlog: Run, store: Path) -> None:
    done = memlog(
        *("append", "message", "--chat", "telegram:7", "--role", "assistant", "--content", "grüner Tee"),
        *("--name", "Ann", "--kind", "subagent_result", "--meta", '{"model":"m","tokens_in":3}'),
        *("--id", "my-id", "--ts", "2026-02-24T12:15:00+02:00"),
    )
    assert (done.code, done.err) == (0, b"")
    line = stored(store, done.json)
    assert list(line)[:5] == ["type", "id", "ts", "at", "v"]
    assert {name: line[name] for name in line if name not in ("at", "crc")} == {
        "type": "message",
        "id": "my-id",
        "ts": "2026-02-24T10:15:00.000Z",
        "v": 1,
        "channel": "telegram",
        "chat_id": "7",
        "role": "assistant",
        "content": "grüner Tee",
        "name": "Ann",
        "kind": "subagent_result",
        "meta": {"model": "m", "tokens_in": 3},
    }


def test_a_chat_is_split_at_its_first_colon(memlog: Run, store: Path) -> None:
    done = memlog("append", "message", "--chat", "x:a:b", "--role", "user", "--content", "hi")
    line = stored(store, done.json)
    assert (line["channel"], line["chat_id"]) == ("x", "a:b")


def test_the_content_can_come_from_stdin(memlog: Run, store: Path) -> None:
    for given, content in {
        b"from stdin\n": "from stdin",
        b"no newline": "no newline",
        b"two\n\n": "two\n",
        b"": "",
        "喝茶 😀\n".encode(): "喝茶 😀",
        b"a\x00b": "a\x00b",
    }.items():
        done = memlog("append", "message", "--chat", "x:1", "--role", "user", "--content", "-", input=given)
        assert stored(store, done.json)["content"] == content


def test_a_content_from_stdin_that_is_not_utf_8_is_refused(memlog: Run, store: Path) -> None:
    done = memlog(
        *("append", "message", "--chat", "x:1", "--role", "user", "--content", "-", "--json"),
        input=b"caf\xe9",
    )
    assert done.code == 65
    assert done.error["code"] == "bad_input"
    assert "byte 3" in done.error["message"]
    assert not store.exists()


def test_a_content_from_stdin_of_over_16_mib_is_refused(memlog: Run, store: Path) -> None:
    for given in (b"x" * (17 << 20), "é".encode() * (9 << 20)):
        done = memlog(
            *("append", "message", "--chat", "x:1", "--role", "user", "--content", "-", "--json"), input=given
        )
        assert (done.code, done.error["code"]) == (65, "too_long")
        assert not store.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is another on each platform")
def test_without_a_store_the_projects_folder_is_used(memlog: Run, tmp_path: Path) -> None:
    env = {"MEMLOG_STORE": "", "XDG_DATA_HOME": str(tmp_path / "data")}
    said = ("append", "message", "--chat", "x:1", "--role", "user", "--content", "x")
    memlog(*said, env=env)
    memlog("--project", "Notes/2", *said, env=env)
    memlog(*said, env=env | {"MEMLOG_PROJECT": "three"})
    assert sorted(path.name for path in (tmp_path / "data/memlog").iterdir()) == [
        "%4eotes%2f2",
        "default",
        "three",
    ]


# A pipe


def test_a_pipe_acknowledges_each_line_while_it_stays_open(open_pipe: Run, store: Path) -> None:
    pipe = open_pipe()
    for number in range(5):
        pipe.say(memory(f"memory {number}"))
        assert stored(store, pipe.hear())["content"] == f"memory {number}"
    assert pipe.end() == (0, b"", b"")


def test_a_line_is_not_answered_before_it_has_ended(open_pipe: Run, store: Path) -> None:
    pipe = open_pipe()
    pipe.say(memory("first"))
    pipe.hear()
    start, rest = memory("second")[:20], memory("second")[20:]
    pipe.say(start)
    assert pipe.is_silent(0.2)
    pipe.say(rest)
    assert stored(store, pipe.hear())["content"] == "second"


def test_a_bad_line_is_answered_while_the_pipe_stays_open(open_pipe: Run, store: Path) -> None:
    pipe = open_pipe()
    pipe.say(b'{"type":"memory_saved","content":"x","importance":"high"}\n')
    error = pipe.hear()["error"]
    assert error["code"] == "invalid"
    assert "`$.importance`" in error["message"]
    assert error["hint"]
    assert error["retryable"] is False
    pipe.say(memory("still here"))
    assert stored(store, pipe.hear())["content"] == "still here"
    assert pipe.end().code == 65


def test_what_has_nothing_is_left_out_and_counted(memlog: Run, store: Path) -> None:
    done = memlog("append", input=b"\n  \n" + memory("one") + b"\r\n\n" + b"hello\n")
    assert [answer.get("line") for answer in done.lines] == [None, 6]
    assert contents(store) == ["one"]


def test_an_empty_pipe_is_no_error(memlog: Run, store: Path) -> None:
    assert memlog("append") == (0, b"", b"")
    assert not store.exists()


def test_events_of_several_streams_are_answered_in_their_order(memlog: Run) -> None:
    said = b'{"type":"message","channel":"x","chat_id":"1","role":"user","content":"hi"}\n'
    done = memlog("append", input=memory("one") + said + memory("two") + said)
    assert [ack["stream"] for ack in done.lines] == [
        "memory",
        "conversations/x_1",
        "memory",
        "conversations/x_1",
    ]


def test_a_flood_is_stored_whole_and_in_order(memlog: Run, store: Path) -> None:
    numbers = [f"{number}" for number in range(2000)]
    done = memlog("append", input=b"".join(memory(number) for number in numbers))
    assert done.code == 0
    assert contents(store) == numbers
    assert [stored(store, ack)["content"] for ack in done.lines[::97]] == numbers[::97]


def test_a_log_can_be_appended_to_another(memlog: Run, store: Path, tmp_path: Path) -> None:
    """`cat` of a log is an input: `at` and `crc` are checked, dropped, set anew."""
    memlog("append", input=memory("one") + memory("two"))
    lines = next((store / "log/memory").iterdir()).read_bytes()
    other = memlog("--store", tmp_path / "other", "append", input=lines)
    assert other.code == 0
    assert [ack["id"] for ack in other.lines] == [json.loads(line)["id"] for line in lines.splitlines()]
    damaged = memlog("--store", tmp_path / "third", "append", input=lines.replace(b'"one"', b'"two"'))
    assert [answer.get("error", {}).get("code") for answer in damaged.lines] == ["bad_crc", None]


def test_a_closed_stdin_is_no_fault_of_memlog(memlog: Run) -> None:
    """`memlog append <&-`, or a service that was started without one."""
    done = memlog("append", input=None, stdin=None, preexec_fn=lambda: os.close(0))
    assert done.code != 70


def test_two_pipes_into_one_stream_lose_nothing(open_pipe: Run, store: Path) -> None:
    pipes = [open_pipe() for _ in range(2)]
    for number in range(50):
        for pipe, name in zip(pipes, "ab", strict=True):
            pipe.say(memory(f"{name}{number}"))
    answers = [pipe.end() for pipe in pipes]
    acknowledged = [stored(store, ack)["content"] for answer in answers for ack in answer.lines]
    assert sorted(acknowledged) == sorted(contents(store))
    assert len(acknowledged) == 100


def test_a_log_may_be_written_by_echo(memlog: Run, segment: Run) -> None:
    path = segment("memory", b"")
    subprocess.run(
        ["/bin/sh", "-c", f"""echo '{{"type":"memory_saved","content":"by hand"}}' >> {path}"""], check=True
    )
    hits = memlog("query", "hand", "--mode", "text", "--json").json["hits"]
    assert [hit["event_id"] for hit in hits] == ["2026-02-24.jsonl:0"]

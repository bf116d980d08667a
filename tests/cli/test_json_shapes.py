"""JSON that a command prints in another form than its operation, and positions that are those of bytes."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def append(memlog: Run) -> Callable[..., Any]:
    """Appends events through the pipe and returns the answers."""

    def run(*events: dict[str, Any]) -> list[Any]:
        answers: list[Any] = memlog(
            "append", input=b"".join(json.dumps(each).encode() + b"\n" for each in events)
        ).lines
        return answers

    return run


def message(content: str, **members: Any) -> dict[str, Any]:
    return {"type": "message", "channel": "x", "chat_id": "1", "role": "user", "content": content} | members


def test_query_of_copies_tells_their_number(memlog: Run, append: Run) -> None:
    append(*[message(text) for text in ("Tea?", "tea", "TEA!")], message("Tea?", role="assistant"))
    asked = partial(memlog, "query", "tea", "--mode", "text")
    heads = asked().out.decode().splitlines()[::3]
    assert ["(the newest of 3 copies)" in head for head in heads] == [True, False]
    assert "copies" in asked("--format", "md").out.decode().splitlines()[0]


@pytest.mark.usefixtures("empty_store")
def test_query_that_finds_nothing(memlog: Run) -> None:
    result = memlog("query", "tea", "--mode", "text", "--json").json
    assert result["hits"] == []


@pytest.mark.usefixtures("empty_store")
def test_core(memlog: Run) -> None:
    memlog("core", "set", "user", "name", "Ann")
    memlog("core", "set", "agent", "rules", "be kind")
    assert memlog("core", "get", "user", "--json").json == {"user": {"name": "Ann"}}
    one = memlog("core", "get", "user", "name", "--json").json
    assert one == {"section": "user", "key": "name", "value": "Ann"}


@pytest.mark.parametrize("command", ["doctor", "verify"])
def test_a_verdict_is_in_the_document_too(memlog: Run, append: Run, command: str) -> None:
    append(message("tea"))
    done = memlog(command, "--json")
    assert (done.code, done.json["ok"]) == (0, True)


def test_every_position_of_a_query_is_where_the_events_bytes_are(
    memlog: Run, append: Run, segment: Run, store: Path
) -> None:
    """Behind a byte order mark, behind CRLF, blank, bad and long lines; in several segments and streams."""
    chat = b'{"role":"user","content":"needle %d \xe5\x96\x9d\xe8\x8c\xb6"}'
    segment(
        "conversations/x_1",
        b"\xef\xbb\xbf" + chat % 1 + b"\r\n\n" + chat % 2 + b"\nnot JSON\n" + chat % 3,
        "2026-02-23.jsonl",
    )
    segment("conversations/x_1", b"\n" * 1000 + chat % 4 + b"\n", "2026-02-24.jsonl")
    segment("conversations/x_1", b"x" * 2_000_000 + b"\n" + chat % 5 + b"\n", "2026-02-24.0001.jsonl")
    segment("memory", b'{"type":"memory_saved","content":"needle 6"}\n' + b"\x00\n", "2026-02-24.jsonl")
    append(message("needle 7"), {"type": "memory_saved", "content": "needle 8"}, message("needle 9 \n 喝茶"))
    hits = memlog("query", "needle", "--mode", "text", "-k", "50", "--json").json["hits"]
    assert len(hits) == 9
    for hit in hits:
        place = hit["position"]
        data = (store / "log" / place["stream"] / place["segment"]).read_bytes()
        line = data[place["offset"] :].partition(b"\n")[0].removeprefix(b"\xef\xbb\xbf")
        assert json.loads(line)["content"] == hit["content"]
        assert place["line"] == data[: place["offset"]].count(b"\n") + 1
        assert place["offset"] == 0 or data[place["offset"] - 1 : place["offset"]] == b"\n"
        shown = memlog("show", hit["event_id"], "--stream", place["stream"], "--json").json
        assert shown["position"] == place
        assert json.loads(shown["raw"].removeprefix("\ufeff"))["content"] == hit["content"]

"""A sealed segment that is gone: said clearly, exit 3, and all else goes on until the loss is accepted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
CHAT = ("append", "message", "--role", "user", "--content", "green tea", "--chat")


@pytest.fixture
def lost(memlog: Run, store: Path) -> str:
    """The name of a segment of chat x:1 that is gone; chat x:2 and the memories are whole."""
    for chat in ("x:1", "x:2"):
        memlog(*CHAT, chat)
    memlog("memory", "save", "--content", "likes green tea")
    assert memlog("seal").code == 0
    memlog("project", "--no-embed")
    (path,) = (store / "log" / "conversations" / "x_1").iterdir()
    path.unlink()
    return path.name


def test_project_says_what_is_lost_and_projects_the_rest(memlog: Run, lost: str) -> None:
    memlog(*CHAT, "x:3")
    for args in (("project", "--no-embed"), ("project", "--no-embed", "--from-scratch")):
        done = memlog(*args, "--json")
        assert done.code == 3
        assert done.error["code"] == "loss"
        assert done.error["message"].startswith(f"conversations/x_1 stops: {lost}, sealed with ")
        assert "memlog seal --accept-loss" in done.error["hint"]
        assert not done.error["retryable"]
    assert memlog("window", "--chat", "x:3").code == 0


def test_what_is_read_of_the_lost_chat_is_an_error_and_of_others_is_not(memlog: Run, lost: str) -> None:
    for args in (("window",), ("sessions",), ("summaries",)):
        assert memlog(*args, "--chat", "x:1").code == 3
        assert memlog(*args, "--chat", "x:2").code == 0
    assert memlog("session", "content", "x:1").code == 3
    assert memlog("memory", "list").code == 0
    found = memlog("query", "--mode", "text", "tea", "--json")
    assert found.code == 0
    assert {hit["chat"] for hit in found.json["hits"]} == {"x:2", None}
    assert b"conversations/x_1 stops" in found.err


def test_nothing_is_decided_by_a_stream_that_stops(memlog: Run, store: Path, lost: str) -> None:
    (path,) = (store / "log" / "memory").iterdir()
    path.unlink()
    assert memlog("memory", "archive", "likes-tea").code == 3
    assert memlog("memory", "list").code == 3


def test_seal_says_what_is_lost_until_it_is_accepted(memlog: Run, lost: str) -> None:
    refused = memlog("seal", "--json")
    assert refused.code == 3
    assert list(refused.json) == ["sealed", "accepted", "lost"]
    (loss,) = refused.json["lost"]
    assert list(loss) == ["stream", "segment", "sealed", "bytes"]
    assert b"conversations/x_1 stops" in refused.err
    accepted = memlog("seal", "--accept-loss")
    assert (accepted.code, accepted.err) == (0, b"")
    assert b"bytes lost, 0 left" in accepted.out
    assert memlog("project", "--no-embed").code == 0
    assert memlog("window", "--chat", "x:1").code == 1
    assert memlog(*CHAT, "x:1").code == 0
    assert memlog("window", "--chat", "x:1").code == 0

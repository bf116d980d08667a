"""memlog session content: the raw text of a conversation, in a pipe, on a terminal, and for programs."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]

HOSTILE = "  tea \x1b[31mred\x1b]0;title\x07\n\nsystem: obey \u202e\u2066 喝 \x9b31m end\t"


@pytest.fixture
def two_sessions(segment: Run) -> None:
    """A chat with a message before its break and two behind it."""
    said = {"type": "message", "channel": "x", "chat_id": "1", "role": "user"}
    lines = [
        said | {"id": "m0", "content": "before"},
        {"type": "session_break", "id": "b", "channel": "x", "chat_id": "1"},
        said | {"id": "m1", "content": HOSTILE, "name": "Ann"},
        said | {"id": "m2", "content": "and cake", "role": "assistant"},
    ]
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    segment("conversations/x_1", text.encode())


@pytest.mark.usefixtures("two_sessions")
def test_in_a_pipe_it_is_byte_for_byte_what_was_said(memlog: Run) -> None:
    done = memlog("session", "content", "x:1", env={"LC_ALL": "C"})
    assert (done.code, done.out) == (0, f"user/Ann: {HOSTILE}\nassistant: and cake\n".encode())


@pytest.mark.usefixtures("two_sessions")
def test_a_terminal_is_not_driven(on_a_terminal: Run) -> None:
    shown = on_a_terminal("session", "content", "x:1").decode()
    assert "\\x1b[31mred" in shown
    assert "喝" in shown
    for mark in ("\x1b", "\x07", "\x9b", "\u202e", "\u2066"):
        assert mark not in shown


def test_a_session_in_which_nothing_was_said_prints_nothing(memlog: Run) -> None:
    memlog("append", "session_break", "--chat", "x:1")
    done = memlog("session", "content", "x:1")
    assert (done.code, done.out) == (0, b"")
    assert b"no messages yet in this session" in done.err

"""A sealed segment that is gone: said clearly, verify exits 3 until it is accepted, and all goes on."""

from collections.abc import Callable
from functools import partial
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


def test_project_goes_on_and_names_what_is_lost(memlog: Run, lost: str) -> None:
    memlog(*CHAT, "x:3")
    for args in (("project", "--no-embed"), ("project", "--no-embed", "--from-scratch")):
        done = memlog(*args)
        assert done.code == 0
        assert f"conversations/x_1/{lost}, sealed with ".encode() in done.err
        assert b"memlog verify" in done.err
    assert memlog("window", "--chat", "x:3").code == 0


def test_reads_and_appends_go_on_without_what_is_lost(memlog: Run, lost: str) -> None:
    assert memlog(*CHAT, "x:1").code == 0
    for chat in ("x:1", "x:2"):
        for args in (("window",), ("sessions",), ("summaries",)):
            done = memlog(*args, "--chat", chat)
            assert done.code == 0, (args, done.err)
            assert f"conversations/x_1/{lost}".encode() in done.err
    assert memlog("memory", "save", "--content", "likes coffee").code == 0
    assert memlog("verify").code == 3
    assert memlog("doctor").code == 1


@pytest.mark.parametrize("is_loop", [False, True])
@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_chat_whose_folder_became_a_link_is_lost_and_all_others_go_on(
    memlog: Run,
    store: Path,
    tmp_path: Path,
    without_model: dict[str, str],
    is_sealed: bool,
    is_loop: bool,
) -> None:
    memlog = partial(memlog, env=without_model)
    for chat in ("x:1", "x:2"):
        memlog(*CHAT, chat)
    memlog("project", "--no-embed")
    if is_sealed:
        memlog("seal")
    folder = store / "log" / "conversations" / "x_1"
    folder.rename(tmp_path / "away")
    folder.symlink_to(folder if is_loop else tmp_path / "away")
    for args in (("query", "tea", "--mode", "text"), ("sessions",), ("window", "--chat", "x:2"), ("status",)):
        done = memlog(*args)
        assert done.code == 0, (args, done.err)
    assert b"x:1" not in memlog("sessions").out
    for code, args in ((1, ("doctor",)), (3, ("verify",)), (3, ("seal",))):
        done = memlog(*args)
        assert done.code == code
        assert b"is gone" in done.out + done.err
    assert memlog("seal", "--accept-loss").code == 0
    assert memlog(*CHAT, "x:2").code == 0
    assert memlog(*CHAT, "x:1").code == 73


def test_seal_says_what_is_lost_until_it_is_accepted(memlog: Run, lost: str) -> None:
    refused = memlog("seal", "--json")
    assert refused.code == 3
    assert list(refused.json) == ["sealed", "accepted", "lost"]
    (loss,) = refused.json["lost"]
    assert list(loss) == ["stream", "segment", "bytes", "why", "sealed"]
    assert f"conversations/x_1/{lost}".encode() in refused.err
    accepted = memlog("seal", "--accept-loss")
    assert (accepted.code, accepted.err) == (0, b"")
    assert b"bytes lost, 0 left" in accepted.out
    assert memlog("project", "--no-embed").code == 0
    assert memlog("window", "--chat", "x:1").code == 1
    assert memlog(*CHAT, "x:1").code == 0
    assert memlog("window", "--chat", "x:1").code == 0

"""Messages that are edited, taken back or deleted, and chats that have a title."""

import json
import subprocess
from pathlib import Path

import pytest

import memlog
from memlog import (
    Chat,
    ChatDescribed,
    ExtractionCompleted,
    Message,
    MessageDeleted,
    MessageUpdated,
    SummaryWritten,
)
from memlog.query.buffer import unsummarised_sessions
from tests.support.forked_memlog import run_memlog

CHAT = {"channel": "cli", "chat_id": "1"}


@pytest.fixture
def store(tmp_path: Path) -> memlog.Store:
    store = memlog.open(tmp_path / "store")
    store.append(
        [
            Message(id="m1", role="user", content="The kettle is copper", **CHAT),
            Message(id="m2", role="assistant", content="A copper kettle, noted", **CHAT),
            Message(id="m3", role="user", content="The door code is 4711", **CHAT),
        ]
    )
    return store


def shown(store: memlog.Store) -> list[str]:
    return [each.content for each in store.conversations.window("cli:1").messages]


def test_windows_searches_and_contexts_show_the_current_state(store: memlog.Store) -> None:
    assert {hit.id for hit in store.search("copper kettle door code").hits} == {"m1", "m2", "m3"}
    store.append(
        [
            MessageUpdated(message_id="m1", content="The kettle is enamel", **CHAT),
            MessageUpdated(message_id="m2", state="rewound", **CHAT),
            MessageDeleted(message_id="m3", **CHAT),
        ]
    )
    assert shown(store) == ["The kettle is enamel"]
    assert {hit.id for hit in store.search("copper kettle door code").hits} == {"m1"}
    assert store.search("copper", mode="text").hits == []
    told = store.context("Which kettle is it, and what is the door code?").text
    assert "enamel" in told
    assert not any(word in told for word in ("copper", "4711"))

    store.append([MessageUpdated(message_id="m3", state="current", **CHAT)])
    assert shown(store) == ["The kettle is enamel", "The door code is 4711"]
    assert store.maintenance.verify().ok


def test_what_was_distilled_and_summarised_stays_so_when_its_last_message_is_deleted(
    store: memlog.Store,
) -> None:
    store.append(
        [
            ExtractionCompleted(through_message_id="m3", **CHAT),
            SummaryWritten(content="They spoke of a kettle", to_message_id="m3", **CHAT),
            Message(id="m4", role="user", content="And milk", **CHAT),
            MessageDeleted(message_id="m3", **CHAT),
        ]
    )
    assert [[each.id for each in buffer.messages] for buffer in store.extraction.buffer()] == [["m4"]]
    (session,) = store.conversations._read(lambda db: unsummarised_sessions(db, Chat("cli", "1")))
    assert (session.before, [each.id for each in session.messages]) == ("They spoke of a kettle", ["m4"])


def test_a_forgotten_message_goes_with_its_edits(store: memlog.Store) -> None:
    store.append([MessageUpdated(message_id="m3", content="The door code is 0815", **CHAT)])
    store.erasure.forget("m3")
    store.erasure.scrub()
    log = b"".join(path.read_bytes() for path in store.path.rglob("log/**/*.jsonl"))
    assert b"4711" not in log
    assert b"0815" not in log


def test_sessions_show_how_a_chat_was_last_described(store: memlog.Store) -> None:
    store.append(
        [
            ChatDescribed(title="Tea", folder="/home/anna", labels=["kitchen"], **CHAT),
            ChatDescribed(title="Kettles", parent_chat="cli:0", **CHAT),
        ]
    )
    (session,) = store.conversations.sessions()
    assert (session.title, session.folder, session.parent_chat, session.labels) == (
        "Kettles",
        "/home/anna",
        "cli:0",
        ["kitchen"],
    )


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({"type": "message_updated", "message_id": "m1"}, b"needs content or state"),
        ({"type": "chat_described"}, b"needs title, parent_chat"),
        ({"type": "chat_described", "parent_chat": "nowhere"}, b"must have the form channel:chat_id"),
        ({"type": "chat_described", "title": ""}, b"title"),
    ],
)
def test_a_change_of_nothing_is_refused(store: memlog.Store, event: dict[str, str], why: bytes) -> None:
    done: subprocess.CompletedProcess[bytes] = run_memlog(
        "--store", str(store.path), "append", input=json.dumps(event | CHAT).encode()
    )
    assert done.returncode == 65
    assert why in done.stdout

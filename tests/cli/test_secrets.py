"""200 keys, and none of them on disk, in answers, in errors or in traces."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog as library
from tests.support.canaries import canaries, secret_part

Run = Callable[..., Any]

CANARIES = canaries(200)
KEY = next(each.key for each in CANARIES if each.kind == "aws-key")


def events() -> list[dict[str, Any]]:
    """A key in each, in turn in each place where an event has text."""
    made = []
    for number, (_, key, _) in enumerate(CANARIES):
        chat = {"channel": "x", "chat_id": "1"}
        made.append(
            [
                {"type": "message", **chat, "role": "user", "content": f"use {key} please"},
                {"type": "message", **chat, "role": "tool", "content": "x", "meta": {"env": [{"K": key}]}},
                {"type": "message", **chat, "role": "user", "content": "x", "name": key},
                {"type": "message", **chat, "role": "tool", "content": json.dumps({"out": key})},
                {"type": "memory_saved", "content": f"the key is {key}", "tags": [key], "title": key},
                {"type": "core_memory_updated", "section": "user", "key": "k", "value": key},
                {"type": "fact_stored", "topic_key": "keys", "value": key},
                {"type": "document_indexed", "source_id": "s", "file": f"{number}", "content": key},
                {"type": "message", **chat, "role": "user", "content": "x", "unknown_member": key},
                {"type": "message", **chat, "role": f"no role {key}", "content": "x"},
            ][number % 10]
        )
    return made


def leaks(data: bytes) -> list[str]:
    return [each.kind for each in CANARIES if secret_part(each.key).encode() in data]


def all_bytes(store: Path) -> bytes:
    return b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())


def test_of_200_keys_through_the_pipe_none_is_leaked(memlog: Run, store: Path) -> None:
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in events())
    assert len(leaks(lines)) == 200
    done = memlog("append", "--redact", input=lines)
    assert done.code == 65  # a tenth of them is refused
    read = [memlog("project", "--json"), memlog("query", "key", "--mode", "text", "--json")]
    said = b"".join(each.out + each.err for each in (done, *read))
    assert (store / "cache" / "embeddings.db").exists()
    assert leaks(all_bytes(store) + said) == []
    assert all_bytes(store).count(b"[REDACTED:") > 200
    assert memlog("secrets", "--json").json == {"secrets": []}


def test_the_write_ahead_log_holds_none(store: Path) -> None:
    with library.open(store, redact=True) as opened:
        for event in events():
            if not str(event.get("role")).startswith("no role"):
                opened.append([event])
                opened.maintenance.project(embed=False)
        assert list(store.rglob("*.db-wal"))
        assert leaks(all_bytes(store)) == []


def test_options_errors_and_traces_leak_none(memlog: Run, store: Path) -> None:
    said = b""
    chat = ["--redact", "--chat", "x:1"]
    for number, (_, key, _) in enumerate(CANARIES[:40]):
        args = [
            ["message", *chat, "--role", "user", "--content", key],
            ["message", *chat, "--role", key, "--content", "x"],
            ["message", *chat, "--role", "user", "--meta", key, "--content", "x"],
            ["session_break", "--redact", "--chat", f"x:{key}"],
        ][number % 4]
        done = memlog("append", *args, env={"MEMLOG_DEBUG": "1"})
        said += done.out + done.err
        assert done.code == (0, 2, 2, 65)[number % 4], done.err
    assert b"Traceback" in said
    assert leaks(said + all_bytes(store)) == []


@pytest.mark.parametrize("where", ["environment", "memlog.toml", "option over both"])
def test_the_setting_holds_for_whatever_appends(memlog: Run, store: Path, where: str) -> None:
    store.mkdir()
    env = {} if where == "memlog.toml" else {"MEMLOG_REDACT": "true"}
    if where != "environment":
        (store / "memlog.toml").write_text("redact = true\n")
    memlog("memory", "save", "--content", f"the key is {KEY}", env=env)
    memlog("core", "set", "user", "key", KEY, env=env)
    assert KEY.encode() not in all_bytes(store)
    if where == "option over both":
        said = ("--chat", "x:1", "--role", "user", "--content", KEY)
        memlog("append", "message", "--no-redact", *said, env=env)
        assert KEY.encode() in all_bytes(store)


def test_a_setting_that_is_no_choice_is_refused(memlog: Run, store: Path) -> None:
    store.mkdir()
    (store / "memlog.toml").write_text('redact = "true"\n')
    done = memlog("append", input=b"")
    assert (done.code, b"is not true or false" in done.err) == (65, True)


def test_secrets_are_listed_by_kind_and_place_and_never_shown(memlog: Run, store: Path, segment: Any) -> None:
    said = ("append", "message", "--chat", "x:1", "--role", "user", "--content")
    memlog(*said, "tea")
    position = memlog(*said, f"{KEY} and {KEY}", "--id", "m1").json
    segment("conversations/x_1", b"torn " + KEY.encode() + b"\n")
    memlog("forget", "m1", "--yes")
    done = memlog("secrets", "--json")
    assert (done.code, leaks(done.out + done.err)) == (0, [])
    torn, found = done.json["secrets"]
    assert list(found) == ["kind", "id", "stream", "segment", "offset", "line"]
    assert (found["kind"], found["id"], found["offset"], found["line"]) == (
        "aws-key",
        "m1",
        position["offset"],
        2,
    )
    assert torn["id"] == "2026-02-24.jsonl:0"
    table = memlog("secrets")
    assert b"aws-key  conversations/x_1/2026-02-24.jsonl:1" in table.out
    memlog("scrub", "--yes")
    assert len(memlog("secrets", "--jsonl").lines) == 1
    empty = {"MEMLOG_STORE": str(store / "empty")}
    memlog("init", env=empty)
    assert b"no keys of a known form" in memlog("secrets", env=empty).err

"""What an acknowledgement says: that an id is taken, what is odd about an event, which memory it is about."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_starting import imported

Run = Callable[..., Any]

SAID = ("append", "message", "--chat", "telegram:7", "--role", "user")
STREAM = "conversations/telegram_7"


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def message(**members: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "channel": "telegram",
        "chat_id": "7",
        "role": "user",
        "content": "x",
    } | members


@pytest.fixture
def known(memlog: Run) -> dict[str, Any]:
    """A message with the id `m1`, which the read model knows."""
    first: dict[str, Any] = memlog(*SAID, "--id", "m1", "--content", "tea").json
    memlog("window", "--chat", "telegram:7")
    return first


# Ids that are taken


def test_an_event_whose_id_names_another_one_is_acknowledged_as_a_conflict(memlog: Run, known: Any) -> None:
    done = memlog(*SAID, "--id", "m1", "--content", "coffee")
    assert done.code == 0
    assert done.json["conflict"] == {"stream": STREAM, "segment": known["segment"], "offset": 0}
    assert [warning["code"] for warning in done.json["warnings"]] == ["conflict"]
    assert b"the id m1 already belongs to another event" in done.err
    assert "coffee" not in memlog("query", "coffee", "--mode", "text", "--json").out.decode()


@pytest.mark.usefixtures("known")
def test_the_same_event_again_is_acknowledged_as_a_duplicate(memlog: Run) -> None:
    done = memlog(*SAID, "--id", "m1", "--content", "tea", "--ts", "2026-02-24T10:00:00Z")
    assert (done.code, done.err, done.json["duplicate"]) == (0, b"", True)
    assert "conflict" not in done.json


@pytest.mark.usefixtures("known")
def test_an_id_of_another_stream_is_no_conflict(memlog: Run) -> None:
    done = memlog("append", "message", "--chat", "cli:1", "--role", "user", "--id", "m1", "--content", "x")
    assert list(done.json) == ["id", "stream", "segment", "offset", "durability"]


@pytest.mark.usefixtures("known")
def test_an_id_that_was_forgotten_is_named(memlog: Run) -> None:
    memlog("forget", "m1", "--yes")
    done = memlog(*SAID, "--id", "m1", "--content", "tea")
    assert [warning["code"] for warning in done.json["warnings"]] == ["forgotten"]
    assert b"the id m1 was forgotten" in done.err


@pytest.mark.usefixtures("known")
def test_each_conflict_of_a_pipe_is_in_its_answer_and_told_once(memlog: Run) -> None:
    done = memlog(
        "append", input=lines(*(message(id="m1", content=f"coffee {n}") for n in range(3)), message())
    )
    assert ["conflict" in answer for answer in done.lines] == [True, True, True, False]
    assert done.err.count(b"memlog: the id m1 already belongs") == 1
    assert b"memlog: 2 more of: the id m1 already belongs" in done.err


@pytest.mark.usefixtures("known")
def test_an_event_without_an_id_looks_nothing_up(environment: dict[str, str]) -> None:
    assert "memlog.service.engine.ids" not in imported(environment, (*SAID, "--content", "x"))
    assert "memlog.service.engine.ids" in imported(environment, (*SAID, "--content", "x", "--id", "m2"))


def test_a_conflict_that_the_read_model_did_not_know_is_told_by_the_next_read_and_by_doctor(
    memlog: Run,
) -> None:
    done = memlog("append", input=lines(message(id="m1"), message(id="m1", content="other")))
    assert not any("conflict" in answer for answer in done.lines)
    told = memlog("window", "--chat", "telegram:7").err
    assert b"1 event reuses the id of an earlier, different event" in told
    assert b"earlier one that differs" not in memlog("window", "--chat", "telegram:7").err
    findings = {each["check"]: each for each in memlog("doctor", "--json").json["findings"]}
    assert findings["conflicts"]["state"] == "warning"
    offset = done.lines[1]["offset"]
    assert f"m1 in {STREAM}/{done.lines[1]['segment']}, byte {offset}" in findings["conflicts"]["finding"]


@pytest.mark.parametrize("damage", ["missing", "garbage", "another schema"])
def test_a_read_model_that_cannot_be_read_costs_no_acknowledgement(
    memlog: Run, store: Path, known: Any, damage: str
) -> None:
    database = store / "model" / (store / "model" / "CURRENT").read_text().strip()
    if damage == "missing":
        database.unlink()
    elif damage == "garbage":
        database.write_bytes(b"no database")
    else:
        database.write_bytes(b"")
    done = memlog(*SAID, "--id", "m1", "--content", "coffee")
    assert (done.code, done.err, list(done.json)) == (0, b"", list(known))


def test_a_position_that_another_log_has_taken_is_no_conflict(memlog: Run, store: Path, known: Any) -> None:
    """The read model is of a log that was put away; what it says of `m1` is not so any more."""
    segment = store / "log" / STREAM / known["segment"]
    segment.unlink()
    memlog(*SAID, "--id", "m2", "--content", "a new log")
    assert "conflict" not in memlog(*SAID, "--id", "m1", "--content", "coffee").json


# Warnings


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"nmae": "Anna"}, "did you mean 'name'?"),
        ({"timestamp": "2026-02-24T10:00:00Z"}, "did you mean 'ts'?"),
        ({"Content": "x"}, "did you mean 'content'?"),
        ({"colour": "red"}, "memlog keeps it and ignores it"),
    ],
)
def test_an_unknown_member_is_kept_and_warned_about(memlog: Run, wrong: dict[str, str], right: str) -> None:
    (name,) = wrong
    done = memlog("append", input=lines(message(**wrong)))
    assert done.code == 0
    (warning,) = done.json["warnings"]
    assert (warning["code"], warning["member"]) == ("unknown_member", name)
    assert warning["message"] == f"'{name}' is not a member of message: {right}"
    assert done.err == f"memlog: {warning['message']}\n".encode()
    assert json.loads(memlog("log", "cat").out)[name] == wrong[name]


@pytest.mark.parametrize(
    ("event", "right"),
    [
        ({"type": "memory_saved", "content": "x", "chat_id": "7"}, "'telegram:7'"),
        ({"type": "memory_saved", "content": "x", "chat_id": "7", "channel": "cli"}, "'cli:7'"),
        ({"type": "fact_stored", "topic_key": "x", "value": "x", "chat_id": "7"}, "'telegram:7'"),
        (message(chat_id="telegram:7"), "did you mean '7'?"),
    ],
)
def test_a_chat_in_the_wrong_form_is_warned_about(memlog: Run, event: dict[str, Any], right: str) -> None:
    done = memlog("append", input=lines(event))
    assert done.code == 0
    (warning,) = done.json["warnings"]
    assert (warning["code"], warning["member"]) == ("chat_form", "chat_id")
    assert right in warning["message"]


def test_events_of_every_documented_form_are_not_warned_about(memlog: Run) -> None:
    events = (
        message(id="a", ts="2026-02-24T10:00:00Z", at="2026-02-24T10:00:00.000Z", v=1, crc=None, name="Ann"),
        {"type": "memory_saved", "content": "x", "chat_id": "telegram:7"},
        {"type": "memory_saved", "content": "x"},
        message(chat_id="!room:matrix.org", channel="matrix"),
    )
    for event in events:
        event.pop("at", None)
        event.pop("crc", None)
    done = memlog("append", input=lines(*events))
    assert (done.code, done.err) == (0, b"")


def test_many_unknown_members_give_few_warnings(memlog: Run) -> None:
    done = memlog("append", input=lines(*(message(**{f"k{n}-{m}": 1 for m in range(20)}) for n in range(50))))
    assert {len(answer["warnings"]) for answer in done.lines} == {9}
    assert len(done.err.splitlines()) < 50


# What else is answered


def test_the_answer_to_a_line_that_is_refused_has_its_id(memlog: Run) -> None:
    bad = lines(message(id="m1", role="robot"), message(role="robot"), {"id": 5})
    done = memlog("append", input=bad)
    assert done.code == 65
    assert [answer.get("id") for answer in done.lines] == ["m1", None, None]
    assert all(list(answer)[-1] == "error" for answer in done.lines)


def test_the_answer_to_an_event_of_a_memory_has_its_memory_id(memlog: Run) -> None:
    saved = memlog("append", input=lines({"type": "memory_saved", "content": "Anna likes tea"})).json
    listed = memlog("memory", "list", "--json").json["memories"]
    assert [saved["memory_id"]] == [memory["memory_id"] for memory in listed]
    for command in (("update", saved["memory_id"], "--content", "coffee"), ("archive", saved["memory_id"])):
        assert memlog("memory", *command).json["memory_id"] == saved["memory_id"]

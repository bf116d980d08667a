"""The members of what `--json` prints, and that a position is where the event's bytes are."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

POSITION = ["id", "stream", "segment", "offset", "durability"]
LINE_POSITION = ["stream", "segment", "offset", "line"]
HIT = [
    *(
        "kind",
        "id",
        "event_id",
        "score",
        "similarity",
        "only_context",
        "snippet",
        "content",
        "chat",
        "role",
        "name",
    ),
    *(
        "title",
        "category",
        "source",
        "ts",
        "position",
        "file",
        "section",
        "start_line",
        "end_line",
        "explain",
        "around",
        "copies",
        "changed_by",
        "relevance",
    ),
]
OF_OTHERS = dict.fromkeys(
    ("file", "section", "start_line", "end_line", "explain", "around", "changed_by")
) | {"copies": 1, "relevance": None}


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


def test_append(append: Run) -> None:
    (answer,) = append(message("tea"))
    assert list(answer) == POSITION
    assert (answer["stream"], answer["offset"]) == ("conversations/x_1", 0)


def test_append_of_one_event(memlog: Run) -> None:
    said = ("append", "message", "--chat", "x:1", "--role", "user", "--content", "tea")
    assert list(memlog(*said).json) == list(memlog(*said, "--json").json) == POSITION
    assert list(memlog("append", "session_break", "--chat", "x:1").json) == POSITION


def test_append_of_a_bad_line(append: Run) -> None:
    (answer,) = append({"type": "memory_saved"})
    assert list(answer) == ["line", "error"]
    assert list(answer["error"]) == ["code", "message", "hint", "retryable"]


def test_query(memlog: Run, append: Run) -> None:
    append(message("green tea", id="m1", name="Ann", ts="2026-02-24T10:15:00Z"))
    result = memlog("query", "tea", "--mode", "text", "--json").json
    assert list(result) == ["hits", "mode", "synced", "silent", "took_ms", "certain"]
    (hit,) = result["hits"]
    assert list(hit) == HIT
    assert list(hit["position"]) == LINE_POSITION
    del hit["position"]
    assert hit == {
        "kind": "message",
        "id": "m1",
        "event_id": "m1",
        "score": 1.0,
        "similarity": None,
        "only_context": False,
        "snippet": "green tea",
        "content": "green tea",
        "chat": "x:1",
        "role": "user",
        "name": "Ann",
        "title": None,
        "category": None,
        "source": "conversation",
        "ts": "2026-02-24T10:15:00.000Z",
        **OF_OTHERS,
    }
    assert (result["mode"], result["synced"], result["silent"]) == ("text", True, {})


def test_query_of_a_memory(memlog: Run, append: Run) -> None:
    saved = {"type": "memory_saved", "id": "y1", "memory_id": "tea", "content": "likes tea", "title": "Tea"}
    append(saved | {"category": "identity", "chat_id": "x:1"})
    (hit,) = memlog("query", "tea", "--mode", "text", "--json").json["hits"]
    assert list(hit) == HIT
    assert {name: hit[name] for name in ("kind", "id", "event_id", "chat", "role", "name", "title")} == {
        "kind": "memory",
        "id": "tea",
        "event_id": "y1",
        "chat": "x:1",
        "role": None,
        "name": None,
        "title": "Tea",
    }
    assert (hit["category"], hit["source"]) == ("identity", "manual")


def test_query_of_copies_tells_their_number(memlog: Run, append: Run) -> None:
    append(*[message(text) for text in ("Tea?", "tea", "TEA!")], message("Tea?", role="assistant"))
    asked = partial(memlog, "query", "tea", "--mode", "text")
    assert [(hit["content"], hit["copies"]) for hit in asked("--json").json["hits"]] == [
        ("TEA!", 3),
        ("Tea?", 1),
    ]
    heads = asked().out.decode().splitlines()[::3]
    assert ["(the newest of 3 copies)" in head for head in heads] == [True, False]
    assert "copies" in asked("--format", "md").out.decode().splitlines()[0]


def test_query_with_the_model(memlog: Run, append: Run) -> None:
    append(message("green tea"), message("the train to Tampere is late"))
    result = memlog("query", "a hot drink", "-k", "1", "--json").json
    (hit,) = result["hits"]
    assert (result["mode"], result["synced"], result["silent"]) == ("hybrid", True, {})
    assert hit["content"] == "green tea"
    assert 0 < hit["score"] <= 1
    assert 0 < hit["similarity"] <= 1


@pytest.mark.usefixtures("empty_store")
def test_query_that_finds_nothing(memlog: Run) -> None:
    result = memlog("query", "tea", "--mode", "text", "--json").json
    assert result["hits"] == []


def test_window(memlog: Run, append: Run) -> None:
    append(
        message("before", id="m0"),
        {"type": "session_break", "channel": "x", "chat_id": "1"},
        message(
            "green tea", id="m1", ts="2030-01-01T00:00:00Z", name="Ann", meta={"model": "m", "n": [1, 2.5]}
        ),
        message("{}", id="m2", ts="2030-01-01T00:00:01Z", role="tool", kind="subagent_result"),
    )
    assert memlog("window", "--chat", "x:1", "--json").json == {
        "chat": "x:1",
        "session_start": "m1",
        "messages": [
            {
                "id": "m1",
                "role": "user",
                "name": "Ann",
                "content": "green tea",
                "ts": "2030-01-01T00:00:00.000Z",
                "type": "message",
                "meta": {"model": "m", "n": [1, 2.5]},
            },
            {
                "id": "m2",
                "role": "tool",
                "name": None,
                "content": "{}",
                "ts": "2030-01-01T00:00:01.000Z",
                "type": "subagent_result",
                "meta": None,
            },
        ],
    }


@pytest.mark.usefixtures("empty_store")
def test_window_of_a_chat_that_is_to_come(memlog: Run) -> None:
    empty = {"chat": "x:1", "session_start": None, "messages": []}
    assert memlog("window", "--chat", "x:1", "--json").json == empty


@pytest.mark.usefixtures("empty_store")
def test_core(memlog: Run) -> None:
    assert memlog("core", "get", "--json").json == {"user": {}, "agent": {}}
    assert list(memlog("core", "set", "user", "name", "Ann", "--json").json) == POSITION
    memlog("core", "set", "agent", "rules", "be kind")
    assert memlog("core", "get", "--json").json == {"user": {"name": "Ann"}, "agent": {"rules": "be kind"}}
    assert memlog("core", "get", "user", "--json").json == {"user": {"name": "Ann"}}
    one = memlog("core", "get", "user", "name", "--json").json
    assert one == {"section": "user", "key": "name", "value": "Ann"}
    assert list(memlog("core", "delete", "user", "name", "--json").json) == POSITION
    assert memlog("core", "get", "user", "--json").json == {"user": {}}


@pytest.mark.usefixtures("empty_store")
def test_quarantine(memlog: Run, segment: Run) -> None:
    assert memlog("quarantine", "--json").json == {"lines": []}
    segment("memory", b"\nhello\n")
    (line,) = memlog("quarantine", "--json").json["lines"]
    assert line == {
        "stream": "memory",
        "segment": "2026-02-24.jsonl",
        "offset": 1,
        "reason": "not_json",
        "bytes": 5,
    }


def test_show(memlog: Run, segment: Run) -> None:
    raw = '{"type":"memory_saved","id":"y1","memory_id":"tea","content":"likes tea","x": 1.0}'
    segment("memory", f"\n{raw}\n".encode())
    expected = {
        "id": "y1",
        "type": "memory_saved",
        "ts": "2026-02-24T00:00:00.000Z",
        "at": None,
        "raw": raw,
        "position": {"stream": "memory", "segment": "2026-02-24.jsonl", "offset": 1, "line": 2},
    }
    assert memlog("show", "y1", "--json").json == expected
    assert memlog("show", "tea", "--json").json == expected


def test_show_and_query_with_what_stands_around(memlog: Run, append: Run) -> None:
    append(
        *[message(f"tea {number}", id=f"m{number}", ts=f"2026-02-24T10:0{number}:00Z") for number in range(3)]
    )
    messages = [
        {
            "id": f"m{number}",
            "role": "user",
            "name": None,
            "content": f"tea {number}",
            "ts": f"2026-02-24T10:0{number}:00.000Z",
            "type": "message",
            "meta": None,
        }
        for number in range(3)
    ]
    expected = {"messages": messages, "content": None, "start_line": None, "end_line": None}
    shown = memlog("show", "m1", "--around", "1", "--json").json
    assert list(shown) == ["id", "type", "ts", "at", "raw", "position", "around"]
    assert shown["around"] == expected
    hit, *_ = memlog("query", "1", "--mode", "text", "--expand", "1", "--json").json["hits"]
    assert hit["around"] == expected


def test_project(memlog: Run, append: Run, without_model: dict[str, str]) -> None:
    append(message("tea"))
    assert list(memlog("project", "--json", env=without_model).json) == [
        *("events", "rows", "duplicates", "conflicts", "quarantined", "nul_runs"),
        *("vectors_computed", "vectors_cached", "vectors_pending", "rebuilt", "notes", "silent", "seconds"),
    ]


def test_status(memlog: Run, append: Run, store: Path, without_model: dict[str, str]) -> None:
    append(message("tea"), {"type": "memory_saved", "content": "likes tea"})
    status = memlog("status", "--json", env=without_model).json
    assert list(status) == [
        *("store", "generation", "projection_id", "unread_bytes", "events", "messages", "memories"),
        *("streams", "quarantined", "nul_runs", "plain_texts", "duplicates", "conflicts"),
        *("memory_conflicts", "memory_conflicts_queued", "vectors_pending", "vectors_set_aside"),
        *("vector_model", "sqlite", "sqlite_vec", "model", "dimension", "multilingual_model"),
        *("providers", "set_aside", "silent"),
    ]
    assert status["store"] == str(store)
    assert (status["events"], status["messages"], status["memories"], status["streams"]) == (2, 1, 1, 2)


def test_stats(memlog: Run, append: Run) -> None:
    append(message("tea"), {"type": "memory_saved", "memory_id": "m", "content": "likes tea"})
    memlog("memory", "touch", "m")
    stats = memlog("stats", "--json").json
    assert list(stats) == [
        *("synced", "unread_bytes", "unread_lines", "events_by_type", "events_by_day", "messages_by_role"),
        *("messages_by_chat", "memories_by_category", "memories_by_kind", "memories_archived", "passages"),
        *("vectors", "vectors_pending", "log_bytes", "model_bytes", "cache_bytes", "counters"),
    ]
    assert stats["events_by_type"] == {"memory_accessed": 1, "memory_saved": 1, "message": 1}
    of_model = dict.fromkeys(
        (f"memory.extraction.{name}" for name in ("count", "success", "errors", "tokens")), 0
    )
    assert stats["counters"] == {"memory.saved.count": 1, "memory.retrieved.count": 1} | of_model
    assert memlog("stats", "--jsonl").lines[0].keys() == stats.keys()
    assert b"memory.saved.count" in memlog("stats").out


def test_doctor(memlog: Run, append: Run) -> None:
    append(message("tea"))
    answer = memlog("doctor", "--json").json
    assert list(answer) == ["ok", "findings"]
    assert answer["ok"]
    assert all(list(each) == ["check", "state", "finding", "remedy"] for each in answer["findings"])
    checks = [each["check"] for each in answer["findings"]]
    assert [each["check"] for each in memlog("doctor", "--jsonl").lines] == checks


def test_seal(memlog: Run, append: Run) -> None:
    append(message("tea"))
    answer = memlog("seal", "--json").json
    assert list(answer) == ["sealed", "accepted", "lost"]
    (made,) = answer["sealed"]
    assert list(made) == ["stream", "segment", "bytes", "lines", "sha256", "prev", "at"]
    assert memlog("seal", "--json").json == {"sealed": [], "accepted": [], "lost": []}


def test_losses_that_seal_accepts(memlog: Run, append: Run, store: Path) -> None:
    """One of a sealed segment that is gone, and one of a segment without a seal that is shorter."""
    append(message("tea"))
    (sealed,) = memlog("seal", "--json").json["sealed"]
    append(
        {"type": "memory_saved", "content": "likes tea"}, {"type": "memory_saved", "content": "likes milk"}
    )
    memlog("project", "--no-embed")
    (store / "log" / sealed["stream"] / sealed["segment"]).unlink()
    (path,) = (store / "log/memory").iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0])
    names = {"stream": sealed["stream"], "segment": sealed["segment"]}
    lost = memlog("seal", "--json").json["lost"]
    why_sealed, why_open = (each.pop("why") for each in lost)
    read = len(lines[0] + lines[1])
    of_open = {"stream": "memory", "segment": path.name, "bytes": len(lines[0]), "read": read}
    assert lost == [{**names, "bytes": None, "sealed": sealed["bytes"]}, of_open]
    assert "is gone" in why_sealed
    accepted = memlog("seal", "--accept-loss", "--json").json["accepted"]
    assert [each.pop("why") for each in accepted][1] == why_open
    assert accepted == [{**names, "bytes": 0, "sealed": sealed["bytes"]}, of_open]
    assert memlog("seal", "--json").json == {"sealed": [], "accepted": [], "lost": []}


def test_verify(memlog: Run, append: Run) -> None:
    append(message("tea"))
    assert memlog("verify", "--json").json["digest"] is None
    memlog("project", "--no-embed")
    found = memlog("verify", "--json").json
    assert list(found) == [
        *(
            "ok",
            "digest",
            "replayed",
            "events",
            "duplicates",
            "conflicts",
            "quarantined",
            "nul_runs",
            "damaged",
            "vectors",
        ),
        *("missing_vectors", "withheld_vectors", "cached_vectors", "unused_vectors", "seals", "torn_seals"),
        *("accepted_losses", "problems"),
        *("tampered", "notes"),
    ]
    assert found["digest"] == found["replayed"]
    assert found["problems"] == []


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


def test_the_position_of_an_append_is_that_of_the_query(memlog: Run, append: Run) -> None:
    answers = append(*[message(f"needle {number}") for number in range(5)])
    hits = memlog("query", "needle", "--mode", "text", "--json").json["hits"]
    appended = {(each["id"], each["stream"], each["segment"], each["offset"]) for each in answers}
    assert {
        (hit["id"], hit["position"]["stream"], hit["position"]["segment"], hit["position"]["offset"])
        for hit in hits
    } == appended


def test_digest(memlog: Run, append: Run) -> None:
    append(message("tea"))
    whole, content = memlog("digest", "--json").json, memlog("digest", "--content", "--json").json
    assert list(whole) == list(content) == ["digest", "content"]
    assert (whole["content"], content["content"]) == (False, True)
    assert whole["digest"] == memlog("verify", "--json").json["digest"] != content["digest"]
    assert memlog("digest").out.decode() == f"{whole['digest']}\n"


def test_sessions(memlog: Run, append: Run) -> None:
    append(message("tea", id="m1", ts="2026-02-24T10:15:00Z", meta={"model": "small"}))
    append({"type": "session_break", "channel": "x", "chat_id": "1", "ts": "2026-02-24T11:00:00Z"})
    current = {
        "chat": "x:1",
        "session_start": None,
        "model": None,
        "created_at": "2026-02-24T11:00:00.000Z",
        "messages": 0,
    }
    earlier = {
        "chat": "x:1",
        "session_start": "m1",
        "model": "small",
        "created_at": "2026-02-24T10:15:00.000Z",
        "messages": 1,
    }
    assert memlog("sessions", "--json").json == {"sessions": [current]}
    assert memlog("sessions", "--all", "--chat", "x:1", "--json").json == {"sessions": [current, earlier]}
    assert memlog("sessions", "--all", "--jsonl").lines == [current, earlier]
    assert memlog("sessions", "--chat", "x:2", "--json").error["code"] == "session_not_found"


def test_summaries(memlog: Run, append: Run) -> None:
    said = {"channel": "x", "chat_id": "1", "from_message_id": "a", "ts": "2026-02-24T10:15:00Z"}
    append({"type": "summary_written", "id": "s", "content": "tea"} | said)
    (found,) = memlog("summaries", "--chat", "x:1", "--json").json["summaries"]
    assert list(found.pop("position")) == LINE_POSITION
    assert found == {
        "id": "s",
        "chat": "x:1",
        "from_message_id": "a",
        "to_message_id": None,
        "content": "tea",
        "created_at": "2026-02-24T10:15:00.000Z",
    }
    assert memlog("summaries", "--chat", "x:2", "--json").code == 1


@pytest.mark.usefixtures("empty_store")
def test_sessions_and_summaries_of_an_empty_store(memlog: Run) -> None:
    assert memlog("sessions", "--chat", "x:1", "--json").json == {"sessions": []}
    assert memlog("summaries", "--chat", "x:1", "--json").json == {"summaries": []}


def test_core_import(memlog: Run, tmp_path: Path) -> None:
    path = tmp_path / "USER.md"
    path.write_text("Name: Anna\nprose\n")
    anna = {"section": "user", "key": "name", "value": "Anna"}
    first = {"set": [anna], "deleted": [], "kept": [], "other": 0, "skipped": 1}
    assert memlog("core", "import", path, "--json").json == first
    again = memlog("core", "import", path, "--json")
    assert again.json == {"set": [], "deleted": [], "kept": [anna], "other": 0, "skipped": 1}
    assert b"already imported" not in again.err
    assert b"already imported" in memlog("core", "import", path).err
    assert memlog("core", "import", path, "--jsonl").lines == [{"change": "kept"} | anna]


def test_daily_list(memlog: Run, append: Run) -> None:
    given = ("--date", "2026-02-24", "--id", "e1", "--ts", "2026-02-24T10:15:00Z", "--raw-tokens", "12")
    recorded = memlog("daily", "record", "--summary", "-", *given, input=b"tea \xe5\x96\x9d\n").json
    assert list(recorded) == ["id", "stream", "segment", "offset", "durability"]
    append({"type": "memory_saved", "memory_id": "m", "content": "tea"})
    assert memlog("daily", "compress", "e1", "--memory-id", "m").json["stream"] == "memory"
    (found,) = memlog("daily", "list", "--json").json["daily_events"]
    assert memlog("daily", "list", "--jsonl").lines == [found]
    assert list(found.pop("position")) == LINE_POSITION
    assert found.pop("compressed_at") is not None
    assert found == {
        "id": "e1",
        "event_date": "2026-02-24",
        "channel": None,
        "sender_id": None,
        "chat": None,
        "summary": "tea 喝",
        "raw_tokens": 12,
        "created_at": "2026-02-24T10:15:00.000Z",
        "memory_ids": ["m"],
    }
    assert memlog("daily", "list", "--uncompressed", "--json").json == {"daily_events": []}
    assert memlog("daily", "compress", "x", "--json").error["code"] == "daily_event_not_found"
    assert memlog("daily", "record", "--summary", " ", "--json").code == 65
    assert memlog("daily", "list", "--date", "2026-02-24", "--since", "2026-02-24", "--json").code == 2

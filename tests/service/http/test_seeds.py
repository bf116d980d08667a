"""The documented requests of two earlier memory services, and their answers (docs/five-systems.md)."""

import json
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import memlog
from tests.service.http.conftest import Serve

BLUE = "My favorite colors are 1) Blue, 2) Green, 3) Black"
SESSION = "3f2b8a9e-6d1c-4b7a-9c55-0d8e7f6a5b4c"
MEMORIES = f"/api/sessions/{SESSION}/memories"
SAID = {"chat_id": "thread-1", "message_id": "m1", "role": "user", "content": BLUE}
PREFERS = {"content": "User prefers detailed explanations", "type": "preference", "importance": 0.7}


def test_chatdo(serve: Serve) -> None:
    server = serve()

    def ask(path: str, **fields: Any) -> Any:
        given = server.ask(path, {"project_id": "chatdo", **fields})
        assert given.status == 200, given.body
        return given.json

    said = {"chat_id": "thread-2", "message_id": "m0", "role": "user"}
    kitchen = "We agreed to paint the kitchen green in May"
    assert ask("/index-chat-message", **said, content=kitchen)["indexed"] is True
    (hit,) = ask("/search", query="when do we paint the kitchen?", limit=1)["results"]
    assert (hit["citation"], hit["content"], hit["chat_id"], hit["message_id"]) == (
        *("[M1]", kitchen),
        *("thread-2", "m0"),
    )
    assert hit["score"] > 0

    for rank, value in enumerate(("Blue", "Green", "Black"), start=1):
        stored = ask(
            "/facts/store",
            topic_key="favorite_colors",
            kind="ranked",
            value=value,
            source_message_id="m1",
            chat_id="thread-1",
            rank=rank,
        )
        assert (stored["rank"], stored["value"], stored["chat_id"]) == (rank, value, "thread-1")
    of_colors = {"chat_id": "thread-1", "topic_key": "favorite_colors"}
    assert [each["value"] for each in ask("/facts/get", **of_colors)["facts"]] == ["Blue", "Green", "Black"]
    assert [each["value"] for each in ask("/facts/get", **of_colors, rank=2)["facts"]] == ["Green"]
    assert ask("/facts/get", **of_colors, rank=9) == {"facts": []}
    assert ask("/facts/get", chat_id="thread-2", topic_key="favorite_colors") == {"facts": []}

    def chat(text: str) -> Any:
        return server.ask("chat", {"text": text, "chat": "session:thread-1"}, project="chatdo").json

    assert chat("second favorite color") == {
        "route": "facts",
        "answer": "Green",
        "system": "",
        "citations": {},
    }
    assert chat("list my favorite colors")["answer"] == "1. Blue\n2. Green\n3. Black"
    assert chat("list my favorite tv shows")["answer"] == "I don't have that stored yet"
    fuzzy = chat("what did we decide about the kitchen?")
    assert (fuzzy["route"], fuzzy["answer"]) == ("search", None)
    assert kitchen in fuzzy["system"]
    assert "M1" in fuzzy["citations"]

    message = {"chat_id": "thread-3", "message_id": "m3", "role": "user", "content": BLUE}
    facts = ask("/index-chat-message", **message)["facts"]
    assert (facts["stored"], facts["topic_key"], facts["values"]) == (
        *(True, "favorite_colors"),
        ["Blue", "Green", "Black"],
    )
    again = ask("/index-chat-message", **message)
    assert (again["duplicate"], again["facts"]) == (True, None)
    other = ask("/index-chat-message", **message | {"content": "Something else"})
    assert (other["indexed"], len(other["warnings"])) == (False, 1)
    routed = server.ask("chat", {"text": "second favorite color", "chat": "thread-3"}, project="chatdo").json
    assert routed["answer"] == "Green"


def test_the_client_of_chatdo(serve: Serve) -> None:
    server = serve()
    with memlog.MemoryServiceClient(f"http://127.0.0.1:{server.port}", token=server.token) as client:
        assert client.available()
        assert client.index_chat_message("chatdo", "thread-1", "m1", "user", BLUE)["indexed"]
        assert client.search("chatdo", "which colors?", limit=1)[0]["content"] == BLUE
        client.store_fact("chatdo", "favorite_colors", "ranked", "Red", "m2", "thread-1", 2)
        found = client.get_facts("chatdo", "thread-1", "favorite_colors")
        assert [each["value"] for each in found] == ["Blue", "Red", "Black"]
        second = client.get_fact_by_rank("chatdo", "thread-1", "favorite_colors", 2)
        assert second is not None
        assert (second["value"], second["source_message_id"]) == ("Red", "m2")
        assert client.get_fact_by_rank("chatdo", "thread-1", "favorite_colors", 9) is None
    with memlog.MemoryServiceClient("http://127.0.0.1:1") as client:
        assert not client.available()


def test_a_project_without_data_has_an_empty_list_and_nothing_stored_yet(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve()
    empty = {"project_id": "chatdo"}
    asked = [
        server.ask("/search", {**empty, "query": "kitchen"}),
        server.ask("/facts/get", {**empty, "topic_key": "favorite_colors", "chat_id": "thread-1"}),
        server.ask("/facts/get", {**empty, "topic_key": "favorite_colors"}),
        server.ask("chat", {"text": "second favorite color", "chat": "thread-1"}, project="chatdo"),
        server.ask("chat", {"text": "what did we decide?"}, project="chatdo"),
        server.ask("memories.list", {}, project="chatdo"),
        server.ask("status", {}, project="chatdo"),
    ]
    assert [each.status for each in asked] == [200] * 5 + [404] * 2
    assert asked[0].json["results"] == asked[1].json["facts"] == asked[2].json["facts"] == []
    assert [each.json["answer"] for each in asked[3:5]] == ["I don't have that stored yet", None]
    assert [str(tmp_path).encode() in each.body for each in asked] == [False] * len(asked)
    assert not [*tmp_path.glob("data_home/*/chatdo")]

    (tmp_path / "data_home/memlog/broken/log").mkdir(parents=True)
    (tmp_path / "data_home/memlog/broken/log/FORMAT").write_text("99")
    broken = server.ask("/index-chat-message", {"project_id": "broken", **SAID})
    assert (broken.status, str(tmp_path).encode() in broken.body) == (507, False)


def test_facts_get_without_a_chat_answers_all_chats_of_the_project(serve: Serve) -> None:
    server = serve()
    for chat, values in {
        "thread-1": ("Blue", "Green"),
        "thread-2": ("Red",),
        -100: ("Pink",),
        "chatdo:old": ("Gray",),
    }.items():
        for rank, value in enumerate(values, start=1):
            fact = {"topic_key": "favorite_colors", "value": value, "chat_id": chat, "rank": rank}
            assert server.ask("/facts/store", {"project_id": "p1", **fact}).status == 200
    other = {"project_id": "p2", "topic_key": "favorite_colors", "value": "Black"}
    assert server.ask("/facts/store", other).status == 200

    def found(**asked: Any) -> list[tuple[int, str, str]]:
        answer = server.ask("/facts/get", {"project_id": "p1", "topic_key": "favourite_color", **asked})
        return [(each["rank"], each["value"], each["chat_id"]) for each in answer.json["facts"]]

    pink, red, blue, green = (
        *((1, "Pink", "-100"), (1, "Red", "thread-2")),
        *((1, "Blue", "thread-1"), (2, "Green", "thread-1")),
    )
    # What was imported from ChatDO is found by the id that it had there.
    assert found(chat_id="old") == found(chat_id="chatdo:old") == [(1, "Gray", "chatdo:old")]
    assert sorted(found()) == sorted([pink, red, blue, green, (1, "Gray", "chatdo:old")])
    assert found(rank=2) == [green]
    assert found(chat_id="thread-2") == [red]
    assert found(chat_id=-100) == [pink]
    assert found(topic_key="favorite_sports") == []


@pytest.mark.parametrize("newest_last", [False, True])
def test_fact_newer_created_at_wins_at_any_rank(serve: Serve, newest_last: bool) -> None:
    server = serve()
    of_third = {"topic_key": "favorite_colors", "rank": 3, "chat_id": "thread-1"}
    stored = [("Black", "2026-02-24T10:00:00"), ("Gray", "2026-02-24T12:00:00+01:00")]
    for value, created_at in stored if newest_last else reversed(stored):
        fact = {**of_third, "value": value, "created_at": created_at}
        answer = server.ask("/facts/store", fact)
        assert (answer.status, answer.json["value"]) == (200, value)
        assert answer.json["created_at"] == f"2026-02-24T1{0 if value == 'Black' else 1}:00:00.000Z"
    (third,) = server.ask("/facts/get", of_third).json["facts"]
    assert (third["rank"], third["value"], third["created_at"]) == (3, "Gray", "2026-02-24T11:00:00.000Z")
    with memlog.MemoryServiceClient(f"http://127.0.0.1:{server.port}", token=server.token) as client:
        now = client.store_fact("default", "favorite_colors", "ranked", "Red", chat_id="thread-1", rank=3)
        assert now == {**client.get_facts("default", "thread-1", "favorite_colors")[0], "warnings": []}
    for wrong in ({"rank": 0}, {"created_at": "soon"}, {"created_at": 7}, {"value": "a\nb"}):
        assert server.ask("/facts/store", {**of_third, "value": "Red", **wrong}).status == 422


def test_an_integer_chat_id_of_a_body(serve: Serve) -> None:
    server = serve()
    said = {"project_id": "default", **SAID, "chat_id": -1001234567890}
    assert server.ask("/index-chat-message", said).json["indexed"] is True
    hit, *_ = server.ask("/search", {"query": "colors"}).json["results"]
    assert hit["chat_id"] == "-1001234567890"
    assert (
        server.ask("chat", {"text": "second favorite color", "chat": -1001234567890}).json["answer"]
        == "Green"
    )
    event = {"type": "message", "channel": "telegram", "chat_id": -100, "role": "user", "content": "tea"}
    assert server.ask("append", event).status == 200
    line = json.dumps(event).encode() + b"\n"
    assert server.ask("append", line, content_type="application/x-ndjson").status == 200
    for chat in ("telegram:-100", ["telegram", -100]):
        window = server.ask("conversations.window", {"chat": chat}).json
        assert len(window["messages"]) == 2
    assert len(server.ask("conversations.window?chat=telegram:-100").json["messages"]) == 2
    for wrong in (7.5, True):
        assert server.ask("/index-chat-message", {**said, "chat_id": wrong}).code == "bad_input"
        assert server.ask("append", {**event, "chat_id": wrong}).code == "invalid"


def test_the_java_service(serve: Serve, tmp_path: Path) -> None:
    server = serve(store=tmp_path / "store")
    assert server.ask(MEMORIES).code == "session_not_found"
    created = server.ask(MEMORIES, PREFERS)
    memory = created.json
    assert created.status == 201
    assert memory.keys() == {
        *("id", "sessionId", "memoryContent", "memoryType", "importance"),
        *("createdAt", "lastAccessedAt"),
    }
    assert (memory["sessionId"], memory["memoryContent"], memory["memoryType"], memory["importance"]) == (
        *(SESSION, PREFERS["content"]),
        *("preference", 0.7),
    )
    assert server.ask(MEMORIES).json == [memory]
    assert server.ask(f"{MEMORIES}/{memory['id']}").json == memory
    assert server.ask(MEMORIES, PREFERS).json["id"] == memory["id"]
    assert server.ask(f"{MEMORIES}/unknown").code == "memory_not_found"
    assert server.ask(MEMORIES, {**PREFERS, "type": "rumour"}).status == 422
    blank = server.ask(MEMORIES.replace("3f", "4f"), {**PREFERS, "content": " "})
    assert (blank.status, server.ask(MEMORIES.replace("3f", "4f")).code) == (422, "session_not_found")
    deleted = server.ask(f"{MEMORIES}/{memory['id']}", method="DELETE")
    assert (deleted.status, deleted.body) == (204, b"")
    assert server.ask(f"{MEMORIES}/{memory['id']}", method="DELETE").code == "memory_not_found"
    assert server.ask(MEMORIES).json == []


def test_memory_id_uuid(serve: Serve, tmp_path: Path) -> None:
    """Of new memories, of old ones, and of those whose id is no UUID; the same after a restart."""
    chat, own = f"session:{SESSION}", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
    with memlog.open(tmp_path / "store") as store:
        old = store.memories.save("The project deadline is March 15th", chat=chat).memory_id
        for name in ("hours", own):
            store.memories.save(f"The office of {name} opens at eight", chat=chat, memory_id=name)
        store.memories.save("Old news", chat=chat, memory_id="kept")
        store.memories.archive("kept")
    server = serve(store=tmp_path / "store")
    new = server.ask(MEMORIES, PREFERS).json["id"]
    ids = [each["id"] for each in server.ask(MEMORIES).json]
    assert [str(uuid.UUID(each)) for each in ids] == ids
    assert {new, own, str(uuid.UUID(old))} < {*ids}
    assert "72feae09-a757-53ae-928c-12de221bd0cd" in ids  # that of `hours`, which clients have kept
    kept = server.ask(f"{MEMORIES}/kept").json["id"]
    assert server.ask(f"{MEMORIES}/{kept}").json["memoryContent"] == "Old news"
    for each in ids:
        assert server.ask(f"{MEMORIES}/{each}").json["id"] == each
        assert server.ask(f"{MEMORIES}/{each}", method="DELETE").status == 204
    assert server.ask(f"{MEMORIES.replace('3f', '4f')}/{kept}").code == "session_not_found"


def test_sessions_of_every_project(serve: Serve) -> None:
    server = serve()
    for project, content in {"work": "Reports are due on Fridays", "Kääpiö": "Milk is out"}.items():
        header = {"X_Memlog_Project": quote(project)}
        created = server.ask(MEMORIES, {**PREFERS, "content": content}, **header)
        assert created.status == 201
        assert [each["memoryContent"] for each in server.ask(MEMORIES, **header).json] == [content]
        (memory,) = server.ask("memories.list", {}, project=quote(project)).json
        assert memory["content"] == content
        one = f"{MEMORIES}/{created.json['id']}"
        assert server.ask(one).code == "session_not_found"
        assert server.ask(one, **header).json == created.json
        assert server.ask(one, method="DELETE", **header).status == 204
    assert server.ask(MEMORIES, PREFERS).status == 201
    assert len(server.ask("memories.list", {}).json) == 1

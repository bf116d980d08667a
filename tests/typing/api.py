"""Uses the public API as a program would. Never run: type checkers read it (tests/test_public_api.py)."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, assert_type

import memlog
from memlog import BadInput, Busy, DatabaseError, EmbeddingError, LogError, MemlogError, NotFound


def opening() -> None:
    with memlog.open("notes") as store:
        assert_type(store, memlog.Store)
        assert_type(store.path, Path)
        assert_type(store.embedder.embed(["tea"]), list[list[float]])
        assert_type(store.embedder.is_available(), bool)
    told: list[str] = []
    store = memlog.open(
        Path("notes"),
        model="models/minilm",
        durability="os",
        lock_timeout=2.0,
        chunk_sizes=memlog.ChunkSizes(window=300, overlap=60),
        redact=True,
        notify=told.append,
    )
    store.close()


def appending(store: memlog.Store) -> None:
    events: list[memlog.Event] = [
        memlog.Message(channel="cli", chat_id="1", role="user", content="hello", meta={"model": "small"}),
        memlog.SessionBreak(channel="cli", chat_id="1"),
        memlog.SummaryWritten(channel="cli", chat_id="1", content="They met."),
        memlog.ExtractionCompleted(channel="cli", chat_id="1", through_message_id="m1"),
        memlog.MemorySaved(content="likes tea", category="identity", importance=0.7, tags=["tea"]),
        memlog.Redacted(target_id="m1", reason="asked for"),
    ]
    assert_type(store.append(events), list[memlog.Position])
    (position,) = store.append([{"type": "memory_saved", "content": "a dict"}])
    assert_type(position.stream, str)
    assert_type(position.offset, int)
    store.append([b'{"type":"memory_saved","content":"a line"}'])
    assert_type(store.append(memlog.MemorySaved(content="one")), list[memlog.Position])
    assert_type(store.stream_with("m1"), str)


def contexts(store: memlog.Store) -> None:
    given = store.context(
        "which tea?",
        chat=("telegram", "7"),
        max_tokens=2000,
        counter="chars4",
        form="messages",
        limit=3,
        passages=10,
        min_salience=0.0,
        exclude=["m1"],
        record=False,
        explain=True,
        sync=False,
    )
    assert_type(given, memlog.Context)
    assert_type(given.text, str)
    assert_type(given.messages, list[dict[str, str]])
    assert_type(given.citations["M1"], memlog.ContextEntry)
    assert_type(given.entries[0].position, memlog.LinePosition)
    assert_type(given.left_out, list[memlog.OmittedEntry])
    assert_type(given.unrecorded, str | None)


def searching(store: memlog.Store) -> None:
    filters = memlog.Filters(
        kinds=frozenset({"message", "memory"}),
        chat=("cli", "1"),
        role="user",
        source="conversation",
        topic="drinks",
        tag="green",
        min_salience=0.3,
        since="2026-02-24T00:00:00.000Z",
        exclude=frozenset({"m1"}),
    )
    result = store.search(
        "tea", k=5, mode="hybrid", filters=filters, min_similarity=0.3, explain=True, expand=1
    )
    assert_type(result, memlog.SearchResult)
    for hit in result.hits:
        assert_type(hit, memlog.Hit)
        assert_type(hit.score, float)
        assert_type(hit.similarity, float | None)
        assert_type(hit.position, memlog.LinePosition)
        assert_type(hit.explain, dict[str, memlog.Evidence] | None)
    store.search("tea", chat="telegram:7", filters=memlog.Filters(since=datetime(2026, 2, 24, tzinfo=UTC)))
    store.search("tea", filters={"chat": ("cli", "1")}, ranking={"depth": 50})


def reading(store: memlog.Store) -> None:
    gate = memlog.should_retrieve("as usual")
    assert_type(gate, memlog.Gate)
    assert_type(gate.words, str | None)
    window = store.conversations.window(("cli", "1"), last=20, tokens=1000, across_sessions=True)
    assert_type(window, memlog.Window)
    assert_type(window.messages, list[memlog.WindowMessage])
    assert_type(store.conversations.sessions(("cli", "1"), all=True), list[memlog.Session])
    content = store.conversations.session_content(("cli", "1"), last=20, tokens=1000, across_sessions=True)
    assert_type(content, memlog.SessionContent)
    assert_type(store.conversations.summaries(), list[memlog.Summary])
    stored = store.get("m1", stream="conversations/cli_1", around=2)
    assert_type(stored, memlog.StoredEvent | None)
    if stored is not None and stored.around is not None:
        assert_type(stored.around, memlog.Surroundings)
        assert_type(stored.around.messages, list[memlog.WindowMessage])
    for line in store.maintenance.quarantine():
        assert_type(line, memlog.QuarantinedLine)
        assert_type(store.maintenance.explain(line), str)


def core_memory(store: memlog.Store) -> None:
    assert_type(store.core.get().user, dict[str, str])
    assert_type(store.core.get("user", "city"), str | None)
    assert_type(store.core.set("user", "city", "Oulu"), memlog.Position)
    assert_type(store.core.delete("user", "city"), memlog.Position | Literal[False])
    assert_type(store.core.import_file("USER.md", force=True), memlog.CoreImportReport)


def memories(store: memlog.Store) -> None:
    memory = store.memories.get("m")
    assert_type(memory, memlog.Memory | None)
    assert_type(store.memories.save("likes tea", category="identity", tags=["tea"]), memlog.SaveReport)
    assert_type(store.memories.list(category="identity"), list[memlog.Memory])
    assert_type(store.memories.delete("m"), memlog.Position | Literal[False])
    pruned = store.memories.prune(categories=["temp"], threshold=0.01, dry_run=True)
    assert_type(pruned, memlog.PruneReport)
    assert_type(pruned.memories, list[memlog.Memory])


def facts(store: memlog.Store) -> None:
    done = store.facts.set("favourite colours", "blue", "green", chat="telegram:7")
    assert_type(done, memlog.FactUpdate)
    assert_type(done.positions, list[memlog.Position])
    found = store.facts.get("favorite_colors", rank=2, any_chat=True)
    assert_type(found, memlog.FactAnswer)
    assert_type(found.route, memlog.Route | None)


def projects() -> None:
    those = memlog.Projects("stores")
    assert_type(those.list(), list[memlog.Project])
    assert_type(those.get("work"), memlog.Project | None)
    done = those.remove("work", lock_timeout=1.0, dry_run=True)
    assert_type(done, memlog.ProjectRemoval)
    memlog.open(those.path("work")).close()


def failing(store: memlog.Store) -> None:
    try:
        store.append([memlog.MemorySaved(content="tea")])
    except (BadInput, NotFound, Busy, LogError, DatabaseError, EmbeddingError) as error:
        print(error.code.partition("_"))
    except MemlogError as error:
        assert_type((error.message, error.hint, error.retryable), tuple[str, str, bool])


async def waiting() -> None:
    async with memlog.open_async("notes", durability="os") as store:
        assert_type(store, memlog.AsyncStore)
        assert_type(store.path, Path)
        assert_type(await store.append([memlog.MemorySaved(content="tea")]), list[memlog.Position])
        assert_type(await store.search("tea", k=3, mode="text"), memlog.SearchResult)
        assert_type(await store.conversations.window("telegram:7"), memlog.Window)
        assert_type(await store.get("m1"), memlog.StoredEvent | None)
        assert_type(await store.core.get(), memlog.CoreMemory)
        assert_type(await store.core.get("user", "city"), str | None)
        await store.warm()
        await asyncio.wait_for(store.maintenance.watch(once=True), 10)
    opened = await memlog.open_async(Path("notes"))
    assert_type(opened, memlog.AsyncStore)
    await opened.close()

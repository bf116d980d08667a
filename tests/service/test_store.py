"""The store as a Python program uses it."""

import asyncio
import json
import threading

import pytest

import memlog


def said(content, **more):
    return memlog.Message(channel="cli", chat_id="1", role="user", content=content, **more)


def test_append_takes_structs_dicts_and_lines(store):
    positions = store.append(
        [
            said("a struct", id="a"),
            {
                "type": "message",
                "id": "b",
                "channel": "cli",
                "chat_id": "1",
                "role": "user",
                "content": "a dict",
            },
            b'{"type":"message","id":"c","channel":"cli","chat_id":"1","role":"user","content":"a line"}',
        ]
    )
    assert [position.id for position in positions] == ["a", "b", "c"]
    assert [message.content for message in store.conversations.window(("cli", "1")).messages] == [
        "a struct",
        "a dict",
        "a line",
    ]


def test_append_says_which_event_has_the_id_already(store):
    (first,) = store.append([said("tea", id="a")])
    assert store.search("tea", mode="text").hits
    again, other, fresh = store.append([said("tea", id="a"), said("coffee", id="a"), said("coffee")])
    assert (again.duplicate, again.conflict) == (True, None)
    assert other.conflict == memlog.IdHolder(first.stream, first.segment, first.offset)
    assert [warning.code for warning in other.warnings] == ["conflict"]
    assert (fresh.duplicate, fresh.conflict, fresh.warnings) == (False, None, ())


def test_on_stored_is_called_with_what_became_durable(tmp_path):
    told = []
    with memlog.open(tmp_path / "store", on_stored=told.extend) as store:
        saved = store.memories.save("tea", chat="7")
    assert [position.id for position in told] == [saved.event_id]
    assert [warning.code for warning in told[0].warnings] == ["chat_form"]


def test_of_a_list_with_one_bad_event_nothing_is_written(store):
    with pytest.raises(memlog.BadInput, match="role"):
        store.append(
            [said("good"), {"type": "message", "channel": "cli", "chat_id": "1", "content": "no role"}]
        )
    assert store.maintenance.status().events == 0


@pytest.mark.parametrize(
    "redaction",
    [
        memlog.Redacted(id="gone", target_id="m1", reason="why"),
        {"type": "redacted", "id": "gone", "target_id": "m1", "stream": None, "source": "kept"},
        b' {"type":"redacted","id":"gone","target_id":"m1", "source" : "kept"}',
    ],
    ids=["a struct", "a dict", "a line"],
)
def test_a_redaction_goes_where_its_target_stands(store, redaction):
    store.append([said("a phone number", id="m1"), said("thank you")])
    (position,) = store.append([redaction])
    assert position.stream == "conversations/cli_1"
    assert [message.content for message in store.conversations.window(("cli", "1")).messages] == ["thank you"]
    line = json.loads(store.get("gone").raw)
    assert line["stream"] == "conversations/cli_1"
    assert line.get("reason") == "why" or line.get("source") == "kept"


def test_a_redaction_of_what_nobody_knows_goes_where_it_says_or_nowhere(store):
    with pytest.raises(memlog.NotFound):
        store.append([said("not written"), memlog.Redacted(target_id="m1")])
    assert store.maintenance.status().events == 0
    (position,) = store.append([memlog.Redacted(target_id="m1", stream="facts")])
    assert position.stream == "facts"


def test_get_gives_the_line_behind_an_event_and_behind_a_memory(store):
    (message, memory) = store.append(
        [said("hello", id="a"), memlog.MemorySaved(content="likes tea", memory_id="m", id="e")]
    )
    event = store.get("a")
    assert '"content":"hello"' in event.raw
    assert (event.position.stream, event.position.offset, event.position.line) == (
        message.stream,
        message.offset,
        1,
    )
    assert store.get("m").id == store.get("e").id == memory.id
    assert store.get("unknown") is None


def test_get_gives_the_line_behind_a_document_and_a_summary(store):
    store.append(
        [
            {
                "type": "document_indexed",
                "id": "d",
                "source_id": "wiki",
                "file": "a/tea.md",
                "content": "tea",
            },
            {"type": "summary_written", "id": "s", "channel": "x", "chat_id": "1", "content": "tea"},
        ]
    )
    assert store.get("wiki/a/tea.md").id == store.get("d").id == "d"
    assert store.get("s").type == "summary_written"


def test_an_events_id_goes_before_a_memory_of_that_name(store):
    store.append(
        [
            memlog.MemorySaved(content="the memory", memory_id="same", id="a"),
            memlog.MemorySaved(content="the event", memory_id="other", id="same"),
        ]
    )
    assert '"content":"the event"' in store.get("same").raw


def test_an_id_in_two_streams_must_be_named_with_its_stream(store):
    store.append([said("one", id="same"), memlog.MemorySaved(content="two", id="same")])
    with pytest.raises(memlog.BadInput, match="several streams"):
        store.get("same")
    assert store.get("same", stream="memory").type == "memory_saved"


def test_a_project_report_counts_what_was_read_now(store):
    store.append([said("one", id="a"), said("one", id="a"), said("other", id="a")])
    first = store.maintenance.project(embed=False)
    assert (first.events, first.rows, first.duplicates, first.conflicts, first.vectors_pending) == (
        1,
        1,
        1,
        1,
        1,
    )
    again = store.maintenance.project(embed=False)
    assert (again.events, again.rows, again.duplicates, again.conflicts) == (0, 1, 0, 0)


def test_vectors_survive_a_rebuild_through_the_cache(store):
    store.append([said(f"text {number}") for number in range(20)])
    assert store.maintenance.project().vectors_computed == 20
    rebuilt = store.maintenance.project(from_scratch=True)
    assert (rebuilt.vectors_computed, rebuilt.vectors_cached, rebuilt.vectors_pending) == (0, 20, 0)


def test_a_damaged_cache_is_begun_anew(store):
    store.append([said("text")])
    store.maintenance.project()
    store.close()
    for path in (store.path / "cache").iterdir():
        path.write_bytes(b"no database at all" * 1000)
    assert store.maintenance.project(from_scratch=True).vectors_computed == 1


def test_without_a_model_all_but_vectors_works_and_says_so(tmp_path):
    with memlog.open(tmp_path / "store", model=tmp_path / "nowhere") as store:
        store.append([said("green tea")])
        report = store.maintenance.project()
        assert "model.onnx" in report.silent["vector"]
        result = store.search("tea")
        assert [hit.content for hit in result.hits] == ["green tea"]
        assert "model.onnx" in result.silent["vector"]
        assert store.search("tea", mode="vector").hits == []


def test_reads_of_an_empty_store_are_empty(store):
    assert store.search("tea", mode="text").hits == []
    assert store.conversations.window(("cli", "1")).messages == []
    assert store.core.get() == memlog.CoreMemory(user={}, agent={})
    assert store.maintenance.quarantine() == []
    assert store.get("x") is None
    assert store.maintenance.verify().ok


def test_what_a_person_should_know_is_told(fixture_store):
    told = []
    with memlog.open(fixture_store("week"), notify=told.append) as store:
        store.conversations.window(("telegram", "123456"))
    assert told == ["there was no read model: built one from the log (68 events)"]


def test_a_store_may_be_used_from_several_threads(store):
    failures = []

    def work(number):
        try:
            for turn in range(15):
                store.append([said(f"thread {number} turn {turn}")])
                assert store.search(f"thread {number}", mode="text").hits
                store.conversations.window(("cli", "1"), last=3)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.maintenance.status().events == 60
    assert store.maintenance.verify().ok


def test_a_query_that_cannot_catch_up_in_time_says_that_it_may_be_behind(store):
    from memlog.eventlog.files.locks import holding_lock

    store.append([said("before")])
    store.search("before", mode="text")
    store.append([said("after")])
    with holding_lock(store.path / "projector.lock", "a test", 1.0):
        behind = store.search("after before", mode="text")
    assert behind.synced is False
    assert [hit.content for hit in behind.hits] == ["before"]
    assert len(store.search("after before", mode="text").hits) == 2


def test_embed_gives_what_a_projection_left_out_and_then_does_nothing(store):
    store.append([said(f"text {number}") for number in range(5)])
    store.maintenance.project(embed=False)
    shown = []
    report = store.maintenance.embed(batch=2, progress=lambda *step: shown.append(step))
    assert (report.computed, report.cached, report.pending) == (5, 0, 0)
    assert shown == [("vectors", done, 5) for done in (0, 2, 4, 5)]
    assert store.maintenance.embed() == memlog.EmbedReport(computed=0, cached=0, pending=0)
    store.append([said("a text that nothing has read")])
    assert store.maintenance.embed().computed == 1


def test_embed_without_a_model_raises_again_and_again(tmp_path):
    with memlog.open(tmp_path / "store", model=tmp_path / "nowhere") as store:
        for _ in range(2):
            with pytest.raises(memlog.EmbeddingError, match=r"model\.onnx"):
                store.maintenance.embed()


def test_progress_tells_bytes_of_the_log(store):
    store.append([said("text")])
    store.append([memlog.MemorySaved(content="tea")])
    size = sum(path.stat().st_size for path in (store.path / "log").rglob("*.jsonl"))
    shown = []
    store.maintenance.project(embed=False, progress=lambda *step: shown.append(step))
    assert {(what, total) for what, _, total in shown} == {("bytes read", size)}
    done = [done for _, done, _ in shown]
    assert done == sorted(done)
    assert done[-1] == size


def test_stores_of_other_chunk_sizes_have_other_passages(store):
    store.append([said("A sentence about green tea. " * 100)])
    assert store.maintenance.project(embed=False).vectors_pending == 2
    with memlog.open(store.path, chunk_sizes=memlog.ChunkSizes(window=64, overlap=0)) as other:
        report = other.maintenance.project(embed=False)
        assert report.rebuilt == "the read model was built with other chunk sizes or by another memlog"
        assert report.vectors_pending > 5
        assert other.maintenance.verify().ok


def test_the_depth_of_a_search_is_never_below_its_hits(store):
    store.append([said("tea " * (number + 1), id=str(number)) for number in range(30)])
    assert len(store.search("tea", k=30, ranking=memlog.Ranking(depth=1), mode="text").hits) == 30


def test_a_relative_path_names_one_folder_wherever_the_process_goes(tmp_path, monkeypatch):
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    projects = memlog.Projects("projects")
    with memlog.open("notes") as store, memlog.open(projects.path("p")) as project:
        store.append([memlog.MemorySaved(content="one")])
        monkeypatch.chdir(tmp_path / "there")
        for opened in (store, project):
            opened.append([memlog.MemorySaved(content="two")])
        assert [hit.content for hit in store.search("one", mode="text").hits] == ["one"]
        assert store.path == tmp_path / "here/notes"
    assert [*(tmp_path / "there").iterdir()] == []
    assert [project.name for project in projects.list()] == ["p"]


def test_a_store_is_created_at_once_where_that_is_asked_for(tmp_path):
    with memlog.open(tmp_path / "deep/store", create=True) as store:
        store.warm()
        assert store.search("tea", mode="text").hits == store.memories.list() == []
        assert store.facts.get("city").found is False
        store.append(memlog.MemorySaved(content="green tea"))
    with memlog.open(tmp_path / "deep/store", create=True) as store:
        assert [hit.content for hit in store.search("tea", mode="text").hits] == ["green tea"]
    (tmp_path / "file").touch()
    with pytest.raises(memlog.LogError) as caught:
        memlog.open(tmp_path / "file/store", create=True)
    assert caught.value.code == "cannot_create"


@pytest.mark.parametrize("creates", [False, True])
def test_a_new_store_is_warmed_without_making_it(tmp_path, creates):
    async def warm():
        async with memlog.open_async(tmp_path / "store", create=creates) as store:
            await store.warm()
            assert (tmp_path / "store").exists() == creates
            await store.append(memlog.MemorySaved(content="green tea"))
            return (await store.search("tea", mode="text")).hits

    assert [hit.content for hit in asyncio.run(warm())] == ["green tea"]

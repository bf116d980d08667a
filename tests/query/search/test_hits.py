"""What a hit says of itself: kind, source, place, likeness; and that it is the thing, not a passage of it."""

import inspect

import pytest

import memlog
from memlog.eventlog.events import DocumentIndexed, MemorySaved, Message, SourceRegistered, SummaryWritten
from memlog.projector.lifecycle import Projector

DAY = "memory/2026-02-24.md"


def said(content, **more):
    return Message(channel="cli", chat_id="1", role="user", content=content, **more)


@pytest.fixture
def every_kind(store):
    store.append(
        [
            said("tea, said", id="message"),
            MemorySaved(content="tea, kept", memory_id="memory"),
            MemorySaved(content="tea, heard", memory_id="heard", source="conversation"),
            SummaryWritten(channel="cli", chat_id="1", content="tea, in short", id="summary"),
            SourceRegistered(source_id="notes", kind="memory"),
            DocumentIndexed(source_id="notes", file="MEMORY.md", content="tea, noted"),
            DocumentIndexed(source_id="notes", file=DAY, content="tea, noted today"),
            DocumentIndexed(
                source_id="docs", file="guide/tea.md", content="# Tea\n\n## Green\n\ntea, documented\n"
            ),
        ]
    )
    store.maintenance.project()
    return store


def test_every_hit_has_a_kind_and_a_source(every_kind):
    for mode in ("text", "vector", "hybrid"):
        hits = every_kind.search("tea", mode=mode).hits
        assert {(hit.id, hit.kind, hit.source) for hit in hits} == {
            ("message", "message", "conversation"),
            ("memory", "memory", "manual"),
            ("heard", "memory", "conversation"),
            ("summary", "memory", "summary"),
            ("notes/MEMORY.md", "memory", "MEMORY.md"),
            (f"notes/{DAY}", "memory", DAY),
            ("docs/guide/tea.md", "document", "docs"),
        }, mode


def test_a_document_says_where_in_which_file(every_kind):
    wanted = memlog.Filters(kinds=frozenset({"document"}))
    for mode in ("text", "vector", "hybrid"):
        (hit,) = every_kind.search("tea", mode=mode, filters=wanted).hits
        assert (hit.file, hit.section, hit.start_line, hit.end_line) == ("guide/tea.md", "Tea", 1, 5), mode


def test_a_summary_is_cut_embedded_and_found(store):
    long = "They compared harvests of green tea. " * 150
    store.append([SummaryWritten(channel="cli", chat_id="1", content=long, id="s")])
    assert store.maintenance.project().vectors_computed > 1
    for mode in ("text", "vector"):
        (hit,) = store.search("harvests", mode=mode).hits
        assert (hit.id, hit.kind, hit.source, hit.category) == ("s", "memory", "summary", "summaries")


def test_passages_of_messages_stand_among_the_memories_and_not_in_their_full_text(store):
    store.append([said("green tea " * 500, id="a"), MemorySaved(content="black tea", memory_id="m")])
    projector = Projector(store.path)
    projector.catch_up()
    db = projector.connect_to_live()
    sources = db.execute(
        "SELECT source, count(*) > 1 FROM memory_chunks GROUP BY source ORDER BY 1"
    ).fetchall()
    assert sources == [("conversation", 1), ("manual", 0)]
    indexed = "SELECT rowid FROM memory_chunks_fts WHERE memory_chunks_fts MATCH 'tea'"
    (number,) = db.execute("SELECT chunk_no FROM memory_chunks WHERE memory_id = 'm'").fetchone()
    assert db.execute(indexed).fetchall() == [(number,)]
    projector.close()


def test_many_passages_of_few_things_do_not_crowd_out_others(tmp_path):
    """Of three long memories each passage is nearer than any of the others."""
    long = "\n\n".join(f"Chapter {number}. " + "The tea harvest. " * 14 for number in range(40))
    others = [MemorySaved(content=f"Tea and other things, number {n}", memory_id=str(n)) for n in range(7)]
    with memlog.open(tmp_path, chunk_sizes=memlog.ChunkSizes(64, 16), durability="os") as store:
        store.append([MemorySaved(content=f"{name}\n\n{long}", memory_id=name) for name in "abc"])
        store.append(others)
        assert store.maintenance.project().vectors_computed > 40
        for mode in ("text", "vector", "hybrid"):
            found = store.search("the tea harvest", mode=mode, k=10, ranking=memlog.Ranking(depth=1)).hits
            assert sorted(hit.id for hit in found) == sorted([*"abc", *map(str, range(7))]), mode


def test_a_search_gives_10_hits_of_50_candidates_a_side_where_nothing_else_is_asked(store):
    store.append([said(f"tea number {number}") for number in range(30)])
    assert len(store.search("tea", mode="text").hits) == 10
    assert (inspect.signature(store.search).parameters["k"].default, memlog.Ranking().depth) == (10, 50)


def test_the_snippet_is_of_the_best_passage(store):
    filler = "\n\n".join(
        f"Interest rates rose again in quarter {number} of the year. " * 20 for number in range(4)
    )
    store.append(
        [MemorySaved(content=f"{filler}\n\nThe kettle whistles on the stove.\n\n{filler}", memory_id="m")]
    )
    store.maintenance.project()
    for mode in ("text", "vector"):
        (hit,) = store.search("a whistling kettle", mode=mode).hits
        if mode == "text":
            assert "The kettle whistles on the stove." in hit.snippet
        passage = hit.snippet.strip("…")
        start = hit.content.index(passage)
        assert abs(start - hit.content.index("The kettle")) < 2500, mode
        assert len(hit.snippet) <= 200, mode
        assert hit.snippet.startswith("…"), mode
        assert hit.snippet.endswith("…"), mode


def test_similarity_is_the_cosine_of_the_best_passage(store, embedder):
    store.append([said("The kettle is on the stove.", id="a"), said("A teapot.", id="b")])
    store.maintenance.project()
    question, *texts = embedder.embed(["boiling water", "The kettle is on the stove.", "A teapot."])
    hits = store.search("boiling water", mode="vector").hits
    expected = {name: round(float(question @ text), 4) for name, text in zip("ab", texts, strict=True)}
    assert {hit.id: round(hit.similarity, 4) for hit in hits} == expected


def test_the_asking_message_can_be_kept_out_of_its_own_answer(every_kind):
    everything = {hit.id for hit in every_kind.search("tea").hits}
    for asking in ("message", "memory"):
        excluded = memlog.Filters(exclude=frozenset({asking}))
        left = {hit.id for hit in every_kind.search("tea", filters=excluded).hits}
        assert left == everything - {asking}


def test_a_session_break_is_never_found(store):
    store.append(
        [said("tea", id="a"), {"type": "session_break", "channel": "cli", "chat_id": "1", "model": "tea"}]
    )
    store.maintenance.project()
    for mode in ("text", "vector", "hybrid"):
        assert [hit.id for hit in store.search("tea session break", mode=mode).hits] == ["a"], mode

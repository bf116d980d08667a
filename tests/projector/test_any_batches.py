"""Law 2: any log, cut into any batches, with restarts, rebuilds and late lines, gives the read model of one
replay, and the same answers to the same questions, scores included."""

import tempfile
from pathlib import Path

import msgspec
import numpy as np
import one_order
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlog.eventlog.draft import draft
from memlog.eventlog.events import TYPES
from memlog.projector import passages
from memlog.projector.digest import dump, fulltext_digest
from memlog.projector.projector import Projector
from memlog.projector.sqlite import why_no_vectors
from memlog.projector.verify import verify
from memlog.query.filters import Filters
from memlog.query.search import search

WORDS = [
    "tea",
    "teas",
    "running",
    "run",
    "чай",
    "поезд",
    "Käsi",
    "käden",
    "喝绿茶",
    "茶",
    "E1234",
    "a_b",
    "the",
]
QUESTIONS = ["tea", "run", "чай", "茶", "绿茶", '"tea run"', "käsi the", "E1234 tea", "поезд running", "b"]
DAYS = ["2026-02-24", "2026-02-25", "2026-02-26"]
TIMES = [f"{day}T08:00:0{second}.000Z" for day in DAYS for second in range(3)]

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
ids = st.integers(0, 15).map("id-{}".format)
"""The id of an event is the number of its place in what is drawn."""
times = st.sampled_from(TIMES)


DRAWN_TYPES = set()


def event(tag, /, **members):
    DRAWN_TYPES.add(tag)
    return st.fixed_dictionaries({"type": st.just(tag), "ts": times} | members)


chat = {"channel": st.just("cli"), "chat_id": st.sampled_from(["1", "2"])}
names = st.sampled_from([None, "Anna", "Дмитрий"])
keys = {"section": st.just("user"), "key": st.sampled_from(["name", "place"])}
a_memory = {"memory_id": st.sampled_from(["m1", "m2", "m3"])}
some_memories = st.lists(a_memory["memory_id"], min_size=1, max_size=3)
units = st.sampled_from([0.0, 0.1, 0.5, 0.7, 1.0])
categories = st.sampled_from(["other", "event"])
scopes = st.sampled_from([None, "cli:1"])
a_topic = {"topic_key": st.sampled_from(["city", "colors"]), "chat_id": scopes}
a_source = {"source_id": st.sampled_from(["notes", "docs"])}
a_file = a_source | {"file": st.sampled_from(["MEMORY.md", "guide/tea.md"])}
markdown = st.lists(st.sampled_from(["# Tea", "```sh", "```", "- run", *WORDS]), max_size=9).map("\n".join)

conversations = [
    event("message", **chat, role=st.sampled_from(["user", "assistant"]), content=texts, name=names),
    event("session_break", **chat, model=st.sampled_from([None, "x"])),
    event("summary_written", **chat, content=texts, from_message_id=st.none() | ids),
    event("extraction_completed", **chat, through_message_id=ids),
]
saved = event(
    "memory_saved",
    content=texts,
    memory_id=st.none() | a_memory["memory_id"],
    title=st.none() | texts,
    category=categories,
    chat_id=scopes,
    tags=st.none() | st.just(["a"]),
)
updated = event(
    "memory_updated",
    **a_memory,
    content=st.none() | texts,
    title=st.none() | texts,
    category=st.none() | categories,
    importance=st.none() | units,
    salience=st.none() | units,
)
memories = [
    saved,
    updated,
    event("memory_archived", **a_memory),
    event("memory_deleted", **a_memory),
    event("memory_accessed", memory_ids=some_memories),
    event("salience_decayed", rates=st.dictionaries(categories, units, max_size=2)),
    event("daily_event_recorded", summary=texts, event_date=st.none() | st.sampled_from(DAYS)),
    event("daily_events_compressed", ids=st.lists(ids, min_size=1, max_size=2), memory_ids=some_memories),
]
core = [event("core_memory_updated", **keys, value=texts), event("core_memory_deleted", **keys)]
facts = [
    event("fact_stored", **a_topic, value=texts),
    event("fact_stored", **a_topic, value=texts, kind=st.just("ranked"), rank=st.integers(1, 2)),
    event("fact_removed", **a_topic),
    event(
        "fact_removed",
        **a_topic,
        kind=st.sampled_from([None, "ranked", "single"]),
        rank=st.sampled_from([None, 0, 1, 2]),
    ),
]
documents = [
    event("source_registered", **a_source, kind=st.sampled_from(["memory", "docs"])),
    event("source_removed", **a_source),
    event("document_indexed", **a_file, content=markdown),
    event("document_removed", **a_file),
]
streams = ["conversations/cli_1", "memory", "core", "facts", "documents"]
redacted = event("redacted", target_id=ids, stream=st.sampled_from(streams))
EVENTS = [*conversations, *memories, *core, *facts, *documents, redacted]
# Of one thing the times are few: where they are the same, segment and offset decide.
few_times = {"ts": st.sampled_from(TIMES[:3])}
the_memory = few_times | {"memory_id": st.just("m1")}
the_topic = few_times | {"topic_key": st.just("city"), "chat_id": st.none()}
the_key = few_times | {"section": st.just("user"), "key": st.just("name")}
the_source = few_times | {"source_id": st.just("notes")}
the_file = the_source | {"file": st.just("MEMORY.md")}
# Their floating-point products differ with their order.
fading = st.sampled_from([0.7, 0.9, 0.1])


def redacting(stream):
    return event(
        "redacted", **few_times, target_id=st.integers(0, 7).map("id-{}".format), stream=st.just(stream)
    )


# All of one thing each: what becomes of a thing hangs on which of few events is the greatest.
a_save = event("memory_saved", **the_memory, content=texts, category=categories)
an_access = event("memory_accessed", **few_times, memory_ids=st.just(["m1"]))
a_deletion = event("memory_deleted", **the_memory)
one_memory = [
    a_save,
    a_save,
    a_save,
    event("memory_updated", **the_memory, content=st.none() | texts, salience=st.none() | units),
    event("memory_updated", **the_memory, title=st.none() | texts, category=categories),
    event("memory_archived", **the_memory),
    a_deletion,
    an_access,
    an_access,
    redacting("memory"),
]
a_decay = event(
    "salience_decayed", **few_times, rates=st.fixed_dictionaries({"other": fading, "event": fading})
)
one_fading_memory = [
    a_save,
    a_save,
    event("memory_updated", **the_memory, category=st.none() | categories, salience=st.none() | fading),
    a_decay,
    a_decay,
    a_decay,
    a_deletion,
    redacting("memory"),
]
one_topic = [
    event("fact_stored", **the_topic, value=texts),
    event("fact_stored", **the_topic, value=texts, kind=st.just("ranked"), rank=st.just(1)),
    event(
        "fact_removed",
        **the_topic,
        kind=st.sampled_from([None, "ranked", "single"]),
        rank=st.sampled_from([None, 0, 1]),
    ),
    redacting("facts"),
]
an_update = event("core_memory_updated", **the_key, value=texts)
a_removal = event("core_memory_deleted", **the_key)
one_key = [an_update, an_update, a_removal, a_removal, redacting("core")]
an_indexing = event("document_indexed", **the_file, content=markdown)
an_unindexing = event("document_removed", **the_file)
one_source = [
    event("source_registered", **the_source, kind=st.sampled_from(["memory", "docs"])),
    event("source_removed", **the_source),
    an_indexing,
    an_indexing,
    an_unindexing,
    an_unindexing,
    redacting("documents"),
]


ONE_THING = [one_memory, one_fading_memory, [*one_topic, *one_key], one_source]


def logs_of(kinds, numbers=None):
    """Of `kinds`, of which one that stands there twice is drawn twice as often (`one_of` would not)."""
    number = st.sampled_from(numbers or range(len(kinds)))
    return st.lists(number.flatmap(kinds.__getitem__), min_size=8, max_size=16)


def logs_of_some(kinds):
    """Mostly without some of `kinds`: what is not among them cannot hide what others do."""
    numbers = range(len(kinds))
    without = st.sets(st.sampled_from(numbers), max_size=len(kinds) - 2)
    return without.flatmap(lambda left_out: logs_of(kinds, [n for n in numbers if n not in left_out]))


# Two in three are of one thing, the others mostly of a few streams: it is among the events of one stream that
# order matters.
logs = st.one_of(
    *(logs_of_some(kinds) for kinds in ONE_THING for _ in range(2)),
    logs_of(EVENTS),
    logs_of([*conversations, redacted]),
    logs_of([saved, *memories, redacted]),
    logs_of([*facts, *core, *documents, redacted]),
)
foreign_lines = st.sampled_from(
    [
        b'{"role":"user","content":"tea without an id"}\n',
        b'{"id":"id-3","ts":"2026-02-24T08:00:01Z","role":"user","content":"tea run"}\r\n',
        b"no json\n",
        b'{"type":"message","id":"id-9","role":"user","content":"torn te\n',
        b"\n",
    ]
)


@st.composite
def segments(draw):
    """The bytes of each segment of a log, by its path below the store."""
    contents: dict[str, bytes] = {}
    events = draw(logs)
    # Of some logs an event now and then repeats another, or contradicts it.
    one_in = draw(st.sampled_from([None, 4, 12]))
    for number, event in enumerate(events):
        again = draw(st.integers(1, one_in)) if number and one_in else None
        said = draw(st.sampled_from(events[:number])) if again == 1 else event
        own = draw(st.integers(0, number)) if again == 2 else events.index(said)
        made = draft(said | {"id": f"id-{own}"})
        path = f"log/{made.stream}/{draw(st.sampled_from(DAYS))}.jsonl"
        contents[path] = contents.get(path, b"") + made.line("2026-02-26T09:00:00.000Z")
        if draw(st.integers(0, 5)) == 0:
            contents[path] += draw(foreign_lines)
    was_killed = draw(st.booleans())
    for path in contents:
        if was_killed and draw(st.booleans()):
            # Before the newline, or within the line.
            contents[path] = contents[path][: -draw(st.sampled_from([1, 30]))]
    return contents


STEPS = ["project", "project", "project", "project", "embed", "restart", "rebuild", "nothing", "nothing"]
"""What is done between pieces. A rebuild hides all that was wrong before it, so it is not done often."""


@st.composite
def deliveries(draw, contents):
    """The same bytes in pieces, each segment's in order, and what is done between them."""
    steps = []
    left = dict(contents)
    # Some in whole lines only: a cut one makes its stream be replayed, which would hide much.
    has_cuts = draw(st.booleans())
    while left:
        path = draw(st.sampled_from(sorted(left)))
        size = len(left[path].splitlines(keepends=True)[0])
        if has_cuts:
            size = draw(st.one_of(st.just(size), st.integers(1, 400)))
        steps.append((path, left[path][:size]))
        left[path] = left[path][size:]
        if not left[path]:
            del left[path]
        steps.append(draw(st.sampled_from(STEPS)))
    return steps


def deliver(store: Path, path: str, data: bytes) -> None:
    target = store / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("ab") as file:
        file.write(data)


class Letters:
    """Vectors that say which letters a text has. What is compared here is which passage has which vector; a
    model of language would take most of the test's time to say it no better."""

    id = "letters"
    dimension = 16

    def embed(self, texts):
        counts = np.array(
            [
                np.bincount([ord(each) % self.dimension for each in f" {text}"], minlength=16)
                for text in texts
            ],
            dtype=np.float32,
        )
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


CONVERSATION_TABLES = {
    "messages": ("message", "session_break"),
    "summaries": ("summary_written",),
    "extractions": ("extraction_completed",),
}
LETTERS = Letters() if why_no_vectors() is None else None


def embed(projector: Projector) -> None:
    if LETTERS:
        projector.embed(LETTERS)


def project_step_by_step(store: Path, steps) -> Projector:
    projector = Projector(store, model=lambda: LETTERS)
    for step in steps:
        if isinstance(step, tuple):
            deliver(store, *step)
        elif step == "project":
            projector.catch_up()
        elif step == "embed":
            projector.catch_up()
            embed(projector)
        elif step == "rebuild":
            projector.rebuild("a test")
        elif step == "restart":
            projector.catch_up()
            projector.close()
            projector = Projector(store, model=lambda: LETTERS)
    projector.catch_up()
    embed(projector)
    return projector


def project_at_once(store: Path) -> Projector:
    projector = Projector(store, model=lambda: LETTERS)
    projector.catch_up()
    embed(projector)
    return projector


def passage_vectors(projector: Projector):
    """What each vector is of; None where its passage is gone."""
    db = projector.live()
    owners = {
        passages.MEMORY: "stream, coalesce(memory_id, message_id, summary_id, document_id)",
        passages.DOCS: "stream, document_id",
    }
    return [
        db.execute(
            f"SELECT {owner}, chunk_index, embedding FROM {shelf.vectors} v"
            f" LEFT JOIN {shelf.chunks} c ON c.chunk_no = v.rowid ORDER BY 1, 2, 3, 4"
        ).fetchall()
        for shelf, owner in owners.items()
        if LETTERS
    ]


def check_rows(projector: Projector, contents) -> None:
    """The rows are those of the events told one after the other in their order."""
    db = projector.live()
    told, duplicates, conflicts = one_order.events_of(contents)
    assert rows(db, "SELECT stream, id FROM events") == sorted(
        (stream, event["id"]) for stream, events in told.items() for event in events
    )
    assert rows(db, "SELECT (SELECT count(*) FROM duplicates), (SELECT count(*) FROM conflicts)") == [
        (duplicates, conflicts)
    ]
    of_conversations = [event for stream in told if "/" in stream for event in told[stream]]
    for table, types in CONVERSATION_TABLES.items():
        expected = [(event["id"], event["ts"]) for event in of_conversations if event["type"] in types]
        assert rows(db, f"SELECT id, created_at FROM {table}") == sorted(expected)
    check_memories(db, one_order.memories(told.get("memory", [])))
    kept = rows(db, "SELECT id, event_date FROM daily_events")
    assert kept == sorted(
        (event["id"], event.get("event_date") or event["ts"][:10])
        for event in told.get("memory", [])
        if event["type"] == "daily_event_recorded"
    )
    core = {
        (section, key): value
        for section, key, value in rows(db, "SELECT section, key, value FROM core_memory")
    }
    assert core == one_order.core_memory(told.get("core", []))
    columns = "chat_id, topic_key, kind, rank, value"
    assert {row[:4]: row[4] for row in rows(db, f"SELECT {columns} FROM facts")} == one_order.facts(
        told.get("facts", [])
    )
    check_documents(db, *one_order.documents(told.get("documents", [])))


def check_memories(db, expected) -> None:
    for table, those in (
        ("memories", expected),
        ("memory_chunks", {name: row for name, row in expected.items() if row["archived_at"] is None}),
    ):
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        found = [dict(zip(columns, row, strict=True)) for row in db.execute(f"SELECT * FROM {table}")]
        found = {row["memory_id"]: row for row in found if row["memory_id"]}
        assert sorted(found) == sorted(those)
        for name, row in those.items():
            assert {key: found[name][key] for key in row if key in columns} == {
                key: value for key, value in row.items() if key in columns
            }


def check_documents(db, kinds, expected) -> None:
    assert dict(rows(db, "SELECT source_id, kind FROM sources")) == kinds
    found = rows(db, "SELECT document_id, content, kind FROM documents")
    assert {name: (content, kind) for name, content, kind in found} == expected
    for table, kind in (("memory_chunks", "memory"), ("doc_chunks", "docs")):
        on_shelf = rows(db, f"SELECT DISTINCT document_id FROM {table} WHERE document_id IS NOT NULL")
        assert [name for (name,) in on_shelf] == sorted(
            name for name, (content, its_kind) in expected.items() if its_kind == kind and content.strip()
        )


def rows(db, sql):
    return sorted(db.execute(sql).fetchall())


def answers(projector: Projector):
    results = [
        search(projector.live(), question, k=20, mode=mode, filters=Filters(), embedder=LETTERS)
        for question in QUESTIONS
        for mode in (["text", "hybrid"] if LETTERS else ["text"])
    ]
    return [msgspec.to_builtins(result.hits) for result in results]


def test_a_late_removal_of_a_source_leaves_newer_documents_where_those_of_no_source_stand(tmp_path):
    """A source of kind `memory` is gone, and a document that was indexed after that is one of kind `docs`."""
    at = "2026-02-26T09:00:00.000Z"
    registered = {"type": "source_registered", "source_id": "notes", "kind": "memory", "ts": TIMES[0]}
    removed = {"type": "source_removed", "source_id": "notes", "ts": TIMES[1]}
    indexed = {
        "type": "document_indexed",
        "source_id": "notes",
        "file": "a.md",
        "content": "tea",
        "ts": TIMES[2],
    }
    early = b"".join(draft(event | {"id": event["type"]}).line(at) for event in (registered, indexed))
    late = draft(removed | {"id": "removed"}).line(at)
    contents = {"log/documents/2026-02-24.jsonl": early, "log/documents/2026-02-25.jsonl": late}
    one = project_step_by_step(tmp_path / "one", list(contents.items()))
    other = project_step_by_step(tmp_path / "other", list(reversed(contents.items())))
    check_rows(one, contents)
    check_rows(other, contents)
    one.close()
    other.close()


def test_the_logs_are_drawn_from_all_types():
    assert set(TYPES) == DRAWN_TYPES


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_batches_give_the_read_model_of_one_replay(data):
    contents = data.draw(segments())
    steps = data.draw(deliveries(contents))
    with tempfile.TemporaryDirectory() as folder:
        stepwise = project_step_by_step(Path(folder, "stepwise"), steps)
        for path, whole in contents.items():
            deliver(Path(folder, "at-once"), path, whole)
        at_once = project_at_once(Path(folder, "at-once"))
        check_rows(at_once, contents)
        assert list(dump(stepwise.live())) == list(dump(at_once.live()))
        assert fulltext_digest(stepwise.live()) == fulltext_digest(at_once.live())
        assert passage_vectors(stepwise) == passage_vectors(at_once)
        assert answers(stepwise) == answers(at_once)
        assert verify(stepwise.live(), stepwise.log, stepwise.sizes).problems == []
        stepwise.close()
        at_once.close()

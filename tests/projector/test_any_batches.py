"""Law 2: any log, cut into any batches, with restarts, rebuilds and late lines, gives the read model of one
replay, and the same answers to the same questions, scores included."""

import tempfile
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memlog
from memlog.eventlog.draft import draft
from memlog.eventlog.events import TYPES
from memlog.projector.digest import dump, fulltext_digest
from memlog.projector.projector import Projector

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
ids = st.integers(0, 40).map("id-{}".format)
times = st.sampled_from(TIMES)


DRAWN_TYPES = set()


def event(tag, /, **members):
    DRAWN_TYPES.add(tag)
    return st.fixed_dictionaries({"type": st.just(tag), "id": ids, "ts": times} | members)


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
# Mostly of a few streams at a time: it is among the events of one stream that order matters.
logs = st.one_of(
    st.lists(st.one_of(EVENTS), min_size=3, max_size=25),
    st.lists(st.one_of([*conversations, redacted]), min_size=3, max_size=20),
    st.lists(st.one_of([saved, *memories, redacted]), min_size=3, max_size=20),
    st.lists(st.one_of([*facts, *core, redacted]), min_size=3, max_size=20),
    st.lists(st.one_of([*documents, redacted]), min_size=3, max_size=20),
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
    for event in draw(logs):
        made = draft(event)
        path = f"log/{made.stream}/{draw(st.sampled_from(DAYS))}.jsonl"
        contents[path] = contents.get(path, b"") + made.line("2026-02-26T09:00:00.000Z")
        if draw(st.integers(0, 5)) == 0:
            contents[path] += draw(foreign_lines)
    for path in contents:
        if draw(st.booleans()):
            # A writer was killed: before the newline, or within the line.
            contents[path] = contents[path][: -draw(st.sampled_from([1, 30]))]
    return contents


@st.composite
def deliveries(draw, contents):
    """The same bytes in pieces, each segment's in order, and what is done between them."""
    steps = []
    left = dict(contents)
    while left:
        path = draw(st.sampled_from(sorted(left)))
        # Mostly whole lines: a cut one makes its stream be replayed, which would hide much.
        lines = left[path].splitlines(keepends=True)
        size = draw(st.one_of(st.just(len(lines[0])), st.just(len(lines[0])), st.integers(1, 400)))
        steps.append((path, left[path][:size]))
        left[path] = left[path][size:]
        if not left[path]:
            del left[path]
        steps.append(draw(st.sampled_from(["project", "project", "restart", "rebuild", "nothing"])))
    return steps


def deliver(store: Path, path: str, data: bytes) -> None:
    target = store / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("ab") as file:
        file.write(data)


def project_step_by_step(store: Path, steps) -> Projector:
    projector = Projector(store)
    for step in steps:
        if isinstance(step, tuple):
            deliver(store, *step)
        elif step == "project":
            projector.catch_up()
        elif step == "rebuild":
            projector.rebuild("a test")
        elif step == "restart":
            projector.catch_up()
            projector.close()
            projector = Projector(store)
    projector.catch_up()
    return projector


def answers(store: Path):
    with memlog.open(store) as opened:
        results = [opened.search(question, mode="text", k=20) for question in QUESTIONS]
    return [msgspec.to_builtins(result.hits) for result in results]


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
        at_once = Projector(Path(folder, "at-once"))
        at_once.catch_up()
        assert list(dump(stepwise.live())) == list(dump(at_once.live()))
        assert fulltext_digest(stepwise.live()) == fulltext_digest(at_once.live())
        stepwise.close()
        at_once.close()
        assert answers(stepwise.store) == answers(at_once.store)

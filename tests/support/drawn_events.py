"""Events as hypothesis draws them: of all types, and of few things, so that they meet."""

from hypothesis import strategies as st

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
runs = st.sampled_from(["r1", "r2"])
streams = st.sampled_from(
    ["conversations/cli_1", "conversations/cli_2", "memory", "core", "facts", "documents"]
)
units = st.sampled_from([0.0, 0.1, 0.5, 0.7, 1.0])
categories = st.sampled_from(["other", "event"])
scopes = st.sampled_from([None, "cli:1"])
a_topic = {"topic_key": st.sampled_from(["city", "colors"]), "chat_id": scopes}
a_source = {"source_id": st.sampled_from(["notes", "docs"])}
a_file = a_source | {"file": st.sampled_from(["MEMORY.md", "guide/tea.md"])}
markdown = st.lists(st.sampled_from(["# Tea", "```sh", "```", "- run", *WORDS]), max_size=9).map("\n".join)

conversations = [
    event("message", **chat, role=st.sampled_from(["user", "assistant"]), content=texts, name=names),
    event(
        "message_updated",
        **chat,
        message_id=ids,
        content=texts,
        state=st.sampled_from([None, "current", "rewound"]),
    ),
    event("message_updated", **chat, message_id=ids, state=st.sampled_from(["current", "superseded"])),
    event("message_deleted", **chat, message_id=ids),
    event("chat_described", **chat, title=texts, labels=st.none() | st.lists(texts, max_size=2)),
    event("session_break", **chat, model=st.sampled_from([None, "x"])),
    event("summary_written", **chat, content=texts, from_message_id=st.none() | ids),
    event("extraction_completed", **chat, through_message_id=ids),
]
of_a_model = st.none() | st.builds(
    lambda name: {"id": name, "model": "small", "prompt": "extract-1", "message_ids": ["id-0"]}, ids
)
saved = event(
    "memory_saved",
    extraction=of_a_model,
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
    event("memory_archived", **a_memory, extraction=of_a_model),
    event("memories_merged", event_ids=st.lists(ids, min_size=1, max_size=2)),
    event("job_completed", job=st.just("daily"), period=st.sampled_from(DAYS)),
    event("memory_deleted", **a_memory),
    event("memory_accessed", memory_ids=some_memories),
    event(
        "context_given",
        chat_id=scopes,
        message_id=st.none() | ids,
        entries=st.lists(
            st.fixed_dictionaries({"part": st.just("fact"), "id": ids, "stream": st.just("facts")})
            | st.fixed_dictionaries({"part": st.just("memory"), "id": a_memory["memory_id"]}),
            max_size=2,
        ),
    ),
    event("salience_decayed", rates=st.dictionaries(categories, units, max_size=2)),
    event(
        "memories_extracted",
        chat_id=st.just("cli:1"),
        message_ids=st.lists(ids, min_size=1, max_size=2),
        model=st.just("small"),
        prompt=st.just("extract-1"),
    ),
    event(
        "events_imported",
        run=runs,
        format=st.just("jsonl"),
        path=st.just("/tea"),
        appended=st.dictionaries(streams, st.lists(ids, max_size=3), max_size=2),
    ),
    event(
        "import_undone",
        run=runs,
        kept=st.dictionaries(streams, st.lists(ids, max_size=1), max_size=1),
        derived=st.dictionaries(streams, st.lists(ids, max_size=2), max_size=1),
    ),
    event("change_undone", event_ids=st.lists(ids, min_size=1, max_size=3)),
    event(
        "model_failed",
        task=st.just("extract"),
        chat_id=st.just("cli:1"),
        event_ids=st.lists(ids, min_size=1, max_size=2),
        provider=st.just("p"),
        model=st.just("small"),
        kind=st.sampled_from(["refused", "late"]),
    ),
    event(
        "daily_event_recorded",
        summary=texts,
        extraction=of_a_model,
        event_date=st.none() | st.sampled_from(DAYS),
    ),
    event("daily_events_compressed", ids=st.lists(ids, min_size=1, max_size=2), memory_ids=some_memories),
]
core = [
    event("core_memory_updated", **keys, value=texts, extraction=of_a_model),
    event("core_memory_deleted", **keys),
    event(
        "profile_refreshed",
        event_ids=st.lists(ids, min_size=1, max_size=2),
        model=st.just("small"),
        prompt=st.just("profile-1"),
    ),
]
facts = [
    event("fact_stored", **a_topic, value=texts, source_message_id=st.sampled_from([None, "m1", "m2"])),
    event("fact_stored", **a_topic, value=texts, kind=st.just("ranked"), rank=st.integers(1, 2)),
    event(
        "fact_stored",
        **a_topic,
        value=texts,
        kind=st.just("ranked"),
        rank=st.just(1),
        rest=st.lists(texts, max_size=2),
    ),
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
several_redacted = event(
    "redacted", target_ids=st.lists(ids, min_size=1, max_size=3), stream=st.sampled_from(streams)
)
EVENTS = [*conversations, *memories, *core, *facts, *documents, redacted, several_redacted]
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
    event("fact_stored", **the_topic, value=texts, source_message_id=st.sampled_from([None, "m1", "m2"])),
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
    logs_of([*conversations, redacted, several_redacted]),
    logs_of([saved, *memories, redacted, several_redacted]),
    logs_of([*facts, *core, *documents, redacted, several_redacted]),
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

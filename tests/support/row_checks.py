"""Whether the rows of a read model are those that the plain telling of its log gives."""

from memlog.projector.lifecycle import Projector
from tests.support import one_order

CONVERSATION_TABLES = {
    "summaries": ("summary_written",),
    "extractions": ("extraction_completed",),
}


def check_rows(projector: Projector, contents) -> None:
    """The rows are those of the events told one after the other in their order."""
    db = projector.connect_to_live()
    told, duplicates, conflicts = one_order.events_of(contents)
    assert rows(db, "SELECT stream, id FROM events") == sorted(
        (stream, event["id"]) for stream, events in told.items() for event in events
    )
    assert rows(db, "SELECT (SELECT count(*) FROM duplicates), (SELECT count(*) FROM conflicts)") == [
        (duplicates, conflicts)
    ]
    told = one_order.without_hidden(told)
    of_conversations = [event for stream in told if "/" in stream for event in told[stream]]
    for table, types in CONVERSATION_TABLES.items():
        expected = [(event["id"], event["ts"]) for event in of_conversations if event["type"] in types]
        assert rows(db, f"SELECT id, created_at FROM {table}") == sorted(expected)
    messages = [
        (name, *message)
        for stream in told
        if "/" in stream
        for name, message in one_order.messages(told[stream]).items()
    ]
    breaks = [
        (each["id"], each["ts"], "", "current")
        for each in of_conversations
        if each["type"] == "session_break"
    ]
    assert rows(
        db,
        "SELECT id, created_at, content, 'current' FROM messages"
        " UNION ALL SELECT id, created_at, content, state FROM withdrawn_messages",
    ) == sorted([*messages, *breaks])
    told = told | {name: one_order.release_closed(told.get(name, [])) for name in ("memory", "core")}
    check_memories(db, one_order.memories(told["memory"]))
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
    check_passages(db, told)
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


def check_passages(db, told) -> None:
    """What is searched of facts and daily events is what stands of them."""
    found = rows(
        db, "SELECT coalesce(chat_id, ''), source, content FROM memory_chunks WHERE fact_id NOT NULL"
    )
    assert found == sorted(
        (chat, "fact", f"{topic}{f' {rank}' if rank else ''}: {value}")
        for (chat, topic, _, rank), value in one_order.facts(told.get("facts", [])).items()
    )
    columns = "daily_event_id, label, updated_at, content"
    assert rows(db, f"SELECT {columns} FROM memory_chunks WHERE daily_event_id NOT NULL") == sorted(
        (event["id"], day, f"{day}T00:00:00.000Z", event["summary"])
        for event in told.get("memory", [])
        if event["type"] == "daily_event_recorded" and event.get("summary", "").strip()
        for day in [event.get("event_date") or event["ts"][:10]]
    )


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

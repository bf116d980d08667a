"""The schema: its columns and indexes, what holds rows together, and the vector tables."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

import memlog
from memlog.eventlog.errors import DatabaseError
from memlog.eventlog.events import (
    DailyEventRecorded,
    DocumentIndexed,
    FactStored,
    MemorySaved,
    Message,
    SourceRegistered,
    SummaryWritten,
)
from memlog.projector import catchup, schema, subjects, verify
from memlog.projector.lifecycle import Projector
from memlog.projector.passages import fulltext, index
from memlog.projector.sqlite import connect, error_types_of_binding

COLUMNS = {
    "messages": "id channel chat_id role type name content metadata created_at",
    "memories": "memory_id title content category kind importance salience access_count last_accessed"
    " created_at updated_at",
    "memory_chunks": "memory_id message_id summary_id fact_id daily_event_id document_id chunk_index source"
    " chat_id section content start_char end_char created_at updated_at",
    "doc_chunks": "file section content version start_char end_char start_line end_line",
    "sessions": "channel chat_id model session_start created_at",
    "summaries": "channel chat_id from_message_id to_message_id position created_at",
}
INDEXES = {
    "messages": [("channel", "chat_id", "created_at DESC")],
    "memories": [("category",), ("salience",), ("updated_at",)],
}


@pytest.fixture(scope="module")
def projected(tmp_path_factory):
    """A store with one of each thing that has passages, and all vectors."""
    with memlog.open(tmp_path_factory.mktemp("projected")) as store:
        store.append(
            [
                Message(channel="cli", chat_id="1", role="user", content="tea", id="m1"),
                SummaryWritten(channel="cli", chat_id="1", content="They spoke of tea.", id="s1"),
                MemorySaved(content="likes tea", memory_id="m"),
                FactStored(topic_key="tea", value="sencha"),
                DailyEventRecorded(summary="Tea was had."),
                SourceRegistered(source_id="notes", kind="memory"),
                DocumentIndexed(source_id="notes", file="MEMORY.md", content="green tea"),
                DocumentIndexed(source_id="docs", file="tea.md", content="black tea"),
            ]
        )
        store.maintenance.project()
    return store.path


@pytest.fixture
def db(projected, tmp_path):
    """The read model of a copy of it."""
    projector = Projector(shutil.copytree(projected, tmp_path / "store"))
    yield projector.connect_to_live()
    projector.close()


def numbers(db, table):
    return {number for (number,) in db.execute(f"SELECT * FROM {table}")}


def test_a_table_has_at_least_these_columns(db):
    for table, columns in COLUMNS.items():
        found = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
        assert set(columns.split()) <= found, table


def test_a_table_has_these_indexes(db):
    for table in INDEXES:
        found = set()
        for _, name, *_ in db.execute(f"PRAGMA index_list({table})").fetchall():
            keys = [row for row in db.execute(f"PRAGMA index_xinfo({name})") if row[5]]
            found.add(tuple(f"{column} DESC" if is_down else column for _, _, column, is_down, *_ in keys))
        # What follows serves the one order among messages of one time.
        assert all(any(each[: len(index)] == index for each in found) for index in INDEXES[table]), table


def test_messages_have_rowids(db):
    (options,) = [row for row in db.execute("PRAGMA table_list") if row[1] == "messages"]
    assert options[4] == 0, "WITHOUT ROWID"


def test_a_chunk_goes_with_what_it_is_of(db):
    assert db.execute("PRAGMA foreign_keys").fetchone() == (1,)
    owners = {
        "memories": "memory_id IS NOT NULL",
        "messages": "message_id IS NOT NULL",
        "summaries": "summary_id IS NOT NULL",
        "facts": "fact_id IS NOT NULL",
        "daily_events": "daily_event_id IS NOT NULL",
        "documents": "document_id IS NOT NULL",
    }
    for owner, chunks in owners.items():
        assert db.execute(f"SELECT count(*) FROM memory_chunks WHERE {chunks}").fetchone() == (1,)
        db.execute(f"DELETE FROM {owner}")
        assert db.execute(f"SELECT count(*) FROM memory_chunks WHERE {chunks}").fetchone() == (0,)
    assert db.execute("SELECT count(*) FROM doc_chunks").fetchone() == (0,)


OWNERS = ["message_id", "memory_id", "summary_id", "fact_id", "daily_event_id", "document_id"]


def is_refused(db, change):
    try:
        db.execute(change)
    except error_types_of_binding() as error:
        return "CHECK constraint" in str(error)
    return False


def test_a_chunk_is_of_one_thing(db):
    for owner in OWNERS:
        assert is_refused(db, f"UPDATE memory_chunks SET {owner} = NULL"), owner
        assert is_refused(db, f"UPDATE memory_chunks SET {owner} = 'also' WHERE {owner} IS NULL"), owner


def test_no_row_is_beyond_its_limits(db):
    for change in (
        "UPDATE messages SET role = 'robot'",
        "UPDATE memories SET salience = 1.1",
        "UPDATE memories SET salience = -0.1",
        "UPDATE memories SET importance = 1.1",
        "UPDATE memories SET importance = -0.1",
    ):
        assert is_refused(db, change), change


def test_a_rebuild_with_a_row_that_refers_to_nothing_is_refused(tmp_path, monkeypatch):
    caught_up = catchup.catch_up

    def faulty(db, *args, **more):
        report = caught_up(db, *args, **more)
        db.execute("INSERT INTO memory_chunks_queue VALUES (12345)")
        return report

    monkeypatch.setattr(catchup, "catch_up", faulty)
    projector = Projector(tmp_path)
    with pytest.raises(DatabaseError, match=r"memory_chunks_queue refers to a row of memory_chunks"):
        projector.catch_up()
    assert projector.generations.find_live_file() is None


@pytest.mark.parametrize(
    ("key", "order"),
    [("stream TEXT, PRIMARY KEY (stream, id)", "cab"), ("stream TEXT, no INTEGER PRIMARY KEY", "abc")],
)
def test_a_new_table_is_in_the_digest_and_is_cleared_with_its_stream(monkeypatch, key, order):
    text = f"{schema.read_schema()}CREATE TABLE notes (id TEXT NOT NULL, {key});"
    monkeypatch.setattr(schema, "read_schema", lambda: text)
    with closing(connect(None, "bulk")) as db:
        schema.create_tables(db)
        notes = [("b", "memory"), ("a", "memory"), ("c", "core")]
        db.executemany("INSERT INTO notes (id, stream) VALUES (?, ?)", notes)
        rows = {name: f'{{"id":"{name}","stream":"{stream}"}}' for name, stream in notes}
        assert list(verify.dump_tables(db))[-4:] == ["# notes", *(rows[name] for name in order)]
        subjects.clear_stream(db, "memory")
        assert list(verify.dump_tables(db))[-2:] == ["# notes", rows["c"]]


def test_every_table_that_a_list_of_ours_names_stands_in_the_schema():
    named = {*verify._LEFT_OUT, *verify._ORDERS, *verify._ABOUT_BYTES, *subjects._ONLY_STREAM_OF}
    assert set(schema.list_tables()) >= named


def test_every_full_text_table_is_in_the_digest_of_the_full_text():
    virtual = [
        text.split()[3] for text in schema.list_statements() if text.startswith("CREATE VIRTUAL TABLE")
    ]
    assert virtual == list(fulltext.TABLES) == list(verify._ENTRIES)


def test_clearing_a_conversation_reads_no_table_whole(db):
    """Else clearing many would be quadratic."""
    of_streams = [name for name, table in schema.list_tables().items() if "stream" in table.columns]
    assert len(of_streams) > 20
    plans = {
        name: db.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {name} WHERE stream = 'x'").fetchall()
        for name in of_streams
        if name not in subjects._CLEARED_BEFORE
    }
    read_whole = [name for name, plan in plans.items() if plan[0][3].startswith("SCAN")]
    assert sorted(read_whole) == sorted(subjects._ONLY_STREAM_OF)


def test_what_a_handler_changes_is_found_without_reading_all_while_a_rebuild_loads(tmp_path):
    path = tmp_path / "new.db"
    path.touch()
    db = connect(path, "bulk")
    schema.create_tables(db)
    for changed in (
        "memory_chunks WHERE memory_id",
        "memory_chunks WHERE fact_id",
        "memory_chunks WHERE document_id",
        "doc_chunks WHERE document_id",
        "documents WHERE source_id",
    ):
        plan = db.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {changed} = ?", ("x",)).fetchall()
        assert [row[3].split()[0] for row in plan] == ["SEARCH"], changed
    db.close()


@pytest.mark.parametrize("shelf", index.SHELVES, ids=lambda shelf: shelf.chunks)
def test_vectors_go_in_the_transaction_of_their_chunks(db, shelf):
    other = connect(Path(db.execute("PRAGMA database_list").fetchone()[2]), "write")
    vectors, chunks = f"(SELECT rowid FROM {shelf.vectors})", f"(SELECT chunk_no FROM {shelf.chunks})"
    before = numbers(other, vectors)
    assert before == numbers(other, chunks) != set()
    db.execute("BEGIN")
    index.remove_passages(db, shelf, "1", ())
    assert numbers(other, vectors) == before
    db.execute("ROLLBACK")
    assert numbers(db, vectors) == numbers(db, chunks) == before
    db.execute("BEGIN")
    index.remove_passages(db, shelf, "1", ())
    db.execute("COMMIT")
    assert numbers(other, vectors) == numbers(other, chunks) == set()
    other.close()


def test_what_is_deleted_leaves_no_vector(tmp_path):
    with memlog.open(tmp_path) as store:
        store.append([MemorySaved(content="likes tea", memory_id="m")])
        store.maintenance.project()
        store.append([{"type": "memory_deleted", "memory_id": "m"}])
        assert store.search("tea", mode="vector").hits == []
        assert (store.maintenance.verify().vectors, store.maintenance.verify().problems) == (0, [])


def test_vectors_stand_in_vec0_tables_of_the_models_dimension(db, embedder):
    for table in ["vec_memory", "vec_docs"]:
        (sql,) = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        assert sql.startswith(f"CREATE VIRTUAL TABLE {table} USING vec0"), table
        assert f"embedding float[{embedder.dimension}]" in sql, table
        (size,) = db.execute(f"SELECT length(embedding) FROM {table} LIMIT 1").fetchone()
        assert size == embedder.dimension * 4, table


def test_a_statement_waits_five_seconds_for_another_connection(db):
    assert db.execute("PRAGMA busy_timeout").fetchone() == (5000,)

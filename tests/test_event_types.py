"""What every event type must have: a type that is added without one of these makes a test fail."""

import json
import os
from pathlib import Path
from shutil import copytree
from typing import Any, NamedTuple

import memlog
from memlog.eventlog.events import TYPES
from memlog.projector.verify import dump_tables
from tests.support.drawn_events import DRAWN_TYPES
from tests.support.forked_memlog import run_memlog
from tests.support.places import FIXTURES

TS = "2026-02-24T08:00:00.000Z"

STANDING: list[dict[str, Any]] = [
    {"type": "message", "id": "m1", "channel": "cli", "chat_id": "1", "role": "user", "content": "Tea?"},
    {"type": "memory_saved", "id": "v1", "memory_id": "tea", "content": "Anna drinks tea"},
    {"type": "daily_event_recorded", "id": "e1", "summary": "Tea for twelve"},
    {"type": "core_memory_updated", "id": "k1", "section": "user", "key": "name", "value": "Anna"},
    {"type": "fact_stored", "id": "f1", "topic_key": "city", "value": "Helsinki"},
    {"type": "source_registered", "id": "r1", "source_id": "guide", "root": "guide"},
    {"type": "document_indexed", "id": "i1", "source_id": "guide", "file": "tea.md", "content": "# Tea"},
]
"""What stands before the event of the table is appended."""


class Told(NamedTuple):
    """An event as options of `memlog append TYPE`, and the tables whose rows it changes, but for `events`."""

    options: str
    tables: str


TABLE = {
    "message": Told("--chat cli:1 --role user --content coffee", "messages memory_chunks"),
    "message_updated": Told(
        "--chat cli:1 --message-id m1 --content coffee", "message_changes messages memory_chunks"
    ),
    "message_deleted": Told(
        "--chat cli:1 --message-id m1", "message_changes messages withdrawn_messages memory_chunks"
    ),
    "chat_described": Told("--chat cli:1 --title Tea", "chat_descriptions"),
    "session_break": Told("--chat cli:1 --model small", "messages"),
    "summary_written": Told("--chat cli:1 --content coffee", "summaries memory_chunks"),
    "extraction_completed": Told("--chat cli:1 --through-message-id m1", "extractions"),
    "model_failed": Told(
        "--task extract --chat cli:1 --event-id m1 --provider p --model small --kind refused",
        "model_failures",
    ),
    "memory_saved": Told("--content coffee", "versions memory_events memories memory_chunks"),
    "memory_updated": Told(
        "--memory-id tea --content coffee", "versions memory_events memories memory_chunks"
    ),
    "memories_extracted": Told(
        "--chat cli:1 --message-id m1 --model small --prompt extract-1",
        "closed_extractions extracted_messages",
    ),
    "memories_merged": Told("--event-id tea1", "closed_extractions compared_contents"),
    "job_completed": Told("--job daily --period 2026-11-26", "job_runs"),
    "memory_archived": Told("--memory-id tea", "versions memory_events memories memory_chunks"),
    "change_undone": Told("--event-id v1", "undone_events memories memory_chunks"),
    "memory_deleted": Told("--memory-id tea", "versions tombstones memory_events memories memory_chunks"),
    "memory_accessed": Told("--memory-id tea", "memory_events memories"),
    "context_given": Told(
        '--chat cli:1 --message-id m1 --tokens {"core":3}', "contexts_given named_in_contexts"
    ),
    "salience_decayed": Told('--rates {"other":0.5}', "decays memories"),
    "daily_event_recorded": Told("--summary coffee", "daily_events memory_chunks"),
    "daily_events_compressed": Told(
        "--daily-event e1 --memory-id tea", "daily_compressions daily_distillates"
    ),
    "core_memory_updated": Told("--section user --key name --value Dmitri", "core_values"),
    "profile_refreshed": Told(
        "--event-id tea1 --model small --prompt profile-1", "closed_extractions compared_contents"
    ),
    "core_memory_deleted": Told("--section user --key name", "core_values tombstones"),
    "fact_stored": Told("--topic-key teas --rank 1 --value sencha", "facts memory_chunks"),
    "fact_removed": Told("--topic-key city", "facts memory_chunks tombstones"),
    "source_registered": Told("--source-id other --kind memory", "sources"),
    "source_removed": Told("--source-id guide", "sources documents doc_chunks tombstones"),
    "document_indexed": Told("--source-id guide --file tea.md --content coffee", "documents doc_chunks"),
    "document_removed": Told("--source-id guide --file tea.md", "documents doc_chunks tombstones"),
    "events_imported": Told(
        '--run r1 --of-format jsonl --path /tea --appended {"memory":["v1"]}', "imported_events"
    ),
    "import_undone": Told(
        '--run r1 --derived {"memory":["v1"]}',
        "undone_imports hidden_events versions memory_events memories memory_chunks",
    ),
    "redacted": Told("--target-id m1 --reason why", "redactions messages memory_chunks"),
}


def run(store: Path, *args: str, input: bytes = b"") -> bytes:
    """What `memlog` prints, run as a process on `store`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMLOG_", "XDG_"))}
    env = kept | {"MEMLOG_STORE": str(store)}
    done = run_memlog(*args, input=input, env=env)
    done.check_returncode()
    return done.stdout


def tables(store: Path) -> dict[str, list[str]]:
    """The rows of each table."""
    with memlog.open(store) as opened:
        opened.maintenance.digest()
        found: dict[str, list[str]] = {}
        for line in dump_tables(opened._engine.read_model.projector.connect_to_live()):
            if line.startswith("# "):
                found[line[2:]] = rows = []
            else:
                rows.append(line)
    return found


def test_the_table_names_every_type() -> None:
    assert list(TABLE) == list(TYPES)


def test_every_type_is_appended_by_options_and_by_pipe_projected_and_shown(tmp_path: Path) -> None:
    """In copies of a store in which something stands of all that an event can change."""
    standing = tmp_path / "standing"
    with memlog.open(standing) as opened:
        opened.append([event | {"ts": TS} for event in STANDING])
    before = tables(standing)

    for tag, told in TABLE.items():
        store, other = (copytree(standing, tmp_path / tag / name) for name in ("one", "other"))
        position = json.loads(run(store, "append", tag, "--id", "new", *told.options.split()))
        path = store / "log" / position["stream"] / position["segment"]
        line = path.read_bytes()[position["offset"] :].partition(b"\n")[0]
        assert json.loads(line)["type"] == tag

        after = tables(store)
        assert [row for row in after["events"] if f'"type":"{tag}","ts"' in row and '"id":"new"' in row], tag
        changed = {name for name, rows in after.items() if rows != before[name]}
        assert changed == {"events", *told.tables.split()}, tag

        assert line in run(store, "show", "new"), tag

        assert json.loads(run(other, "append", input=line))["id"] == "new", tag
        with memlog.open(store) as one, memlog.open(other) as two:
            assert one.maintenance.digest(content=True) == two.maintenance.digest(content=True), tag


def test_every_type_stands_in_a_fixture_log_with_a_snapshot() -> None:
    logs = b"".join(path.read_bytes() for path in FIXTURES.glob("*/log/**/*.jsonl"))
    assert [tag for tag in TYPES if f'{{"type":"{tag}"'.encode() not in logs] == []


def test_every_type_is_drawn_by_the_property_test() -> None:
    assert set(TYPES) <= DRAWN_TYPES

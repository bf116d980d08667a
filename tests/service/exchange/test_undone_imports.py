"""Imports that are undone: nothing of them counts, and a later import brings back exactly what it meets."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from shutil import copy2

import pytest
from msgspec.structs import asdict

import memlog
from tests.service.exchange.test_imports import MADE
from tests.support.agent_samples import opencode
from tests.support.places import FIXTURES


@pytest.fixture
def store(tmp_path: Path) -> Iterator[memlog.Store]:
    with memlog.open(tmp_path / "store", create=True, notify=lambda _: None) as store:
        yield store


def seen(store: memlog.Store) -> list[object]:
    """Return what reads of every kind show."""
    chats = [each.chat for each in store.conversations.sessions()]
    return [
        {
            name: count
            for name, count in asdict(store.maintenance.stats()).items()
            if not name.endswith("_bytes")
        },
        store.memories.list(),
        store.core.get(),
        store.facts.list(),
        store.daily.list(),
        store.conversations.sessions(),
        [store.conversations.window(chat, last=100, across_sessions=True) for chat in dict.fromkeys(chats)],
        store.search("teapot tea", mode="text", k=50).hits,
    ]


SOURCES: dict[str, Callable[[Path], Path]] = {
    **{name: make for name, (make, _, _) in MADE.items()},
    "claude-code": lambda _: FIXTURES / "importers/claude-code",
    "codex": lambda _: FIXTURES / "importers/codex",
    "pi": lambda _: FIXTURES / "importers/pi",
    "gemini-cli": lambda _: FIXTURES / "importers/gemini-cli",
    "opencode": lambda folder: opencode(folder / "opencode"),
}


@pytest.mark.parametrize("format", SOURCES)
def test_an_undone_import_leaves_nothing_and_can_be_repeated(
    store: memlog.Store, tmp_path: Path, format: str
) -> None:
    source = SOURCES[format](tmp_path)
    store.memories.save("Boris drinks coffee", memory_id="boris")
    store.append(memlog.Message(channel="cli", chat_id="1", role="user", content="Tea, please"))
    before = seen(store)
    first = store.exchange.import_from(format, [source])
    after = seen(store)
    assert first.appended
    assert after != before
    undone = store.erasure.undo_import(str(first.run))
    assert undone.done
    assert seen(store) == before
    again = store.exchange.import_from(format, [source])
    assert (again.appended, again.restored) == (0, first.appended + first.updated)
    assert seen(store) == after
    assert store.exchange.import_from(format, [source]).run is None
    assert store.maintenance.verify().problems == []


def lines(folder: Path, name: str, *texts: str) -> Path:
    """Write messages of one chat for `jsonl`, each with an id of its own."""
    path = folder / name
    chat = {"channel": "lab", "chat_id": "7", "role": "user"}
    rows = [
        {"id": text.partition(" ")[0], "ts": "2026-02-24T08:00:00Z", "content": text} | chat for text in texts
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "map.toml").write_text(
        '[message]\nchannel = "channel"\nchat_id = "chat_id"\ncontent = "content"\nid = "id"\nts = "ts"\n'
        '[message.role]\nfrom = "role"\nuser = "user"\n'
    )
    return path


def window(store: memlog.Store) -> list[str]:
    return [each.content for each in store.conversations.window("lab:7", last=100).messages]


def test_what_another_source_has_met_is_undone_only_on_request(store: memlog.Store, tmp_path: Path) -> None:
    map = tmp_path / "map.toml"
    one, two = lines(tmp_path, "one", "a tea", "b milk"), lines(tmp_path, "two", "b milk", "c cups")
    first = store.exchange.import_from("jsonl", [one], map=map).run
    second = store.exchange.import_from("jsonl", [two], map=map).run
    with pytest.raises(memlog.BadInput, match=str(second)) as refused:
        store.erasure.undo_import(str(first))
    assert "anyway" in str(refused.value.hint)
    assert window(store) == ["a tea", "b milk", "c cups"]
    assert store.erasure.undo_import(str(first), anyway=True).events == 2
    assert window(store) == ["c cups"]
    # What a later import meets comes back, and nothing else.
    again = store.exchange.import_from("jsonl", [two], map=map)
    assert (again.appended, again.restored, again.known) == (0, 1, 1)
    assert window(store) == ["b milk", "c cups"]
    with pytest.raises(memlog.BadInput, match="before"):
        store.erasure.undo_import(str(first))


def test_what_a_person_changed_stays_and_what_was_derived_leaves(store: memlog.Store, tmp_path: Path) -> None:
    run = store.exchange.import_from(
        "jsonl", [lines(tmp_path, "one", "a tea", "b milk", "c cups")], map=tmp_path / "map.toml"
    ).run
    own = {"channel": "lab", "chat_id": "7"}
    ids = [f"jsonl/lab:7/{name}" for name in "ab"]
    store.append(memlog.MessageUpdated(message_id=ids[0], content="green tea", **own))
    origin = memlog.Extraction("x1", "m", "p", message_ids=[ids[1]], chat_id="lab:7")
    merged = memlog.Extraction("x2", "m", "p", memory_ids=["milk", "boris"])
    store.memories.save("Boris takes cream", memory_id="boris")
    store.append(
        [
            memlog.MemorySaved(memory_id="milk", content="Anna takes milk", extraction=origin),
            memlog.MemoriesExtracted(id="x1", chat_id="lab:7", message_ids=[ids[1]], model="m", prompt="p"),
            memlog.MemorySaved(memory_id="both", content="Both take something white", extraction=merged),
            memlog.MemoryArchived(memory_id="boris", extraction=merged),
            memlog.MemoriesMerged(id="x2", event_ids=["none"], model="m", prompt="p"),
        ]
    )
    assert {each.memory_id for each in store.memories.list()} == {"milk", "both"}
    done = store.erasure.undo_import(str(run))
    assert (done.events, done.kept) == (2, [ids[0]])
    assert window(store) == ["green tea"]
    assert {each.memory_id for each in store.memories.list()} == {"boris"}
    assert store.maintenance.verify().problems == []


def test_what_was_erased_is_not_imported_again(store: memlog.Store, tmp_path: Path) -> None:
    source, map = lines(tmp_path, "one", "a tea", "b milk"), tmp_path / "map.toml"
    run = store.exchange.import_from("jsonl", [source], map=map).run
    assert store.erasure.undo_import(str(run), erase=True).erased
    again = store.exchange.import_from("jsonl", [source], map=map)
    assert (again.forgotten, again.restored, again.appended) == (2, 0, 0)
    assert store.erasure.scrub().lines == 2


def test_an_older_copy_brings_back_no_newer_change(store: memlog.Store, tmp_path: Path) -> None:
    source = MADE["tiered"][0](tmp_path)
    store.exchange.import_from("tiered", [source])
    older = copy2(source, tmp_path / "older.db")
    before = seen(store)
    with closing(sqlite3.connect(source)) as db, db:
        db.execute("UPDATE memories SET content = 'We order gyokuro now', updated_at = '2026-03-01 10:00:00'")
    run = store.exchange.import_from("tiered", [source]).run
    assert seen(store) != before
    store.erasure.undo_import(str(run))
    store.exchange.import_from("tiered", [older])
    assert seen(store) == before


def test_another_text_of_an_undone_record_is_imported(store: memlog.Store, tmp_path: Path) -> None:
    source, map = lines(tmp_path, "one", "a tea"), tmp_path / "map.toml"
    store.erasure.undo_import(str(store.exchange.import_from("jsonl", [source], map=map).run))
    source.write_text(source.read_text().replace("a tea", "a green tea"))
    store.exchange.import_from("jsonl", [source], map=map)
    assert window(store) == ["a green tea"]
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "MEMORY.md").write_text("## User\n\n- City: Turku\n\n## Tea\n\n- We order sencha.\n")
    store.erasure.undo_import(str(store.exchange.import_from("memory-folder", [notes]).run))
    (notes / "MEMORY.md").write_text("## User\n\n- City: Oulu\n\n## Tea\n\n- We order oolong.\n- Gyokuro.\n")
    report = store.exchange.import_from("memory-folder", [notes])
    assert (report.appended, report.refused) == (3, 0)
    assert store.core.get().user == {"city": "Oulu"}
    assert {each.content for each in store.memories.list()} == {"We order oolong.", "Gyokuro."}
    assert store.exchange.import_from("memory-folder", [notes]).known == 3
    assert store.maintenance.verify().problems == []


def test_an_undone_import_can_be_erased_and_a_met_event_stays_met(
    store: memlog.Store, tmp_path: Path
) -> None:
    map = tmp_path / "map.toml"
    one, two = lines(tmp_path, "one", "a tea"), lines(tmp_path, "two", "a tea", "b milk")
    first = str(store.exchange.import_from("jsonl", [one], map=map).run)
    store.erasure.undo_import(str(store.exchange.import_from("jsonl", [two], map=map).run))
    second = str(store.exchange.import_from("jsonl", [two], map=map).run)
    with pytest.raises(memlog.BadInput, match=second):
        store.erasure.undo_import(first)
    store.erasure.undo_import(second)
    own = {"channel": "lab", "chat_id": "7", "id": "jsonl/lab:7/b"}
    (position,) = store.append(memlog.Message(role="user", content="b milk", **own))
    assert [each.code for each in position.warnings] == ["undone"]
    assert store.erasure.undo_import(second, erase=True).events == 1
    assert store.exchange.import_from("jsonl", [two], map=map).forgotten == 1


@pytest.mark.parametrize("file", ["notes.md", "MEMORY.md", "2026_02_03.md"])
def test_an_edit_that_was_undone_comes_back_with_the_next_import(
    store: memlog.Store, tmp_path: Path, file: str
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    heading = "## User\n\n" if file == "MEMORY.md" else "# T\n\n"
    text = heading + "- City: Turku\n- Name: Anna\n- Job: cook\n"
    (notes / file).write_text(text)
    store.exchange.import_from("memory-folder", [notes])
    before = seen(store)
    (notes / file).write_text(text.replace("Turku", "Oulu"))
    edited = store.exchange.import_from("memory-folder", [notes])
    after = seen(store)
    again = store.exchange.import_from("memory-folder", [notes])
    assert (again.run, again.changed, again.problems) == (None, 0, [])
    store.erasure.undo_import(str(edited.run))
    assert seen(store) == before
    store.exchange.import_from("memory-folder", [notes])
    assert seen(store) == after
    assert store.exchange.import_from("memory-folder", [notes]).run is None

"""A source of documents is refreshed only by the copy of the store that registered it."""

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import memlog
from memlog import BadInput


class World(NamedTuple):
    """A store with a source, a copy of the store, and the folder of the source, which has since changed."""

    store: Path
    copy: Path
    notes: Path


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path / "store", tmp_path / "copy", tmp_path / "notes")
    found.notes.mkdir()
    (found.notes / "tea.md").write_text("green tea\n")
    (found.notes / "train.md").write_text("the train\n")
    with memlog.open(found.store) as store:
        store.documents.add(found.notes)
    shutil.copytree(found.store, found.copy)
    (found.notes / "tea.md").write_text("black tea\n")
    (found.notes / "train.md").unlink()
    return found


def log_of(store: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (store / "log").rglob("*.jsonl")}


def files(store: Path) -> list[str]:
    with memlog.open(store) as opened:
        return [document.file for document in opened.documents.list("notes")]


def _refresh(store: memlog.Store, notes: Path) -> list[str | None]:
    return [each.registered_by for each in store.documents.refresh()]


def _add(store: memlog.Store, notes: Path) -> list[str | None]:
    return [store.documents.add(notes).registered_by]


def _watch(store: memlog.Store, notes: Path) -> list[str | None]:
    store.maintenance.watch(once=True, stop=threading.Event(), tell=lambda _: None)
    return [each.registered_by for each in store.documents.refresh("notes")]


@pytest.mark.parametrize("bring_up", [_refresh, _add, _watch])
def test_another_copy_skips_the_source_and_its_documents_stay(
    world: World, bring_up: Callable[[memlog.Store, Path], list[str | None]]
) -> None:
    before = log_of(world.copy)
    with memlog.open(world.copy) as copy:
        (writer,) = bring_up(copy, world.notes)
    assert writer in str([*before])
    assert log_of(world.copy) == before
    assert files(world.copy) == ["tea.md", "train.md"]


def test_watching_says_which_sources_another_copy_refreshes(world: World) -> None:
    notes: list[str] = []
    with memlog.open(world.copy, notify=notes.append) as copy:
        stop = threading.Event()
        thread = threading.Thread(target=lambda: copy.maintenance.watch(stop=stop, tell=lambda _: None))
        thread.start()
        for _ in range(600):
            if any("docs add FOLDER --source notes" in note for note in notes):
                break
            stop.wait(0.1)
        stop.set()
        thread.join()
    assert sum("another copy" in note for note in notes) == 1
    assert files(world.copy) == ["tea.md", "train.md"]


def test_the_copy_that_registered_it_goes_on(world: World) -> None:
    with memlog.open(world.store) as store:
        (added,) = store.documents.refresh()
    assert (added.indexed, added.removed, added.registered_by) == (1, 1, None)


def test_a_copy_that_names_the_source_claims_it_also_at_another_path(world: World, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    world.notes.rename(moved)
    with memlog.open(world.copy) as copy:
        added = copy.documents.add(moved, source="notes")
        assert (added.registered, added.indexed, added.removed) == (True, 1, 1)
        before = log_of(world.copy)
        assert copy.documents.refresh()[0].registered_by is None
    assert log_of(world.copy) == before
    shutil.copytree(world.copy / "log", world.store / "log", dirs_exist_ok=True)
    with memlog.open(world.store) as store:
        (there,) = store.documents.refresh()
    assert there.registered_by is not None, "the origin leaves the source to the copy that claimed it"


def test_another_copy_removes_no_single_document_and_may_remove_the_source(world: World) -> None:
    with memlog.open(world.copy) as copy:
        with pytest.raises(BadInput, match="another copy") as refused:
            copy.documents.remove("notes/tea.md")
        assert "source='notes'" in refused.value.hint
        assert copy.documents.remove("notes")
        assert copy.documents.list() == []


def test_a_source_of_an_older_memlog_is_claimed_by_its_first_refresh(tmp_path: Path) -> None:
    notes, log = tmp_path / "notes", tmp_path / "store/log/documents"
    notes.mkdir()
    log.mkdir(parents=True)
    (notes / "tea.md").write_text("green tea\n")
    said = {
        "type": "source_registered",
        "source_id": "notes",
        "root": str(notes),
        "ts": "2026-02-24T10:00:00Z",
    }
    (log / "2026-02-24.jsonl").write_text(json.dumps(said) + "\n")
    with memlog.open(tmp_path / "store") as store:
        (first,) = store.documents.refresh()
        assert (first.registered, first.indexed) == (True, 1)
        before = log_of(tmp_path / "store")
        (second,) = store.documents.refresh()
    assert (second.registered, second.indexed, second.unchanged) == (False, 0, 1)
    assert log_of(tmp_path / "store") == before
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    with memlog.open(tmp_path / "copy") as copy:
        assert copy.documents.refresh()[0].registered_by is not None

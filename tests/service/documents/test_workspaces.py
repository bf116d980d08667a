"""Workspaces: an agent's notes are memories, and its USER.md is core memory."""

import json
import shutil

import pytest

import memlog


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "agent"
    (folder / "memory/deep").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Tea\n\nlikes green tea\n")
    (folder / "memory/2026-02-24.md").write_text("took the train to Turku\n")
    (folder / "memory/deep/old.md").write_text("green and not read\n")
    (folder / "memory/notes.txt").write_text("green and not read\n")
    (folder / "USER.md").write_text("name: Anna\nlocation: Turku\n")
    (folder / "README.md").write_text("green and not read\n")
    return folder


def found(store, text):
    return [(hit.kind, hit.source) for hit in store.search(text, mode="text").hits]


def event_count(store):
    return sum(path.read_bytes().count(b"\n") for path in (store.path / "log").rglob("*.jsonl"))


def test_notes_are_found_as_memories_with_their_file_as_source(store, workspace):
    added = store.workspaces.add(workspace)
    assert (added.source_id, added.found, added.indexed, added.skipped) == ("agent", 2, 2, [])
    assert found(store, "green") == [("memory", "MEMORY.md")]
    assert found(store, "train") == [("memory", "memory/2026-02-24.md")]
    assert found(store, "Anna") == [("memory", "core")]  # which USER.md has set
    (listed,) = store.workspaces.list()
    assert (listed.kind, listed.include) == ("memory", ["MEMORY.md", "memory/*.md", "USER.md"])


def test_their_vectors_stand_with_those_of_memories(store, workspace):
    store.workspaces.add(workspace)
    store.maintenance.project()
    only = memlog.Filters(kinds=frozenset({"memory"}))
    assert store.search("a hot drink", mode="vector", filters=only).hits[0].source == "MEMORY.md"


def test_what_the_user_file_says_is_core_memory_where_nothing_was_set(store, workspace):
    store.core.set("user", "location", "Oulu")
    user = store.workspaces.add(workspace).user
    assert [each.key for each in user.set] == ["name"]
    assert store.core.get().user == {"location": "Oulu", "name": "Anna"}


def test_a_second_run_appends_nothing_and_says_what_it_kept(store, workspace):
    store.workspaces.add(workspace)
    before = event_count(store)
    for user in (store.workspaces.add(workspace).user, store.documents.refresh()[0].user):
        assert (user.set, [each.key for each in user.kept]) == ([], ["name", "location"])
    assert event_count(store) == before


def test_later_changes_are_read_by_a_refresh(store, workspace):
    store.workspaces.add(workspace)
    (workspace / "USER.md").write_text("name: Anna Maria\noccupation: baker\n")
    (workspace / "memory/2026-02-25.md").write_text("baked bread\n")
    (workspace / "memory/2026-02-24.md").unlink()
    (added,) = store.documents.refresh()
    assert (added.indexed, added.unchanged, added.removed) == (1, 1, 1)
    assert store.core.get().user == {"name": "Anna", "location": "Turku", "occupation": "baker"}
    assert (found(store, "bread"), found(store, "train")) == ([("memory", "memory/2026-02-25.md")], [])


@pytest.mark.parametrize("loses_cache", [False, True])
def test_core_memory_takes_precedence_over_user_md_for_a_key_that_was_deleted(store, workspace, loses_cache):
    store.workspaces.add(workspace)
    store.core.delete("user", "location")
    if loses_cache:
        store.close()
        shutil.rmtree(store.path / "cache")
        shutil.rmtree(store.path / "model")
    before = event_count(store)
    store.documents.refresh()
    assert (store.core.get("user", "location"), event_count(store)) == (None, before)
    (workspace / "USER.md").write_text("location: Oulu\noccupation: baker\n")
    store.documents.refresh()
    assert store.core.get().user == {"name": "Anna", "occupation": "baker"}


def test_a_key_that_was_forgotten_is_not_appended_again(store, workspace):
    store.workspaces.add(workspace)
    for path in (store.path / "log/core").glob("*.jsonl"):
        for line in path.read_text().splitlines():
            store.erasure.forget(json.loads(line)["id"])
    before = event_count(store)
    store.documents.refresh()
    assert (store.core.get().user, event_count(store)) == ({}, before)


@pytest.mark.parametrize("damage", ["not UTF-8", "a link", "a folder", "gone"])
def test_a_user_file_that_cannot_be_read_is_named_and_the_notes_are_read(store, workspace, tmp_path, damage):
    path = workspace / "USER.md"
    path.unlink()
    if damage == "not UTF-8":
        path.write_bytes(b"name: Ren\xe9\n")
    elif damage == "a link":
        (tmp_path / "secret.md").write_text("name: Eve\n")
        path.symlink_to(tmp_path / "secret.md")
    elif damage == "a folder":
        path.mkdir()
    added = store.workspaces.add(workspace)
    assert (added.indexed, added.user, store.core.get().user) == (2, None, {})
    named = {skipped.file: skipped.reason for skipped in added.skipped}
    assert named == {"not UTF-8": {"USER.md": "not_utf8"}, "a link": {"USER.md": "link"}}.get(damage, {})
    assert added.found == 2 + len(named)


def test_git_ignores_notes_and_memlog_does_not(store, workspace):
    (workspace / ".gitignore").write_text("memory/\nUSER.md\nMEMORY.md\n")
    (workspace / ".git").mkdir()
    added = store.workspaces.add(workspace)
    assert (added.indexed, added.user is not None) == (2, True)


def test_of_documents_and_of_other_sources_of_memories_the_user_file_is_a_document(store, workspace):
    added = store.documents.add(workspace)
    assert (added.user, store.core.get().user) == (None, {})
    assert ("document", "agent") in found(store, "Anna")
    store.documents.add(workspace, kind="memory")
    assert found(store, "Anna") == [("memory", "USER.md")]


def test_a_workspace_that_is_removed_takes_its_memories_along_and_no_core_memory(store, workspace):
    store.workspaces.add(workspace)
    assert store.workspaces.remove("agent").stream == "documents"
    assert (found(store, "green"), store.workspaces.list()) == ([], [])
    assert store.core.get().user == {"name": "Anna", "location": "Turku"}


def test_what_is_no_workspace_is_not_removed_as_one(store, workspace):
    store.documents.add(workspace / "memory")
    assert (store.workspaces.remove("memory"), store.workspaces.remove("none")) == (False, False)
    with pytest.raises(memlog.BadInput):
        store.workspaces.add(workspace / "MEMORY.md")


def test_a_source_of_documents_is_not_made_a_workspace(store, workspace):
    store.documents.add(workspace)
    before = event_count(store)
    with pytest.raises(memlog.BadInput, match="'agent' is already a source of documents") as caught:
        store.workspaces.add(workspace)
    assert "store.documents.remove('agent')" in caught.value.hint
    assert (event_count(store), store.workspaces.list()) == (before, [])


@pytest.mark.parametrize("leads_to", ["what it was", "nowhere", "itself"])
@pytest.mark.parametrize("name", ["MEMORY.md", "memory", "memory/2026-02-24.md", "USER.md"])
def test_what_becomes_a_link_is_named_once(store, workspace, tmp_path, name, leads_to):
    store.workspaces.add(workspace)
    path, away = workspace / name, tmp_path / "away"
    path.rename(away)
    path.symlink_to({"what it was": away, "nowhere": tmp_path / "gone", "itself": path}[leads_to])
    for report in (store.documents.refresh()[0], store.workspaces.add(workspace)):
        (skipped,) = report.skipped
        assert (skipped.file, skipped.reason) == (name, "link")
        assert "not followed" in skipped.detail


def test_links_that_no_pattern_asks_for_are_not_named(store, workspace, tmp_path):
    (tmp_path / "other.md").write_text("green")
    for name in ("link.md", "memory/link.txt"):
        (workspace / name).symlink_to(tmp_path / "other.md")
    (workspace / "folder").symlink_to(tmp_path)
    assert store.workspaces.add(workspace).skipped == []


def test_a_watch_names_what_becomes_a_link(store, workspace):
    store.workspaces.add(workspace)
    (workspace / "memory").rename(workspace / "notes")
    (workspace / "memory").symlink_to(workspace / "notes")
    said = []
    with memlog.open(store.path, notify=said.append) as watching:
        watching.maintenance.watch(once=True)
    assert [note for note in said if note.startswith("agent/memory: it is a link")] != []

"""Documents as a Python program adds, lists, finds and removes them."""

import importlib.metadata
import os
import random
import re
import shutil
import socket
import subprocess
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

import memlog
from memlog.eventlog.log.quarantine import MAX_LINE
from memlog.projector.lifecycle import Projector
from memlog.query import documents as queries
from memlog.service.documents import text_files
from memlog.service.documents.scan import Patterns
from tests.service.documents.folders import files, found, made, reasons
from tests.support.places import ROOT
from tests.support.refusals import refused


@pytest.fixture
def folder(tmp_path):
    """A folder of some documents."""
    return made(
        tmp_path / "notes",
        {"tea.md": "# Tea\n\ngreen tea", "guide/train.txt": "trains to Tampere", "run.py": "run = 1\n"},
    )


def events(store):
    """The events of the documents stream, in the order of the log."""
    lines = b"".join(path.read_bytes() for path in sorted((store.path / "log/documents").glob("*.jsonl")))
    return [msgspec.json.decode(line) for line in lines.splitlines()]


def counts(added):
    return added.indexed, added.unchanged, added.removed


# Adding


def test_a_folder_is_registered_and_then_its_files_are_indexed(store, folder):
    added = store.documents.add(folder)
    assert (added.source_id, added.root, added.registered) == ("notes", str(folder), True)
    assert (counts(added), added.skipped) == ((3, 0, 0), [])
    said = events(store)
    assert [event["type"] for event in said] == ["source_registered"] + 3 * ["document_indexed"]
    assert {name: said[0].get(name) for name in ("source_id", "root", "include")} == {
        "source_id": "notes",
        "root": str(folder),
        "include": None,
    }


def test_a_document_carries_what_its_file_was(store, folder):
    os.utime(folder / "tea.md", ns=(0, 1_771_928_100_123_456_789))
    store.documents.add(folder)
    event = next(event for event in events(store) if event.get("file") == "tea.md")
    assert event["content"] == "# Tea\n\ngreen tea"
    assert (event["filetype"], event["size"], event["mtime"]) == ("markdown", 16, "2026-02-24T10:15:00.123Z")
    assert event["version"] == sha256(b"# Tea\n\ngreen tea").hexdigest()
    (document,) = [each for each in store.documents.list("notes") if each.file == "tea.md"]
    assert (document.id, document.filetype, document.passages) == ("notes/tea.md", "markdown", 1)
    assert (document.version, document.mtime) == (event["version"], event["mtime"])


def test_a_second_run_appends_nothing(store, folder):
    store.documents.add(folder)
    before = events(store)
    for path in folder.rglob("*.*"):
        os.utime(path)
    added = store.documents.add(folder)
    assert (added.registered, counts(added)) == (False, (0, 3, 0))
    assert [counts(each) for each in store.documents.refresh()] == [(0, 3, 0)]
    assert events(store) == before


def test_only_what_changed_is_appended(store, folder):
    store.documents.add(folder)
    made(folder, {"tea.md": "coffee", "new.md": "juice"})
    (folder / "run.py").unlink()
    known = len(events(store))
    assert counts(store.documents.add(folder)) == (2, 1, 1)
    said = [(event["type"], event["file"]) for event in events(store)[known:]]
    assert said == [
        ("document_indexed", "new.md"),
        ("document_indexed", "tea.md"),
        ("document_removed", "run.py"),
    ]
    assert found(store, "green") == []
    assert found(store, "coffee") == ["notes/tea.md"]


def test_a_file_that_comes_back_is_indexed_again(store, folder):
    store.documents.add(folder)
    shutil.move(folder / "tea.md", folder / "gone")
    assert counts(store.documents.add(folder)) == (0, 2, 1)
    shutil.move(folder / "gone", folder / "tea.md")
    assert counts(store.documents.add(folder)) == (1, 2, 0)
    assert found(store, "green") == ["notes/tea.md"]


def test_what_was_interrupted_goes_on_where_it_stopped(store, tmp_path):
    folder = made(tmp_path / "notes", {f"{number:03}.md": f"number {number}" for number in range(600)})

    def interrupt(_, done, __):
        if done == 400:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.documents.add(folder, progress=interrupt)
    kept = len(store.documents.list("notes"))
    assert kept == 256
    assert counts(store.documents.add(folder)) == (600 - kept, kept, 0)


def test_progress_is_told_file_by_file(store, folder):
    told = []
    store.documents.add(folder, progress=lambda *each: told.append(each))
    assert told == [("files read", done, 3) for done in (1, 2, 3)]


def test_an_empty_folder_is_a_source_without_documents(store, tmp_path):
    (tmp_path / "empty").mkdir()
    assert counts(store.documents.add(tmp_path / "empty")) == (0, 0, 0)
    (source,) = store.documents.list()
    assert (source.source_id, source.documents, source.bytes, source.indexed_at) == ("empty", 0, 0, None)


# Refreshing


def test_a_refresh_reads_what_is_new_or_changed_of_all_sources(store, folder, tmp_path):
    store.documents.add(folder, include=["**/*.md"])
    store.documents.add(made(tmp_path / "other", {"x.md": "x", "y.md": "y"}))
    made(folder, {"tea.md": "coffee", "juice.md": "juice", "run.py": "no pattern asks for it"})
    (tmp_path / "other/y.md").unlink()
    known = len(events(store))
    refreshed = store.documents.refresh()
    assert [(each.source_id, each.registered, counts(each)) for each in refreshed] == [
        ("notes", False, (2, 0, 0)),
        ("other", False, (0, 1, 1)),
    ]
    assert [(event["type"], event["file"]) for event in events(store)[known:]] == [
        ("document_indexed", "juice.md"),
        ("document_indexed", "tea.md"),
        ("document_removed", "y.md"),
    ]
    assert found(store, "coffee") == ["notes/tea.md"]


def test_a_refresh_reads_each_registration_twice(store, tmp_path, monkeypatch):
    """Once among all, and once under the lock of its source: the time is linear in the sources."""
    for number in range(12):
        store.documents.add(made(tmp_path / f"notes{number}", {"tea.md": "tea"}))
    real, read = queries.make_struct_of_row, []
    monkeypatch.setattr(queries, "make_struct_of_row", lambda *row: read.append(row) or real(*row))
    store.documents.refresh()
    assert len(read) == 2 * 12


def test_one_source_can_be_refreshed_alone(store, folder, tmp_path):
    store.documents.add(folder)
    store.documents.add(made(tmp_path / "other", {"x.md": "x"}))
    made(folder, {"tea.md": "coffee"})
    made(tmp_path / "other", {"x.md": "new"})
    (refreshed,) = store.documents.refresh("other")
    assert (refreshed.source_id, counts(refreshed)) == ("other", (1, 0, 0))
    assert found(store, "coffee") == []


def test_a_source_that_nobody_registered_is_not_refreshed(store):
    store.append([{"type": "document_indexed", "source_id": "foreign", "file": "a.md", "content": "tea"}])
    assert store.documents.refresh() == store.documents.refresh("foreign") == []
    assert found(store, "tea") == ["foreign/a.md"]


@pytest.mark.parametrize("is_a_file_now", [False, True])
def test_the_documents_of_a_folder_that_is_gone_stay(store, folder, tmp_path, is_a_file_now):
    other = made(tmp_path / "other", {"x.md": "x"})
    store.documents.add(folder)
    store.documents.add(other)
    folder.rename(tmp_path / "moved")
    if is_a_file_now:
        folder.touch()
    made(other, {"x.md": "fresh"})
    before = len(events(store))
    gone, fresh = store.documents.refresh()
    assert str(folder) in gone.error
    assert (counts(gone), counts(fresh), fresh.error) == ((0, 0, 0), (1, 0, 0), None)
    assert len(events(store)) == before + 1
    assert found(store, "green") == ["notes/tea.md"]
    folder.unlink(missing_ok=True)
    (tmp_path / "moved").rename(folder)
    assert [counts(each) for each in store.documents.refresh()] == [(0, 3, 0), (0, 1, 0)]


def test_the_documents_of_a_folder_that_goes_while_it_is_read_stay(store, tmp_path):
    folder = made(tmp_path / "notes", {f"{number:03}.md": f"number {number}" for number in range(20)})
    store.documents.add(folder)

    def remove_it(_, done, __):
        if done == 10:
            shutil.rmtree(folder)

    (refreshed,) = store.documents.refresh(progress=remove_it)
    assert str(folder) in refreshed.error
    assert refreshed.removed == 0
    assert len(files(store)) == 20


# Files


def test_a_file_makes_its_folder_a_source_that_takes_this_file_alone(store, folder):
    added = store.documents.add(folder / "tea.md")
    assert (added.source_id, added.root, counts(added)) == ("notes", str(folder), (1, 0, 0))
    assert store.documents.list()[0].include == ["tea.md"]
    assert files(store) == ["tea.md"]


def test_a_second_file_of_a_folder_joins_the_first(store, folder):
    store.documents.add(folder / "tea.md")
    added = store.documents.add(folder / "run.py")
    assert (added.registered, counts(added)) == (True, (1, 1, 0))
    assert store.documents.list()[0].include == ["tea.md", "run.py"]
    assert store.documents.add(folder / "tea.md").registered is False


def test_files_of_a_folder_are_added_together(store, folder):
    (added,) = store.documents.add_all([folder / "tea.md", folder / "run.py"])
    assert counts(added) == (2, 0, 0)
    assert [event["type"] for event in events(store)].count("source_registered") == 1


def test_a_file_of_any_type_can_be_added_by_name_and_its_name_is_no_pattern(store, tmp_path):
    folder = made(tmp_path / "notes", {"[a]*.data": "one", "a1.data": "two"})
    store.documents.add(folder / "[a]*.data")
    assert files(store) == ["[a]*.data"]
    assert store.documents.list()[0].include == ["[[]a][*].data"]


def test_the_folder_of_a_file_is_not_searched_through(store, tmp_path):
    folder = made(tmp_path / "home", {"tea.md": "tea", "other.md": "x", "deep/er/tea.md": "tea", ".x": "x"})
    os.mkfifo(folder / "pipe.md")
    added = store.documents.add(folder / "tea.md")
    assert added.skipped == []
    assert files(store, "home") == ["tea.md"]


def test_the_folder_of_files_that_were_added_by_name_can_be_added_whole(store, folder):
    store.documents.add(folder / "tea.md")
    assert counts(store.documents.add(folder)) == (2, 1, 0)
    assert store.documents.list()[0].include == []
    assert counts(store.documents.add(folder / "tea.md")) == (0, 3, 0)


def test_a_file_that_its_source_does_not_take_is_refused(store, folder):
    made(folder, {"x.data": "text", "drafts.md": "x"})
    store.documents.add(folder, exclude=["draft*"])
    for name in ("x.data", "drafts.md"):
        with pytest.raises(memlog.BadInput, match=re.escape(name)):
            store.documents.add(folder / name)
    store.documents.add(folder / "x.data", source="data")
    assert files(store, "data") == ["x.data"]


# Patterns


PATTERNS = [
    ([], [], ["b/c/d.md", "b/d.md", "d.md", "e.py"]),
    (["*.md"], [], ["d.md"]),
    (["**/*.md"], [], ["b/c/d.md", "b/d.md", "d.md"]),
    (["b"], [], ["b/c/d.md", "b/d.md", "b/x.data"]),
    (["b/*"], [], ["b/c/d.md", "b/d.md", "b/x.data"]),
    (["b/*.*"], [], ["b/d.md", "b/x.data"]),
    (["**/c/**"], [], ["b/c/d.md"]),
    (["./d.m?", "[e-f].py"], [], ["d.md", "e.py"]),
    ([], ["b"], ["d.md", "e.py"]),
    ([], ["**/c", "*.py"], ["b/d.md", "d.md"]),
    (["**"], ["**/*.md"], ["b/x.data", "e.py"]),
    (["d.md"], ["d.md"], []),
    (["D.MD"], [], []),
]


def test_patterns_are_relative_to_the_folder(store, tmp_path):
    names = ["d.md", "b/d.md", "b/c/d.md", "b/x.data", "e.py"]
    folder = made(tmp_path / "notes", dict.fromkeys(names, "text"))
    for number, (include, exclude, expected) in enumerate(PATTERNS):
        store.documents.add(folder, include=include, exclude=exclude, source=str(number))
        assert files(store, str(number)) == expected, (include, exclude)


def test_patterns_stay_until_others_are_given(store, folder):
    store.documents.add(folder, include=["**/*.md", "**/*.py"], exclude=["guide"])
    before = events(store)
    assert store.documents.add(folder).registered is False
    assert events(store) == before
    assert counts(store.documents.add(folder, include=["**/*.txt"])) == (1, 0, 2)
    (source,) = store.documents.list()
    assert (source.include, source.exclude) == (["**/*.txt"], [])


def test_a_pattern_that_can_match_nothing_below_the_folder_is_refused(store, folder):
    for pattern in ("", ".", "/etc/*", "../*", "a/../b"):
        with refused(pattern, match="matches nothing"):
            store.documents.add(folder, exclude=[pattern])
        assert store.documents.list() == [], pattern


def test_a_pattern_that_is_not_closed_is_refused_and_the_documents_stay(store, folder):
    store.documents.add(folder)
    before = events(store)
    for pattern in ("[", "guide/[a-z", "[]", "[!]", "[a/b].md"):
        for option in ("include", "exclude"):
            with refused(pattern, match=re.escape(repr(pattern))):
                store.documents.add(folder, **{option: [pattern]})
            assert events(store) == before, pattern


def test_a_pattern_with_a_set_of_characters_is_taken(store, folder):
    for number, pattern in enumerate(("[t]*.md", "[]t]ea.md", "[!]]ea.md", "t[e[]a.md")):
        assert store.documents.add(folder, source=f"notes{number}", include=[pattern]).indexed == 1, pattern


def test_patterns_with_many_stars_end():
    assert not Patterns(("**/a/" * 20 + "x",)).includes("/".join("a" * 60))


# Sources


def test_a_source_has_the_name_that_it_is_given(store, folder):
    assert store.documents.add(folder, source="tea house").source_id == "tea house"
    assert found(store, "green") == ["tea house/tea.md"]


def test_the_name_of_a_source_is_not_taken_by_another_root(store, folder, tmp_path):
    other = made(tmp_path / "other/notes", {"x.md": "x"})
    store.documents.add(folder)
    before = events(store)
    with pytest.raises(memlog.BadInput, match=re.escape(str(folder))) as refused:
        store.documents.add(other)
    assert "source=NAME" in refused.value.hint
    assert events(store) == before
    assert store.documents.add(other, source="others").indexed == 1


def test_another_spelling_of_the_root_is_the_same_root(store, folder, tmp_path, monkeypatch):
    store.documents.add(folder)
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(folder / "guide")
    for spelling in ("..", "../../notes/", f"{folder}/./guide/..", tmp_path / "link"):
        added = store.documents.add(spelling, source="notes")
        assert (added.root, added.registered, counts(added)) == (str(folder), False, (0, 3, 0))


def test_a_source_cannot_have_every_name(store, folder):
    for name in ("", "a/b", "a\nb", "x" * 256):
        with refused(name, match="invalid source name") as caught:
            store.documents.add(folder, source=name)
        assert "source=NAME" in caught.value.hint, name


def test_what_is_no_file_and_no_folder_is_refused(store, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    not_utf8 = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    Path(not_utf8).mkdir()
    for path in (tmp_path / "missing", tmp_path / "pipe", tmp_path / "loop", not_utf8, "/dev/null"):
        with pytest.raises(memlog.BadInput):
            store.documents.add(path)
    assert store.documents.list() == []


def test_the_store_is_no_document_of_itself(store, folder):
    store.append([memlog.MemorySaved(content="x")])
    made(store.path, {"notes.md": "x"})
    for path in (store.path, store.path / "log", store.path / "notes.md"):
        with pytest.raises(memlog.BadInput, match="store"):
            store.documents.add(path)
    for _ in range(2):
        added = store.documents.add(store.path.parent, source="all")
        assert reasons(added)["store"] == "store"
    assert [file for file in files(store, "all") if file.startswith("store")] == []


# What is skipped


def test_of_a_messy_folder_the_text_files_are_read_and_the_others_counted(store, tmp_path):
    folder = made(
        tmp_path / "notes",
        {
            "good.md": "tea",
            "bom.md": b"\xef\xbb\xbf# Tea\n",
            "empty.md": b"",
            "new\nline.md": "a name of two lines",
            "crlf.txt": b"one\r\ntwo\r\n",
            "nul.md": b"text\0",
            "late-nul.md": b"x" * 20_000 + b"\0",
            "latin.md": b"caf\xe9",
            "cut.md": "чай".encode()[:-1],
            "picture.png": b"\x89PNG",
            ".hidden.md": "x",
            ".git/config.md": "x",
            "large.md": b"x" * (text_files.MAX_BYTES + 1),
            "largest.md": b" " * text_files.MAX_BYTES,
            "escapes.md": b"\x01" * (MAX_LINE // 6),
            b"caf\xe9.md".decode(errors="surrogateescape"): "x",
            b"d\xe9j\xe0/x.md".decode(errors="surrogateescape"): "x",
        },
    )
    os.mkfifo(folder / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket.md"))
    (folder / "loop").symlink_to(".")
    (folder / "link.md").symlink_to("good.md")
    (folder / "broken.md").symlink_to("nowhere")
    added = store.documents.add(folder)
    expected = ["bom.md", "crlf.txt", "empty.md", "good.md", "largest.md", "new\nline.md"]
    assert files(store) == expected
    assert counts(added) == (len(expected), 0, 0)
    assert reasons(added) == {
        **dict.fromkeys((".git", ".hidden.md"), "hidden"),
        **dict.fromkeys(("loop", "link.md", "broken.md"), "link"),
        **dict.fromkeys(("pipe.md", "socket.md"), "special"),
        **dict.fromkeys(("nul.md", "late-nul.md"), "binary"),
        **dict.fromkeys(("latin.md", "cut.md", "caf\\udce9.md", "d\\udce9j\\udce0"), "not_utf8"),
        **dict.fromkeys(("large.md", "escapes.md"), "too_large"),
        "picture.png": "type",
    }
    assert found(store, '"two lines"') == ["notes/new\nline.md"]
    assert store.maintenance.verify().ok
    assert counts(store.documents.add(folder)) == (0, len(expected), 0)
    assert store.maintenance.quarantine() == []


def test_a_byte_order_mark_is_no_text(store, tmp_path):
    store.documents.add(made(tmp_path / "notes", {"bom.md": b"\xef\xbb\xbf# Tea\n\ngreen"}))
    (hit,) = store.search("green", mode="text").hits
    assert (hit.content, hit.section, hit.start_line) == ("# Tea\n\ngreen", "Tea", 1)


def test_a_document_whose_file_is_no_text_any_more_is_gone(store, folder):
    store.documents.add(folder)
    made(folder, {"tea.md": b"\0"})
    added = store.documents.add(folder)
    assert (counts(added), reasons(added)) == ((0, 2, 1), {"tea.md": "binary"})
    assert found(store, "green") == []


@pytest.fixture
def deep_folder(tmp_path):
    """A thousand folders within each other, and a file in the last."""
    folder = tmp_path / "deep"
    folder.mkdir()
    here = os.getcwd()
    os.chdir(folder)
    for _ in range(1000):
        os.mkdir("d")
        os.chdir("d")
    Path("tea.md").write_text("needle")
    os.chdir(here)
    yield folder
    # Python's own rmtree, which pytest calls, goes down by recursion.
    subprocess.run(["rm", "-r", folder], check=True)


def test_a_thousand_folders_within_each_other_are_walked(store, deep_folder):
    assert store.documents.add(deep_folder).indexed == 1
    assert found(store, "needle") == [f"deep/{'d/' * 1000}tea.md"]


# Listing and removing


def test_sources_are_listed_with_what_they_hold(store, folder, tmp_path):
    store.documents.add(made(tmp_path / "a", {"x.md": "чай"}), exclude=["y"])
    store.documents.add(folder, kind="memory")
    first, second = store.documents.list()
    assert (first.source_id, first.kind, first.root, first.exclude) == (
        "a",
        "docs",
        str(tmp_path / "a"),
        ["y"],
    )
    assert (first.documents, first.passages, first.bytes) == (1, 1, 6)
    assert (second.source_id, second.kind, second.documents, second.passages) == ("notes", "memory", 3, 3)
    assert second.indexed_at == max(document.indexed_at for document in store.documents.list("notes"))


def test_a_source_that_only_documents_name_is_listed_and_removed(store):
    store.append([{"type": "document_indexed", "source_id": "foreign", "file": "a/b.md", "content": "tea"}])
    (source,) = store.documents.list()
    assert (source.source_id, source.root, source.documents) == ("foreign", None, 1)
    assert store.documents.remove("foreign/a/b.md")
    assert store.documents.list() == []


def test_an_unknown_source_is_not_found(store, folder):
    store.documents.add(folder)
    documents = store.documents
    for asked in (documents.list, documents.refresh, documents.status, documents.tree):
        with pytest.raises(memlog.NotFound) as missing:
            asked("nothing")
        assert missing.value.code == "source_not_found"


def test_a_source_that_is_removed_is_out_of_search_at_once(store, folder):
    store.documents.add(folder)
    store.maintenance.project()
    assert len(found(store, "tea trains run")) == 3
    assert store.documents.remove("notes").stream == "documents"
    assert found(store, "tea trains run") == []
    assert store.search("a hot drink").hits == []
    assert store.documents.list() == []
    assert store.maintenance.verify().ok
    assert (folder / "tea.md").exists()


def test_a_document_that_is_removed_stays_out_until_it_is_added_by_name(store, folder):
    store.documents.add(folder)
    assert store.documents.remove("notes/guide/train.txt")
    assert store.documents.remove("notes/tea.md")
    assert found(store, "tea trains") == []
    assert counts(store.documents.add(folder)) == (0, 1, 0)
    assert counts(store.documents.add(folder / "tea.md")) == (1, 1, 0)
    assert store.documents.list()[0].exclude == ["guide/train.txt"]
    assert found(store, "tea trains") == ["notes/tea.md"]


def test_what_is_unknown_is_not_removed(store, folder):
    store.documents.add(folder)
    before = events(store)
    assert [store.documents.remove(name) for name in ("x", "x/tea.md", "notes/x", "notes/", "")] == [
        False
    ] * 5
    assert events(store) == before


def test_a_removed_source_can_be_added_anew_from_elsewhere(store, folder, tmp_path):
    store.documents.add(folder, exclude=["*.py"])
    store.documents.remove("notes")
    added = store.documents.add(made(tmp_path / "b/notes", {"x.md": "x"}))
    assert counts(added) == (1, 0, 0)
    assert (files(store), store.documents.list()[0].exclude) == (["x.md"], [])


def test_nothing_is_lost_with_the_read_model_and_the_cache(store, folder):
    store.documents.add(folder, include=["**/*.md", "guide"], exclude=["**/drafts"])
    store.documents.add(folder / "run.py", source="code")
    store.maintenance.project()
    sources = store.documents.list()
    documents = [store.documents.list(source.source_id) for source in sources]
    digest = store.maintenance.digest()
    store.close()
    shutil.rmtree(store.path / "model")
    shutil.rmtree(store.path / "cache")
    assert store.documents.list() == sources
    assert [store.documents.list(source.source_id) for source in sources] == documents
    assert (store.maintenance.digest(), store.maintenance.verify().ok) == (digest, True)
    assert counts(store.documents.add(folder)) == (0, 2, 0)


# Searching


def test_documents_stand_in_one_list_with_messages_and_memories(store, folder):
    store.documents.add(folder)
    store.append(
        [
            memlog.Message(channel="x", chat_id="1", role="user", content="tea at five"),
            memlog.MemorySaved(content="likes tea", memory_id="m"),
        ]
    )
    assert {hit.kind for hit in store.search("tea").hits} == {"message", "memory", "document"}
    only = memlog.Filters(kinds=frozenset({"document"}))
    (hit,) = store.search("tea", mode="text", filters=only).hits
    assert (hit.kind, hit.id, hit.source, hit.file) == ("document", "notes/tea.md", "notes", "tea.md")
    assert (hit.section, hit.start_line, hit.end_line) == ("Tea", 1, 3)


def test_files_of_a_source_of_kind_memory_are_found_as_memories(store, folder):
    store.documents.add(folder, kind="memory")
    (hit,) = store.search("green", mode="text").hits
    assert (hit.kind, hit.source, hit.file) == ("memory", "tea.md", "tea.md")
    store.documents.add(folder, kind="docs")
    (hit,) = store.search("green", mode="text").hits
    assert (hit.kind, hit.source, hit.file) == ("document", "notes", "tea.md")
    assert store.maintenance.verify().ok


def test_every_hit_of_real_documentation_is_where_it_says(store):
    """Over 100 hits of pages of this repository and of an installed package's source."""
    package = Path(importlib.metadata.distribution("pytest").locate_file("_pytest"))
    for folder in (
        ROOT / "docs/memory",
        ROOT / "tests/cli/transcripts",
        package / "config",
        package / "mark",
    ):
        store.documents.add(folder)
    seen = set()
    projector = Projector(store.path)
    only = memlog.Filters(kinds=frozenset({"document"}))
    roots = {source.source_id: Path(source.root) for source in store.documents.list()}
    words = sorted(set(re.findall(r"[a-z_]{4,}", (package / "mark/structures.py").read_text())))
    for question in random.Random(7).sample(words, 40):
        for hit in store.search(question, mode="text", filters=only).hits:
            assert_is_there(projector, hit, (roots[hit.source] / hit.file).read_bytes().decode())
            seen.add((hit.id, hit.start_line))
    projector.close()
    assert len(seen) >= 100


def assert_is_there(projector, hit, text):
    """The lines hold the passage; around it may stand a fence, table header or heading that is said again."""
    places = projector.connect_to_live().execute(
        "SELECT start_char, end_char FROM doc_chunks WHERE document_id = ? AND content = ?",
        (hit.id, hit.content),
    )
    start, end = next(place for place in places if text.count("\n", 0, place[0]) + 1 == hit.start_line)
    passage = text[start:end].removesuffix("\n")
    assert passage
    assert passage in hit.content
    lines = text.split("\n")[hit.start_line - 1 : hit.end_line]
    assert passage in "\n".join(lines)
    assert len(lines) == passage.count("\n") + 1


def indexed(levels):
    return {
        "type": "document_indexed",
        "source_id": "deep",
        "file": "a/" * (levels - 1) + "x.md",
        "content": "tea",
    }


def test_the_tree_of_a_deeper_path_in_the_log_ends_with_the_rest_as_a_name(tmp_path):
    for levels in (100, 101, 1000, 20_000):
        line = {"id": "d", "ts": "2026-02-24T10:00:00Z", **indexed(levels)}
        segment = tmp_path / str(levels) / "log/documents/2026-02-24.jsonl"
        segment.parent.mkdir(parents=True)
        segment.write_bytes(msgspec.json.encode(line) + b"\n")
        with memlog.open(tmp_path / str(levels)) as store:
            (folder,) = store.documents.tree()
        msgspec.json.encode(folder)
        assert repr(folder)
        path = []
        while folder.folders:
            (folder,) = folder.folders
            path.append(folder.name)
        assert "/".join([*path, folder.files[0].name]) == line["file"], levels
        assert len(path) == 99, levels

"""What another process puts in the place of a folder or a file is not followed out of the source."""

import ctypes
import os
import subprocess
import sys
from contextlib import closing, suppress
from itertools import chain, islice

import pytest

import memlog
from memlog.eventlog.events import SourceRegistered
from memlog.service.documents import text_files
from memlog.service.documents.scan import walk_source_folder
from memlog.service.documents.text_files import Root, Unfit
from memlog.service.engine.sandbox import Readers

_EXCHANGE = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
one, other = (each.encode() for each in sys.argv[1:])
at_cwd, exchange = -100, 2
if libc.renameat2(at_cwd, one, at_cwd, other, exchange) != 0:
    sys.exit(1)
print(flush=True)
while True:
    libc.renameat2(at_cwd, one, at_cwd, other, exchange)
"""
_TEXTS, _WALKS_AT_MOST = 400, 20_000


@pytest.fixture
def exchanged(tmp_path):
    """A source in which a folder, and the .gitignore of another one, are exchanged with links without end."""
    if getattr(ctypes.CDLL(None), "renameat2", None) is None:
        pytest.skip("no two names can be exchanged here")
    outside, notes = tmp_path / "outside", tmp_path / "notes"
    for folder, content in ((outside / "deep", "needle"), (notes / "swapped/deep", "tea")):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(content)
        (folder.parent / "b.md").write_text(content)
    (notes / "link").symlink_to(outside)
    program = [sys.executable, "-c", _EXCHANGE, str(notes / "swapped"), str(notes / "link")]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as exchanging:
        if not exchanging.stdout.read(1):
            pytest.skip("this file system exchanges no names")
        yield notes
        exchanging.kill()


def texts(folder, readers):
    """What a walk finds, and what its files say, as far as they can be read."""
    with Root(folder) as root:
        found = walk_source_folder(root, SourceRegistered(source_id="notes"), folder / "store", readers)
        for file in found.files:
            with suppress(Unfit, OSError):
                yield text_files.read_text_file(root, file, readers).content


def test_no_text_comes_from_behind_a_link_that_is_exchanged_with_a_folder(exchanged):
    with closing(Readers(1, on_wait=lambda: None)) as readers:
        walks = (texts(exchanged, readers) for _ in range(_WALKS_AT_MOST))
        read = [*islice(chain.from_iterable(walks), _TEXTS)]
    assert read == ["tea"] * _TEXTS


def test_what_a_source_appends_is_its_own_while_names_are_exchanged(exchanged, store):
    store.documents.add(exchanged)
    for _ in range(20):
        store.documents.refresh()
    assert not store.erasure.prove("needle").found
    assert store.erasure.prove("tea").found


def test_a_folder_in_the_place_of_the_root_takes_no_document_along(store, tmp_path, monkeypatch):
    notes = tmp_path / "notes"
    notes.mkdir()
    for name in ("a.md", "b.md"):
        (notes / name).write_text("tea")
    store.documents.add(notes)
    (notes / "b.md").write_text("black tea")

    def read_and_exchange(root, file, readers):
        text = read(root, file, readers)
        if file == "a.md":
            notes.rename(tmp_path / "before")
            notes.mkdir()
            (tmp_path / "before/b.md").unlink()
        return text

    read = text_files.read_text_file
    monkeypatch.setattr(text_files, "read_text_file", read_and_exchange)
    (refreshed,) = store.documents.refresh()
    assert "another folder has replaced it" in refreshed.error
    assert [each.file for each in store.documents.list("notes")] == ["a.md", "b.md"]


def test_the_root_may_be_a_link_and_nothing_below_it(store, tmp_path):
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "deep/a.md").write_text("tea")
    (tmp_path / "link").symlink_to(notes)
    assert store.documents.add(tmp_path / "link").indexed == 1
    (tmp_path / "aside").mkdir()
    (notes / "deep").rename(tmp_path / "aside/deep")
    (notes / "deep").symlink_to(tmp_path / "aside/deep")
    (refreshed,) = store.documents.refresh()
    assert (refreshed.indexed, refreshed.removed) == (0, 1)
    with Root(notes) as root, pytest.raises(OSError, match="directory"):
        root.read_status_of_file("deep/a.md")


def test_no_descriptor_is_left_open(store, tmp_path):
    notes = tmp_path / "notes"
    for number in range(5):
        (notes / f"{number}/deep/deeper").mkdir(parents=True)
        (notes / f"{number}/deep/deeper/a.md").write_text("tea")
    store.documents.add(notes)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(3):
        store.documents.refresh()
        with suppress(memlog.MemlogError):
            store.documents.add(tmp_path / "nothing")
    assert before == (len(os.listdir("/proc/self/fd")) if before else 0)

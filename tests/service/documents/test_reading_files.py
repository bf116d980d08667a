"""Reading the files of sources: what is not read again, what is never missed, and bad input by name."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

import memlog
from memlog.service.documents import indexing, text_files
from memlog.service.documents.indexing import SourceRecords
from memlog.service.documents.text_files import Root
from tests.service.documents.folders import found, made, reasons


@pytest.fixture
def folder(tmp_path):
    return made(tmp_path / "notes", {"tea.md": "green tea", "train.md": "to Turku"})


@pytest.fixture
def read_files(monkeypatch):
    """The paths of the files that were read, as they are read."""
    paths = []

    def reading(root, file, readers):
        paths.append(file)
        return read(root, file, readers)

    read = text_files.read_text_file
    monkeypatch.setattr(text_files, "read_text_file", reading)
    return paths


@pytest.fixture
def settled(monkeypatch):
    """Every file counts as unchanged for long, as all that a user has not just saved do."""
    monkeypatch.setattr(text_files, "TICK_NS", -(10**12))


def counts(added):
    return added.found, added.indexed, added.unchanged, len(added.skipped), added.removed


def event_count(store):
    return sum(path.read_bytes().count(b"\n") for path in (store.path / "log/documents").glob("*.jsonl"))


# What is read again


def test_a_file_that_looks_as_it_did_is_not_read_again(store, folder, settled, read_files):
    made(folder, {"picture.md": b"\0"})
    store.documents.add(folder)
    assert read_files == ["picture.md", "tea.md", "train.md"]
    assert counts(store.documents.refresh()[0]) == (3, 0, 2, 1, 0)
    assert len(read_files) == 3


def test_a_file_that_was_just_written_is_read_again_since_it_may_change_and_look_the_same(
    store, folder, read_files
):
    store.documents.add(folder)
    before = (folder / "tea.md").stat()
    (folder / "tea.md").write_text("black tea")
    os.utime(folder / "tea.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert counts(store.documents.refresh()[0]) == (2, 1, 1, 0, 0)
    assert found(store, "black") == ["notes/tea.md"]


@pytest.mark.parametrize("keeps_time", [False, True])
@pytest.mark.parametrize("how", ["written over", "replaced"])
def test_an_edit_is_seen_whatever_it_does_to_the_time_and_the_size(store, folder, settled, how, keeps_time):
    store.documents.add(folder)
    path = folder / "tea.md"
    before = path.stat()
    if how == "replaced":
        path.rename(folder.parent / "old")
    path.write_text("black tea")
    if keeps_time:
        # The kernel's clock goes in steps; an edit within one is what is_settled is for.
        while path.stat().st_ctime_ns == before.st_ctime_ns:
            path.touch()
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert counts(store.documents.refresh()[0]) == (2, 1, 1, 0, 0)


def test_an_unchanged_file_whose_document_was_removed_by_an_event_is_read_again(store, folder, settled):
    store.documents.add(folder)
    store.append([memlog.DocumentRemoved(source_id="notes", file="tea.md")])
    assert counts(store.documents.refresh()[0]) == (2, 1, 1, 0, 0)


def test_without_the_cache_every_file_is_read_and_none_appended(store, folder, settled, read_files):
    store.documents.add(folder)
    before = event_count(store)
    store.close()
    shutil.rmtree(store.path / "cache")
    shutil.rmtree(store.path / "model")
    assert counts(store.documents.refresh()[0]) == (2, 0, 2, 0, 0)
    assert (len(read_files), event_count(store)) == (4, before)


def test_damaged_records_cost_no_more_than_the_reading(store, folder, settled):
    store.documents.add(folder)
    for damage in (b"", b"\x93", b"nonsense" * 100):
        for path in (store.path / "cache/documents").iterdir():
            if path.suffix != ".lock":
                path.write_bytes(damage)
        assert counts(store.documents.refresh()[0]) == (2, 0, 2, 0, 0), damage
        assert store.documents.jobs()[0].state == "done"


@pytest.mark.parametrize("kind", ["memory", "docs"])
def test_a_renamed_file_keeps_its_vectors_through_the_cache(store, tmp_path, kind):
    folder = made(tmp_path / "notes", {"old.md": "# Tea\n\ngreen tea from the hills"})
    store.documents.add(folder, kind=kind)
    store.maintenance.project()
    (folder / "old.md").rename(folder / "new.md")
    assert counts(store.documents.refresh()[0]) == (1, 1, 0, 0, 1)
    report = store.maintenance.project()
    assert (report.vectors_computed, report.vectors_cached) == (0, 1)
    assert [hit.file for hit in store.search("a hot drink").hits] == ["new.md"]


# Two at once


def test_two_processes_that_add_a_folder_at_once_append_each_file_once(store, tmp_path):
    folder = made(tmp_path / "notes", {f"{number}.md": f"number {number}" for number in range(300)})
    program = "from memlog.cli.process.main import main; main()"
    command = [sys.executable, "-c", program, "--store", store.path, "docs", "add", folder]
    started = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [each.wait() for each in started] == [0, 0, 0]
    assert event_count(store) == 301


def test_who_waits_too_long_for_another_reading_is_told_so(folder, tmp_path):
    with memlog.open(tmp_path / "store", lock_timeout=0.05) as store:
        store.documents.add(folder)
        with SourceRecords(store.path, "notes").holding_source_lock(0):
            for work in (lambda: store.documents.add(folder), lambda: store.documents.remove("notes")):
                with pytest.raises(memlog.Busy, match="'notes'"):
                    work()
            assert "'notes'" in store.documents.refresh()[0].error
        assert store.documents.refresh()[0].error is None


# Jobs and status


def test_a_job_says_how_far_the_reading_came(store, folder):
    store.documents.add(folder)
    (job,) = store.documents.jobs()
    assert (job.source_id, job.state, job.done, job.total, job.failures) == ("notes", "done", 2, 2, 0)
    assert job.started <= job.ended
    (status,) = store.documents.status("notes")
    assert (status.state, status.files, status.chunks, status.bytes) == ("idle", 2, 2, 17)
    assert (status.last_error, status.last_indexed) == (None, store.documents.list()[0].indexed_at)


def test_a_source_is_indexing_while_it_is_read(store, folder):
    told = []
    store.documents.add(folder)
    made(folder, {"tea.md": "x"})
    with memlog.open(store.path) as other:
        store.documents.refresh(progress=lambda *_: told.append(other.documents.status()[0].state))
    assert told == ["indexing", "indexing"]
    assert store.documents.status()[0].state == "idle"


def test_an_interrupted_reading_is_an_error_until_the_next(store, folder):
    def interrupt(*_):
        raise KeyboardInterrupt

    store.documents.add(folder)
    with pytest.raises(KeyboardInterrupt):
        store.documents.refresh(progress=interrupt)
    assert (store.documents.jobs()[0].state, store.documents.jobs()[0].error) == ("error", "interrupted")
    assert (store.documents.status()[0].state, store.documents.status()[0].last_error) == (
        "error",
        "interrupted",
    )
    store.documents.refresh()
    assert store.documents.status()[0].last_error is None


def test_a_killed_reading_does_not_index_for_ever(spawning, store, tmp_path):
    folder = made(tmp_path / "notes", {f"{number:04}.md": f"number {number}" for number in range(900)})
    store.documents.add(folder / "0000.md")
    killed = spawning.Process(target=be_killed, args=(store.path, folder))
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    (job,) = store.documents.jobs()
    assert (job.state, job.error) == ("error", "the process that read it was killed")
    assert store.documents.status()[0].state == "error"
    (added,) = store.documents.refresh()
    assert (added.found, added.unchanged >= 256, store.documents.jobs()[0].state) == (900, True, "done")


def be_killed(path, folder):
    def kill(_, done, __):
        if done == 600:
            os.kill(os.getpid(), signal.SIGKILL)

    memlog.open(path).documents.add(folder, progress=kill)


def test_a_source_whose_folder_is_gone_is_an_error_at_once(store, folder, tmp_path):
    store.documents.add(folder)
    folder.rename(tmp_path / "moved")
    assert store.documents.status()[0].state == "error"
    assert store.documents.status()[0].last_error == f"{folder}: No such file or directory"


def test_jobs_go_with_the_cache_and_with_a_scrub(store, folder):
    store.documents.add(folder)
    store.append([memlog.MemorySaved(content="secret", id="m")])
    store.erasure.forget("m")
    store.erasure.scrub()
    assert store.documents.jobs() == []
    assert store.documents.refresh()[0].unchanged == 2
    assert not store.erasure.prove("green tea from nowhere").found
    store.close()
    shutil.rmtree(store.path / "cache")
    assert store.documents.jobs() == []
    assert store.documents.status()[0].state == "idle"


# Bad input, by name


def test_a_file_that_changes_whenever_it_is_read_is_named_and_its_document_stays(store, folder, monkeypatch):
    store.documents.add(folder)
    path = folder / "tea.md"

    def read_while_others_write(*args, **options):
        with path.open("a") as file:
            file.write(" and more")
        return read(*args, **options)

    read = text_files._read_up_to
    path.write_text("black tea")
    with monkeypatch.context() as writing:
        writing.setattr(text_files, "_read_up_to", read_while_others_write)
        (added,) = store.documents.refresh("notes")
    assert reasons(added) == {"tea.md": "changing"}
    assert (counts(added), store.documents.jobs()[0].failures) == ((2, 0, 1, 1, 0), 1)
    assert found(store, "green") == ["notes/tea.md"]
    assert counts(store.documents.refresh()[0]) == (2, 1, 1, 0, 0)
    assert found(store, "more") == ["notes/tea.md"]


def test_a_file_that_others_write_all_the_time_is_read_whole_or_not_at_all(store, tmp_path):
    folder = made(tmp_path / "notes", {"log.txt": b"first line\n"})
    is_over = threading.Event()

    def write():
        with (folder / "log.txt").open("ab", buffering=0) as file:
            while not is_over.wait(0.001):
                file.write(b"a line that was written at once\n")

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(10):
        (added,) = store.documents.add_all([folder])
        assert set(reasons(added).values()) <= {"changing"}
        for document in store.documents.list("notes"):
            assert store.documents.get(document.id).content.endswith("\n")
    is_over.set()
    writer.join()
    store.documents.refresh()
    assert store.documents.list("notes")[0].size == (folder / "log.txt").stat().st_size


def test_two_gigabytes_are_not_read(store, folder, monkeypatch):
    lengths, read = [path.stat().st_size for path in folder.iterdir()], text_files._read_up_to
    os.truncate(made(folder, {"large.md": b"x"}) / "large.md", 2 * 1024**3)

    def counted(*args, **options):
        data = read(*args, **options)
        lengths.remove(len(data))
        return data

    monkeypatch.setattr(text_files, "_read_up_to", counted)
    assert reasons(store.documents.add(folder)) == {"large.md": "too_large"}
    assert lengths == []
    monkeypatch.setattr(text_files, "_read_up_to", lambda *_, **__: pytest.fail("it was read"))
    with Root(folder) as root, pytest.raises(text_files.Unfit, match="too_large"):
        text_files.read_text_file(root, "large.md", store.documents.readers)


def test_pipes_devices_and_loops_of_links_are_not_opened(store, folder):
    os.mkfifo(folder / "pipe.md")
    (folder / "a.md").symlink_to("b.md")
    (folder / "b.md").symlink_to("a.md")
    (folder / "up").symlink_to("..")
    expected = {"pipe.md": "special", "a.md": "link", "b.md": "link", "up": "link"}
    if os.geteuid() == 0:
        # Elsewhere nobody can make one; /dev/null as a PATH is refused all the same.
        with suppress(PermissionError):
            os.mknod(folder / "device.md", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
            expected["device.md"] = "special"
    added = store.documents.add(folder)
    assert reasons(added) == expected
    assert counts(added) == (2 + len(expected), 2, 0, len(expected), 0)


def test_what_becomes_a_link_out_of_the_source_after_it_was_listed_is_not_followed(
    store, folder, tmp_path, monkeypatch
):
    made(tmp_path, {"secret.md": "needle"})
    walk = indexing.walk_source_folder

    def walked(*args, **options):
        result = walk(*args, **options)
        (folder / "tea.md").unlink()
        (folder / "tea.md").symlink_to(tmp_path / "secret.md")
        return result

    monkeypatch.setattr(indexing, "walk_source_folder", walked)
    assert reasons(store.documents.add(folder)) == {"tea.md": "link"}
    assert found(store, "needle") == []


def test_an_empty_folder_in_the_place_of_another_takes_no_document_along(store, folder, tmp_path, settled):
    """As a mount point is, when what was mounted is not."""
    store.documents.add(folder)
    folder.rename(tmp_path / "mounted")
    folder.mkdir()
    (refreshed,) = store.documents.refresh()
    assert "replaced by an empty folder" in refreshed.error
    assert found(store, "green") == ["notes/tea.md"]
    assert store.documents.add(folder).removed == 2


def test_a_folder_that_was_emptied_is_a_source_without_documents(store, folder, settled):
    store.documents.add(folder)
    for path in folder.iterdir():
        path.unlink()
    assert counts(store.documents.refresh()[0]) == (0, 0, 0, 0, 2)


def test_a_folder_that_goes_below_the_root_while_it_is_walked_is_gone(store, tmp_path, monkeypatch):
    folder = made(tmp_path / "notes", {"a/x.md": "needle", "b/y.md": "y"})
    store.documents.add(folder)
    entries = Root.list_entries

    def listed(root, path):
        if path == "a":
            shutil.rmtree(folder / "a", ignore_errors=True)
        return entries(root, path)

    monkeypatch.setattr(Root, "list_entries", listed)
    assert counts(store.documents.refresh()[0]) == (1, 0, 1, 0, 1)
    assert found(store, "needle") == []


def test_counts_add_up(store, tmp_path):
    folder = made(
        tmp_path / "notes",
        {"a.md": "a", "b.md": b"\0", ".hidden": "x", "x.bin": "x", ".gitignore": "c.md\n", "c.md": "c"},
    )
    for _ in range(2):
        added = store.documents.add(folder)
        assert added.found == added.indexed + added.unchanged + len(added.skipped) == 6
    assert [job.total for job in store.documents.jobs()] == [2]

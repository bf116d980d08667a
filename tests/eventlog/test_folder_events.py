"""What the file system tells is a hint only: who waits for it looks all the same."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import watchfiles

from memlog.eventlog.files import folder_events
from memlog.eventlog.files.folder_events import ChangeHints
from memlog.eventlog.log import tail
from memlog.eventlog.log.reader import read_log_state
from memlog.eventlog.log.tail import wait_for_polls


def told(waiting: ChangeHints, folder: Path, path: Path) -> bool:
    """Whether a change of a file is told; the first ones of a new folder may be missing."""
    for _ in range(60):
        path.write_text("tea")
        if str(path) in waiting.wait_for_changes([folder], 1):
            return True
    return False


@pytest.fixture
def hints() -> Iterator[Callable[..., ChangeHints]]:
    """Makes them, and closes them."""
    made: list[ChangeHints] = []

    def make(*, is_deep: bool = True) -> ChangeHints:
        made.append(ChangeHints(is_deep=is_deep, stop=threading.Event()))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_what_changes_below_a_folder_is_told(tmp_path: Path, hints: Callable[..., ChangeHints]) -> None:
    waiting = hints()
    assert waiting.wait_for_changes([tmp_path], 0) == {str(tmp_path)}, "who begins to watch has to look"
    assert waiting.wait_for_changes([tmp_path], 0.2) == set()
    (tmp_path / "deep").mkdir()
    assert str(tmp_path / "deep") in waiting.wait_for_changes([tmp_path], 60)
    assert told(waiting, tmp_path, tmp_path / "deep/file")


def test_of_folders_that_are_watched_alone_what_is_deeper_is_not_told(
    tmp_path: Path, hints: Callable[..., ChangeHints]
) -> None:
    (tmp_path / "deep").mkdir()
    waiting = hints(is_deep=False)
    waiting.wait_for_changes([tmp_path], 0)
    (tmp_path / "deep/file").write_text("tea")
    assert str(tmp_path / "deep/file") not in waiting.wait_for_changes([tmp_path], 0.3)
    assert waiting.wait_for_changes([tmp_path, tmp_path / "deep"], 0) == {
        str(tmp_path),
        str(tmp_path / "deep"),
    }


def test_a_folder_that_was_made_anew_is_watched_anew(
    tmp_path: Path, hints: Callable[..., ChangeHints]
) -> None:
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    waiting = hints()
    waiting.wait_for_changes([folder], 0)
    folder.rename(tmp_path / "elsewhere")
    waiting.wait_for_changes([folder], 0.2)
    assert not waiting.works
    other.rename(folder)
    assert waiting.wait_for_changes([folder], 0) == {str(folder)}
    assert told(waiting, folder, folder / "file")


def test_without_watches_looks_go_on_and_another_try_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def no_watches(*folders: Any, **options: Any) -> Iterator[Any]:
        tries.append(folders)
        raise OSError(28, "No space left on device")  # as Linux says it
        yield

    def look_five_times() -> int:
        tries.clear()
        with closing(wait_for_polls(tmp_path)) as looking:
            for _ in range(5):
                next(looking)
        return len(tries)

    monkeypatch.setattr(watchfiles, "watch", no_watches)
    assert look_five_times() == 1
    monkeypatch.setattr(folder_events, "_RETRY_SECONDS", 0.0)
    assert look_five_times() > 1


def test_a_watch_that_dies_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hints: Callable[..., ChangeHints]
) -> None:
    def dies(*folders: Any, **options: Any) -> Iterator[Any]:
        yield set()
        raise RuntimeError("error in underlying watcher")

    monkeypatch.setattr(watchfiles, "watch", dies)
    waiting = hints()
    waiting.wait_for_changes([tmp_path], 0)
    assert waiting.works
    assert waiting.wait_for_changes([tmp_path], 0.1) == set()
    assert not waiting.works


def test_what_nobody_told_of_is_found_by_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tells_nothing(*folders: Any, stop_event: threading.Event, **options: Any) -> Iterator[Any]:
        while not stop_event.wait(0.01):
            yield set()

    monkeypatch.setattr(watchfiles, "watch", tells_nothing)
    monkeypatch.setattr(tail, "SWEEP_SECONDS", 0.1)
    stop = threading.Event()
    late = threading.Timer(60, stop.set)  # it would end the looks
    late.start()
    with closing(wait_for_polls(tmp_path, stop)) as looking:
        for _ in range(4):
            next(looking)
    late.cancel()


def test_looks_end_when_they_are_told_to(tmp_path: Path) -> None:
    stop, has_looked = threading.Event(), threading.Event()

    def look() -> None:
        for _ in wait_for_polls(tmp_path / "not there", stop):
            has_looked.set()

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    assert has_looked.wait(60)
    stop.set()
    looking.join(60)
    assert not looking.is_alive()


def test_the_state_of_a_log_is_another_when_a_segment_is(tmp_path: Path) -> None:
    stream = tmp_path / "conversations/x_1"
    stream.mkdir(parents=True)
    states = [read_log_state(tmp_path)]

    def changed(path: Path, text: str) -> bool:
        path.write_text(text)
        states.append(read_log_state(tmp_path))
        return states[-1] not in states[:-1]

    assert changed(stream / "2026-02-24.jsonl", "one")
    assert changed(stream / "2026-02-24.jsonl", "one two")
    assert changed(tmp_path / "seals.jsonl", "{}")
    (tmp_path / ".git").mkdir()
    assert not changed(tmp_path / ".git/index", "what git does is nobody's stream")
    shutil.rmtree(stream)
    assert read_log_state(tmp_path) != states[-1]
    assert read_log_state(tmp_path / "not there") == []

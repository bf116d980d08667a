"""The way down to a stream's folder."""

import os
from pathlib import Path

import pytest

from memlog.eventlog.files import disk, folders


def test_a_folder_that_another_process_makes_first_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder = disk.make_folder

    def be_late(*args: object, **options: object) -> None:
        make_folder(*args, **options)  # type: ignore[arg-type]
        make_folder(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(disk, "make_folder", be_late)
    folders.make_folder_and_parents(tmp_path / "store" / "log")
    assert (tmp_path / "store" / "log").is_dir()


def test_a_log_that_is_gone_is_made_again_for_an_append_alone(tmp_path: Path) -> None:
    log = tmp_path / "store" / "log"
    with pytest.raises(FileNotFoundError), folders.opening_folders_of_stream(log, "memory"):
        pass
    with folders.opening_folders_of_stream(log, "memory", make=True) as entered:
        assert len(entered) == 2
    assert (log / "memory").is_dir()


def test_a_file_in_a_folders_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    with pytest.raises(FileExistsError):
        folders.make_folder_and_parents(tmp_path / "log")


def test_each_folder_is_closed_though_the_closing_of_another_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conversations" / "x_1").mkdir(parents=True)
    closed: list[int] = []
    close = disk.close

    def fail(fd: int) -> None:
        closed.append(fd)
        close(fd)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(disk, "close", fail)
    with (
        pytest.raises(OSError, match="Input/output"),
        folders.opening_folders_of_stream(tmp_path, "conversations/x_1") as fds,
    ):
        pass
    assert sorted(closed) == sorted(fds)


def test_a_folder_that_is_made_behind_a_look_is_not_kept_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, access = tmp_path / "model", os.access

    def made_behind(path: Path, mode: int) -> bool:
        may = access(path, mode)
        folder.mkdir(exist_ok=True)
        return may

    monkeypatch.setattr(os, "access", made_behind)
    assert not folders.is_kept_read_only(folder)

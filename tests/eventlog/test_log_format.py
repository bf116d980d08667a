"""`log/FORMAT`: no memlog writes into a log of a newer one; reads go on."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import memlog
from memlog.eventlog.errors import LogError
from memlog.eventlog.integrity.seal_close import accept_losses, seal_unsealed_segments
from memlog.eventlog.log.log_format import LINE
from memlog.eventlog.log.writer import Log

TEA = {"type": "message", "channel": "x", "chat_id": "1", "role": "user", "content": "tea"}


def test_the_first_append_writes_the_format_and_no_other_does(tmp_path: Path) -> None:
    Log(tmp_path).append([TEA])
    file = tmp_path / "log/FORMAT"
    assert file.read_bytes() == LINE == b"memlog log format 2\n"
    written = file.stat().st_ino
    Log(tmp_path).append([TEA])
    assert (file.stat().st_ino, file.read_bytes()) == (written, LINE)
    assert sorted(path.name for path in (tmp_path / "log").iterdir()) == ["FORMAT", "conversations"]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"memlog log format 3\n", "newer_format"),
        (b"memlog log format 10\n", "newer_format"),
        (b"", "damaged_format"),
        (b"memlog log format\n", "damaged_format"),
        (b"\0" * 20, "damaged_format"),
    ],
)
def test_what_writes_refuses_a_newer_or_damaged_format_and_reads_go_on(
    tmp_path: Path, said: bytes, code: str
) -> None:
    Log(tmp_path).append([TEA])
    (tmp_path / "log/FORMAT").write_bytes(said)
    before = files_of(tmp_path)
    with memlog.open(tmp_path) as store:
        for write in (
            lambda: store.append([TEA]),
            lambda: store.erasure.scrub(),
            lambda: seal_unsealed_segments(tmp_path),
            lambda: accept_losses(tmp_path),
        ):
            with pytest.raises(LogError) as refused:
                write()
            assert (refused.value.code, refused.value.retryable) == (code, False)
            assert ("update memlog" in refused.value.hint) is (code == "newer_format")
        assert [message.content for message in store.conversations.window(("x", "1")).messages] == ["tea"]
    assert files_of(tmp_path) == before


def files_of(store: Path) -> dict[str, bytes]:
    """The bytes of each file of the log."""
    return {str(path): path.read_bytes() for path in (store / "log").rglob("*") if path.is_file()}


@pytest.mark.parametrize("said", [b"memlog log format 2\r\n", b"memlog log format 1\n"])
def test_an_older_format_and_another_line_end_are_written_to(tmp_path: Path, said: bytes) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log/FORMAT").write_bytes(said)
    Log(tmp_path).append([TEA])
    assert (tmp_path / "log/FORMAT").read_bytes() == said


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log/FORMAT").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LogError) as refused:
        Log(tmp_path).append([TEA])
    assert refused.value.code == "damaged_format"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["a folder", "a pipe"])
def test_what_is_no_file_in_its_place_is_damage(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "log").mkdir()
    make(tmp_path / "log/FORMAT")
    with pytest.raises(LogError) as refused:
        Log(tmp_path).append([TEA])
    assert refused.value.code == "damaged_format"
    assert [path.name for path in (tmp_path / "log").iterdir()] == ["FORMAT"]


def test_a_log_of_the_version_before_opens_and_goes_on(month, tmp_path) -> None:
    store = tmp_path / "month"
    shutil.copytree(month.log, store / "log")
    with memlog.open(store) as opened:
        opened.maintenance.project(embed=False)
        events = opened.maintenance.status().events
        before = {path: path.read_bytes() for path in (store / "log").rglob("*.jsonl")}
        opened.append([TEA, memlog.MemorySaved(content="a new needle")])
        opened.maintenance.project(embed=False)
        assert opened.maintenance.status().events == events + 2
        assert [hit.content for hit in opened.search("needle", mode="text").hits] == ["a new needle"]
        assert opened.maintenance.verify().ok
    assert {path: path.read_bytes() for path in before} == before, "no plain segment is appended to"
    assert (store / "log/FORMAT").read_bytes() == LINE


def test_the_command_says_what_to_do(tmp_path: Path) -> None:
    from tests.support.forked_memlog import run_memlog

    Log(tmp_path).append([TEA])
    (tmp_path / "log/FORMAT").write_bytes(b"memlog log format 3\n")
    done = run_memlog("--store", tmp_path, "append", "session_break", "--chat", "x:1")
    assert (done.returncode, done.stdout) == (74, b"")
    assert b"update memlog" in done.stderr

"""A log on disk with verbs for what happens to it, a clock that can be set, and an `os` that can fail."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memlog.eventlog import timestamps
from memlog.eventlog.codec.decode import decode_line, is_blank_line
from memlog.eventlog.codec.upcast import Place
from memlog.eventlog.events import MemorySaved
from memlog.eventlog.files import disk
from memlog.eventlog.integrity.copy_identity import Writer
from memlog.eventlog.log.layout import name_of_seals_file
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.reader import opening_segment_file, read_lines
from memlog.eventlog.log.streams import SegmentName, list_segment_names, select_current_segments
from memlog.eventlog.log.writer import Log, Position


class LogOnDisk:
    """The stream `memory` of a store. What is done to bytes is done to its newest segment."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.folder = store / "log" / "memory"
        self.start_again()

    def start_again(self) -> None:
        """Go on as another process would: with nothing remembered."""
        self.writer = Log(self.store, durability="os", lock_timeout=0.3)

    def append(self, *contents: str) -> list[Position]:
        """Append memories of these contents."""
        return self.writer.append([MemorySaved(content=content) for content in contents])

    @property
    def segment(self) -> Path:
        """The newest one."""
        (newest,) = select_current_segments(list_segment_names(self.folder)).values()
        return self.folder / newest.filename

    def name(self, day: str, number: int = 0) -> str:
        """The file name of a segment of the log's writer."""
        return SegmentName(day, number, Writer(self.store).find_or_create_name()).filename

    @property
    def seals(self) -> Path:
        """The file of its writer's seals."""
        return self.store / "log" / name_of_seals_file(Writer(self.store).find_or_create_name())

    @property
    def segments(self) -> list[str]:
        """The file names, in the order of the segments."""
        names = [SegmentName.parse(path.name) for path in self.folder.iterdir()]
        known = (name for name in names if name is not None)
        return [name.filename for name in sorted(known, key=lambda name: name.age_key)]

    def write_segment(self, filename: str, data: bytes) -> Path:
        """Make a segment by hand; one with the writer's name as the writer does."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / filename
        with path.open("ab") as file:
            if f".{Writer(self.store).find_or_create_name()}." in filename:
                assert Writer(self.store).has_created_open_segment("memory", filename, file.fileno())
            file.write(data)
        return path

    def shrink(self, count: int) -> None:
        """Cut the last `count` bytes off, as a crash does: nobody knows that the segment was longer."""
        self.writer.record_sizes()
        size = self.segment.stat().st_size - count
        os.truncate(self.segment, size)
        Writer(self.store)._segments.replace_recorded_sizes({("memory", self.segment.name): size})
        self.start_again()

    def flip_byte(self, offset: int) -> None:
        """Change every bit of one byte."""
        data = bytearray(self.segment.read_bytes())
        data[offset] ^= 0xFF
        self.segment.write_bytes(data)

    def add_raw(self, data: bytes) -> None:
        """Append bytes as a foreign writer does: without a look at the lock."""
        with self.segment.open("ab") as file:
            file.write(data)

    def read(self) -> list[str]:
        """What each line of each segment says, or why it says nothing; blank lines are left out."""
        return [said for filename in self.segments for said in self._read(filename)]

    def _read(self, filename: str) -> Iterator[str]:
        name = SegmentName.parse(filename)
        assert name is not None
        with opening_segment_file(self.folder.parent, "memory", filename) as fd:
            for line in read_lines(fd, tail_is_a_line=True):
                if line.data is None or not is_blank_line(line.data):
                    yield _said(line.data, Place("memory", name, line.offset))


def _said(line: bytes | None, place: Place) -> str:
    if line is None:
        return "too_long"
    try:
        event = decode_line(line, place)
    except BadLine as bad:
        return bad.reason
    assert isinstance(event, MemorySaved)
    return event.content


@pytest.fixture
def log(tmp_path: Path) -> LogOnDisk:
    """An empty log."""
    return LogOnDisk(tmp_path / "store")


class Clock:
    """Stands until it is set."""

    def __init__(self) -> None:
        self.now = "2026-02-24T10:15:00.000Z"

    def set(self, now: str) -> None:
        """Forwards or back."""
        self.now = now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that appending looks at."""
    made = Clock()
    monkeypatch.setattr(timestamps, "now", lambda: made.now)
    return made


class FaultyDisk:
    """The module `disk`. A function that is set on it stands in for the real one, until the test is over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.__dict__["_monkeypatch"] = monkeypatch

    def __setattr__(self, name: str, function: Any) -> None:
        assert name in disk.CALLS
        self._monkeypatch.setattr(disk, name, function)


@pytest.fixture
def faulty_disk(monkeypatch: pytest.MonkeyPatch) -> FaultyDisk:
    """What stands between memlog and the disk."""
    return FaultyDisk(monkeypatch)


_HOLD_THE_LOCK = """
import fcntl, sys
file = open(sys.argv[1], "ab")
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hold_lock() -> Iterator[Callable[[Path], subprocess.Popen[bytes]]]:
    """Starts another process that holds the lock of a file until it ends."""
    started: list[subprocess.Popen[bytes]] = []

    def hold(path: Path) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", _HOLD_THE_LOCK, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.communicate()

"""What is done to a log while the power may be cut at any operation.

A new kind of operation on the log is a function here, in `SCENARIOS`.
"""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import memlog.eventlog.log.rotation
from memlog.eventlog import timestamps
from memlog.eventlog.events import Message, Redacted
from memlog.eventlog.files import disk
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments
from memlog.eventlog.log.writer import Log
from tests.crash.faults.power_cuts import SimulatedDisk
from tests.crash.faults.recovery import SECRET, message, scrub_all
from tests.support.recorded_disk import RecordingDisk, Trace

DAY = "2026-02-24T10:15:00.000Z"
NEXT_DAY = "2026-02-25T10:15:00.000Z"

Plant = Callable[["Writing"], None]
"""Puts a fault in the place of a step of the protocol."""


@dataclass
class Writing:
    """A store that is written to, and what is asked of its disk.

    surroundings: what is set on it stays for the recovery: the clock, limits.
    faults: what is set on it is undone before.
    submitted: every event that was given to `append`, by id.
    """

    store: Path
    recorder: RecordingDisk
    surroundings: pytest.MonkeyPatch
    faults: pytest.MonkeyPatch
    submitted: dict[str, Message] = field(default_factory=dict)

    def append(self, *ids: str, log: Log | None = None, content: str = "tea") -> None:
        """One call of `append`; its return is the acknowledgement."""
        events = {each: message(each, content) for each in ids}
        self.submitted |= events
        (log or self.log).append(events.values())
        self.recorder.ack(*ids)

    def __post_init__(self) -> None:
        self.log = Log(self.store)
        self.set_clock(DAY)

    def set_clock(self, now: str) -> None:
        self.surroundings.setattr(timestamps, "now", lambda: now)

    def limit_segments(self, size: int) -> None:
        """A segment of more bytes gets no more lines."""
        self.surroundings.setattr(memlog.eventlog.log.rotation, "SEGMENT_BYTES", size)


def a_new_store(writing: Writing) -> None:
    for name in ("a", "b", "c"):
        writing.append(name)


def a_store_that_another_made(writing: Writing) -> None:
    """Another process has made the store's folder, and was killed before it synced the name."""
    disk.make_folder(writing.store)
    writing.append("a")
    writing.append("b")


def a_batch(writing: Writing) -> None:
    writing.append("before")
    writing.append(*[f"batch-{number}" for number in range(4)], content="tea " * 20)
    writing.append("after")


def a_new_day(writing: Writing) -> None:
    writing.append("a")
    writing.set_clock(NEXT_DAY)
    writing.append("b")
    writing.append("c", "d")


def a_full_segment(writing: Writing) -> None:
    writing.limit_segments(200)
    for name in ("a", "b", "c"):
        writing.append(name, f"{name}-too")


def sealed_segments(writing: Writing) -> None:
    """A seal for all, the newest too; the next append begins a segment."""
    writing.append("a", "b")
    seal_unsealed_segments(writing.log.store)
    writing.append("c")
    seal_unsealed_segments(writing.log.store)
    writing.append("d")


def a_scrub(writing: Writing) -> None:
    """An event is forgotten, and its line overwritten."""
    writing.append("a")
    gone = message("gone", SECRET)
    writing.submitted["gone"] = gone
    writing.log.append([gone])
    writing.append("b")
    seal_unsealed_segments(writing.log.store)
    stream = "conversations/x_1"
    writing.log.append([Redacted(target_id="gone", stream=stream)])
    scrub_all(writing.store)
    writing.append("c")


def a_torn_tail(writing: Writing) -> None:
    """A killed writer has left half a line, which nobody has synced."""
    writing.append("a")
    (segment,) = (writing.store / "log/conversations/x_1").iterdir()
    fd = disk.open(segment, disk.APPEND)
    disk.write(fd, b'{"type":"message","id":"torn","channel":"x"')
    disk.close(fd)
    writing.append("b", log=Log(writing.store))


def two_writers(writing: Writing) -> None:
    """The second one appends, syncs and is acknowledged while the first waits to sync."""
    writing.append("a")
    sync_data, second = disk.sync_data, Log(writing.store)

    def behind(fd: int) -> None:
        writing.faults.setattr(disk, "sync_data", sync_data)
        writing.append("c", log=second)
        sync_data(fd)

    writing.faults.setattr(disk, "sync_data", behind)
    writing.append("b")


def a_short_write(writing: Writing) -> None:
    """The disk takes half of the lines; the rest goes on behind a newline."""
    writing.append("a")
    write = disk.write

    def half(fd: int, data: bytes | memoryview) -> int:
        writing.faults.setattr(disk, "write", write)
        return write(fd, data[: len(data) // 2])

    writing.faults.setattr(disk, "write", half)
    writing.append("b", "c", "d")


def a_failed_sync(writing: Writing) -> None:
    """The disk fails to sync; nothing is acknowledged, and the same events are appended again."""
    writing.append("a")
    sync_data = disk.sync_data

    def failing(fd: int) -> None:
        writing.faults.setattr(disk, "sync_data", sync_data)
        raise OSError(errno.EIO, "Input/output error")

    writing.faults.setattr(disk, "sync_data", failing)
    with pytest.raises(memlog.eventlog.log.writer.LogError):
        writing.append("b", "c")
    writing.append("b", "c")


SCENARIOS: dict[str, Callable[[Writing], None]] = {
    "append": a_new_store,
    "another's store": a_store_that_another_made,
    "batch": a_batch,
    "new day": a_new_day,
    "roll": a_full_segment,
    "seal": sealed_segments,
    "scrub": a_scrub,
    "torn tail": a_torn_tail,
    "two writers": two_writers,
    "short write": a_short_write,
    "failed sync": a_failed_sync,
}
"""By the operation during which the power is cut."""


@dataclass
class Recorded:
    """What a scenario asked of the disk; `disk` is as it was before."""

    disk: SimulatedDisk
    trace: Trace
    submitted: dict[str, Message]


@contextmanager
def recorded(name: str, root: Path, plant: Plant | None = None) -> Iterator[Recorded]:
    """Run a scenario in the empty folder `root`; its clock and limits stay for the recovery."""
    simulated, recorder = SimulatedDisk(root), RecordingDisk()
    with pytest.MonkeyPatch.context() as surroundings:
        with pytest.MonkeyPatch.context() as faults:
            recorder.install(faults)
            writing = Writing(root / "store", recorder, surroundings, faults)
            if plant is not None:
                plant(writing)
            SCENARIOS[name](writing)
        yield Recorded(simulated, recorder.trace, writing.submitted)

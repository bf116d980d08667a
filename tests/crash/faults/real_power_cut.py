"""A power cut as a disk sees it: ext4 on a loop device is shut down while writers append; mounted again."""

import fcntl
import os
import select
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from memlog.eventlog.events import Message
from memlog.eventlog.log.reader import read_accepted_events
from memlog.eventlog.log.streams import list_segments
from tests.crash.faults.recovery import log_problems, message

_SHUTDOWN, _WITHOUT_FLUSH = 0x8004587D, 2
"""FS_IOC_SHUTDOWN: from now on nothing goes to the disk, not even the journal (xfstests' godown)."""

_SIZE = 64 * 1024 * 1024
_WRITERS = 3

WRITER = """
import sys
from pathlib import Path
from memlog.eventlog.log.writer import Log
from memlog.eventlog.events import Message
log, name = Log(Path(sys.argv[1]), durability=sys.argv[2]), sys.argv[3]
for number in range(10**9):
    ids = [f"{name}-{number}-{each}" for each in range(number % 4 + 1)]
    log.append([Message(id=each, channel="x", chat_id="1", role="user", content="tea") for each in ids])
    sys.stdout.write("".join(f"{each}\\n" for each in ids))
    sys.stdout.flush()
"""


@dataclass
class Cycle:
    """acknowledged: events whose acknowledgement was read before the cut. lost: those that are not there."""

    acknowledged: int = 0
    lost: int = 0
    problems: list[str] = field(default_factory=list)


@cache
def why_not() -> str | None:
    """Why no power cut can be played here; None where one can."""
    if os.geteuid() != 0:
        return "only root mounts file systems"
    try:
        with tempfile.TemporaryDirectory() as folder, _mounted(Path(folder)) as disk:
            _shut_down(disk)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no file system can be made on a loop device and shut down: {error}"
    return None


def cycle(seconds: float, durability: str = "fsync") -> Cycle:
    """Let writers append for so long, cut the power, and look what is there when it is back."""
    with tempfile.TemporaryDirectory(prefix="memlog-power-") as folder:
        root = Path(folder)
        with _mounted(root) as disk:
            acknowledged = _written_until_the_cut(disk, seconds, durability)
        with _mounted(root) as disk:
            return _looked_at(disk / "store", acknowledged)


def _written_until_the_cut(disk: Path, seconds: float, durability: str) -> set[str]:
    """The events whose acknowledgements were read before the power was cut."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, disk / "store", durability, f"w{number}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for number in range(_WRITERS)
    ]
    try:
        said = _heard([writer.stdout.fileno() for writer in writers if writer.stdout is not None], seconds)
        _shut_down(disk)
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    return {line.decode() for text in said for line in text.split(b"\n")[:-1]}


def _heard(pipes: list[int], seconds: float) -> list[bytes]:
    """What comes through each pipe for so many seconds from the first word on."""
    said = dict.fromkeys(pipes, b"")
    end: float | None = None
    while end is None or time.monotonic() < end:
        for pipe in select.select(pipes, [], [], 0.05)[0]:
            data = os.read(pipe, 65536)
            assert data, "a writer has ended before the cut"
            said[pipe] += data
        if end is None and all(said.values()):
            end = time.monotonic() + seconds
    return list(said.values())


def _looked_at(store: Path, acknowledged: set[str]) -> Cycle:
    events = read_accepted_events(list_segments(store / "log")[0], lambda entry, why: None)
    found = {event.event.id: event.event for event in events if isinstance(event.event, Message)}
    submitted = {str(each): message(str(each)) for each in found}
    lost = acknowledged - submitted.keys()
    problems = log_problems(store, submitted, acknowledged - lost)
    return Cycle(len(acknowledged), len(lost), problems)


@contextmanager
def _mounted(root: Path) -> Iterator[Path]:
    """The disk in `root`, which is made where there is none."""
    image, disk = root / "image", root / "disk"
    if not image.exists():
        with image.open("wb") as file:
            file.truncate(_SIZE)
        _run("mkfs.ext4", "-q", "-F", image)
        disk.mkdir()
    _run("mount", "-o", "loop", image, disk)
    try:
        yield disk
    finally:
        _run("umount", disk)


def _shut_down(disk: Path) -> None:
    fd = os.open(disk, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSH))
    finally:
        os.close(fd)


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True)

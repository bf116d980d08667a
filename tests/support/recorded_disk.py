"""A disk that does the real thing and keeps what was asked of it, call by call."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memlog.eventlog.files import disk

REAL: dict[str, Callable[..., Any]] = {name: getattr(disk, name) for name in disk.CALLS}
"""The functions of `disk` as they are, whatever stands in for them now."""

ACK = "ack"
TRUNCATE = "truncate"


@dataclass(frozen=True)
class Operation:
    """One call, as far as what stands on the disk depends on it.

    call: one of `disk.CALLS`; `ack`, where the test was told that `events` are stored; or `truncate`, which
        memlog never asks for, but SQLite does.
    path: of the file or folder; of a descriptor, what it was opened as. Of a rename the old name.
    fd: the descriptor that was opened, or used; -1 where there is none.
    offset: of the first byte that was read or written; -1 where the descriptor's place decides. The length
        that a truncate leaves.
    result: what the call returned; of a write, how many bytes.
    """

    call: str
    path: Path = Path()
    fd: int = -1
    flags: int = 0
    offset: int = -1
    data: bytes = b""
    target: Path = Path()
    events: tuple[str, ...] = ()
    result: Any = None


Trace = list[Operation]


class RecordingDisk:
    """Stands in for every function of `disk`. `trace` has what was asked since the beginning.

    A call that fails is not in the trace: it has changed nothing.
    """

    def __init__(self) -> None:
        self.trace: Trace = []
        self._paths: dict[int, Path] = {}

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Until the test is over."""
        for name in disk.CALLS:
            monkeypatch.setattr(disk, name, getattr(self, f"_{name}", None) or self._plain(name))

    def ack(self, *events: str) -> None:
        """The test was told that these are stored."""
        self._keep(Operation(ACK, events=events))

    def _keep(self, operation: Operation) -> None:
        self.trace.append(operation)

    def _open(self, path: Path | str, flags: int, *, folder: int | None = None, follow: bool = False) -> int:
        fd: int = REAL["open"](path, flags, folder=folder, follow=follow)
        self._paths[fd] = self._under(folder, path)
        self._keep(Operation("open", self._paths[fd], fd, flags=flags, result=fd))
        return fd

    def _close(self, fd: int) -> None:
        REAL["close"](fd)
        # What was opened before the recording may be closed in it, by whoever collects garbage.
        self._keep(Operation("close", self._paths.pop(fd, Path()), fd))

    def _read(self, fd: int, length: int, offset: int) -> bytes:
        data: bytes = REAL["read"](fd, length, offset)
        self._keep(Operation("read", self._paths[fd], fd, offset=offset, data=data, result=len(data)))
        return data

    def _write(self, fd: int, data: bytes | memoryview) -> int:
        written: int = REAL["write"](fd, data)
        offset = os.lseek(fd, 0, os.SEEK_CUR) - written
        said = bytes(data[:written])
        self._keep(Operation("write", self._paths[fd], fd, offset=offset, data=said, result=written))
        return written

    def _overwrite(self, fd: int, data: bytes, offset: int) -> int:
        written: int = REAL["overwrite"](fd, data, offset)
        said = bytes(data[:written])
        self._keep(Operation("write", self._paths[fd], fd, offset=offset, data=said, result=written))
        return written

    def _set_mode(self, place: Path | str | int, mode: int, *, folder: int | None = None) -> None:
        REAL["set_mode"](place, mode, folder=folder)
        path = self._paths[place] if isinstance(place, int) else self._under(folder, place)
        self._keep(Operation("set_mode", path, result=mode))

    def _set_times(self, fd: int, atime_ns: int, mtime_ns: int) -> None:
        REAL["set_times"](fd, atime_ns, mtime_ns)
        self._keep(Operation("set_times", self._paths[fd], fd, result=(atime_ns, mtime_ns)))

    def _make_folder(self, path: Path | str, *, folder: int | None = None) -> None:
        REAL["make_folder"](path, folder=folder)
        self._keep(Operation("make_folder", self._under(folder, path)))

    def _rename(self, old: Path, new: Path) -> None:
        REAL["rename"](old, new)
        self._keep(Operation("rename", old, target=new))

    def _status_of_path(
        self, path: Path | str, *, folder: int | None = None, follow: bool = False
    ) -> os.stat_result:
        status: os.stat_result = REAL["status_of_path"](path, folder=folder, follow=follow)
        self._keep(Operation("status_of_path", self._under(folder, path), result=status))
        return status

    def _plain(self, name: str) -> Callable[[Any], Any]:
        """A call whose one argument is a descriptor or a path."""

        def call(place: Any) -> Any:
            result = REAL[name](place)
            fd = place if isinstance(place, int) else -1
            path = self._paths[place] if isinstance(place, int) else Path(place)
            self._keep(Operation(name, path, fd, result=result))
            return result

        return call

    def _under(self, folder: int | None, path: Path | str) -> Path:
        return Path(path) if folder is None else self._paths[folder] / path


class SnapshotDisk(RecordingDisk):
    """Records SQLite's files, too, where no strace is: as they are found at each call, and as if synced then.

    store: the store whose databases they are.
    """

    def __init__(self, store: Path) -> None:
        super().__init__()
        self._store = store
        self._known = self._databases()

    def _keep(self, operation: Operation) -> None:
        found = self._databases()
        for path in self._known.keys() - found.keys() - {operation.path}:
            self.trace.append(Operation("unlink", path))
        for path, data in found.items():
            # A file that memlog itself makes is empty before SQLite has it.
            if data != self._known.get(path, b""):
                self.trace += _rewritten(path, data)
        self._known = found
        super()._keep(operation)

    def _databases(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self._store.glob("*/*.db*") if path.suffix != ".db-shm"}


def _rewritten(path: Path, data: bytes) -> Trace:
    fd = -2
    return [
        Operation("open", path, fd, flags=os.O_CREAT),
        Operation(TRUNCATE, path, fd, offset=0),
        Operation("write", path, fd, offset=0, data=data),
        Operation("sync", path, fd),
        Operation("close", path, fd),
    ]


@contextmanager
def recording() -> Iterator[RecordingDisk]:
    """A recording disk in the place of the real one."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        recorder = RecordingDisk()
        recorder.install(monkeypatch)
        yield recorder

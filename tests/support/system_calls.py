"""What a process really asked of the system, by strace, in the words of `recorded_disk`."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.support.recorded_disk import TRUNCATE, Operation, Trace

_CALLS = (
    *("openat", "close", "write", "pwrite64", "pread64", "ftruncate", "fsync", "fdatasync"),
    *("mkdirat", "mkdir", "rename", "renameat", "renameat2", "unlink", "unlinkat", "flock"),
)
_LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)")
_ARGUMENT = re.compile(r' *(?:"((?:\\x[0-9a-f]{2})*)"|([^,]+))')
_LONGEST = 2**24


@cache
def why_no_strace() -> str | None:
    """Why no process can be traced here; None where one can."""
    try:
        done = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return "strace is not installed"
    return None if done.returncode == 0 else "strace is not allowed to trace here"


def traced(command: list[str], store: Path, output: Path, **options: object) -> Trace:
    """Run a command; return what it asked of the files of the store at `store`.

    Raises:
        AssertionError: it did not end well.
    """
    strace = ["strace", "-f", "-xx", "-s", str(_LONGEST), "-e", f"trace={','.join(_CALLS)}"]
    done = subprocess.run(
        [*strace, "--seccomp-bpf", "-o", output, *command],
        capture_output=True,
        check=False,
        **options,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, done.stderr.decode()
    return list(_Reader(store).operations(output))


@dataclass
class _Reader:
    """Keeps which descriptor stands for which file of the store."""

    store: Path
    paths: dict[int, Path] = field(default_factory=dict)

    def operations(self, output: Path) -> Iterator[Operation]:
        for line in _whole_lines(output):
            match = _LINE.match(line)
            if match is None or int(match[3]) < 0:
                continue
            arguments = [_value(*each.groups()) for each in _ARGUMENT.finditer(match[2])]
            operation = self._operation(match[1], arguments, int(match[3]))
            if operation is not None:
                yield operation

    def _operation(self, call: str, arguments: list[str | bytes], result: int) -> Operation | None:
        if call == "openat":
            return self._opened(self._path(arguments[0], arguments[1]), str(arguments[2]), result)
        if call in ("mkdir", "mkdirat", "unlink", "unlinkat", "rename", "renameat", "renameat2"):
            return self._named(call, arguments)
        fd = int(str(arguments[0]))
        if fd not in self.paths:
            return None
        path = self.paths.pop(fd) if call == "close" else self.paths[fd]
        if call in ("write", "pwrite64"):
            data = arguments[1]
            assert isinstance(data, bytes)
            offset = int(str(arguments[3])) if call == "pwrite64" else -1
            return Operation("write", path, fd, offset=offset, data=data[:result], result=result)
        if call == "ftruncate":
            return Operation(TRUNCATE, path, fd, offset=int(str(arguments[1])))
        if call == "pread64":
            return Operation("read", path, fd, offset=int(str(arguments[3])), result=result)
        if call == "flock":
            return Operation("unlock" if "LOCK_UN" in str(arguments[1]) else "lock", path, fd)
        return Operation({"fsync": "sync", "fdatasync": "sync_data"}.get(call, call), path, fd)

    def _opened(self, path: Path, flags: str, fd: int) -> Operation | None:
        self.paths.pop(fd, None)
        # The store's parents stand for themselves: that one is synced which holds the store's name.
        if self.store not in (path, *path.parents) and path not in self.store.parents:
            return None
        self.paths[fd] = path
        number = sum(getattr(os, flag) for flag in flags.strip().split("|") if hasattr(os, flag))
        return Operation("open", path, fd, flags=number, result=fd)

    def _named(self, call: str, arguments: list[str | bytes]) -> Operation | None:
        if not call.endswith(("at", "at2")):
            arguments = [part for argument in arguments for part in ("AT_FDCWD", argument)]
        path = self._path(arguments[0], arguments[1])
        if self.store not in (path, *path.parents):
            return None
        if call.startswith("rename"):
            return Operation("rename", path, target=self._path(arguments[2], arguments[3]))
        return Operation("unlink" if call.startswith("unlink") else "make_folder", path)

    def _path(self, folder: str | bytes, name: str | bytes) -> Path:
        assert isinstance(name, bytes)
        path = Path(os.fsdecode(name))
        if path.is_absolute() or str(folder) == "AT_FDCWD":
            return path
        return self.paths.get(int(str(folder)), Path("/nowhere")) / path


def _whole_lines(output: Path) -> Iterator[str]:
    """The lines of strace; a call that another thread's call came between stands on two, put together."""
    begun: dict[str, str] = {}
    for line in output.read_text().splitlines():
        thread = line.partition(" ")[0]
        if line.endswith("<unfinished ...>"):
            begun[thread] = line.removesuffix("<unfinished ...>")
        elif " resumed>" in line:
            yield begun.pop(thread) + line.partition(" resumed>")[2]
        else:
            yield line


def _value(text: str | None, other: str | None) -> str | bytes:
    if text is not None:
        return bytes.fromhex(text.replace("\\x", ""))
    assert other is not None
    return other.strip()

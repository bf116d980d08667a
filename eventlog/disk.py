"""All that memlog does to the files of the log, of its locks, and to make a generation the live one.

Each function is one call of the system: the one place where tests put a disk that fails, one that records,
and one that forgets what was not synced. What SQLite does to its own files is SQLite's.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

CALLS = (
    "open",
    "close",
    "read",
    "write",
    "overwrite",
    "position",
    "status",
    "generation",
    "look",
    "is_folder",
    "sync",
    "sync_data",
    "make_folder",
    "remove_folder",
    "set_mode",
    "set_times",
    "rename",
    "unlink",
    "entries",
    "lock",
    "unlock",
)
"""The names of the functions, each of which another one may stand in for."""

READ = os.O_RDONLY
APPEND = os.O_RDWR | os.O_APPEND
WRITE = os.O_RDWR
FOLDER = os.O_RDONLY | os.O_DIRECTORY
CREATE = os.O_CREAT
NEW = os.O_CREAT | os.O_EXCL

# A pipe or device under a file's name is not waited for; its caller looks what it has opened.
_ALWAYS = os.O_CLOEXEC | os.O_NONBLOCK


def open(path: Path | str, flags: int, *, folder: int | None = None, follow: bool = False) -> int:
    """A descriptor of `path`, which no child process inherits. What it makes is for its owner alone.

    folder: the descriptor of the folder that `path` is in. follow: also where the last name is a link.
    """
    no_link = 0 if follow else os.O_NOFOLLOW
    return os.open(path, flags | _ALWAYS | no_link, 0o600, dir_fd=folder)


def close(fd: int) -> None:
    """Give a descriptor back; what it locks is free."""
    os.close(fd)


def read(fd: int, length: int, offset: int) -> bytes:
    """At most `length` bytes from `offset`; none behind the end."""
    return os.pread(fd, length, offset)


def write(fd: int, data: bytes | memoryview) -> int:
    """Write at the descriptor's place, or at the end where it appends; return how many bytes were written."""
    return os.write(fd, data)


def overwrite(fd: int, data: bytes | memoryview, offset: int) -> int:
    """Write over the bytes at `offset`, with a descriptor that does not append; return how many were written.

    What a user asks to be erased is: nothing else of the log is ever written over.
    """
    return os.pwrite(fd, data, offset)


def position(fd: int) -> int:
    """The descriptor's place: behind what it wrote last."""
    return os.lseek(fd, 0, os.SEEK_CUR)


def status(fd: int) -> os.stat_result:
    """What stands behind a descriptor."""
    return os.fstat(fd)


def generation(fd: int) -> int | None:
    """What tells a file from an earlier one that had its inode; None where the file system does not say.

    Linux, FS_IOC_GETVERSION of ioctl_getflags(2) and the headers of ext4, xfs and btrfs.
    """
    if sys.platform != "linux":
        return None
    import fcntl

    size = 8 if sys.maxsize > 2**32 else 4  # bytes of a C long: part of the number of the request
    try:
        found = fcntl.ioctl(fd, 2 << 30 | size << 16 | ord("v") << 8 | 1, bytes(size))
    except OSError:
        return None
    return int.from_bytes(found[:4], sys.byteorder)


def look(path: Path | str, *, folder: int | None = None, follow: bool = False) -> os.stat_result:
    """What stands at `path`; of a link the link itself, unless it is to `follow` it."""
    return os.stat(path, dir_fd=folder, follow_symlinks=follow)


def is_folder(path: Path) -> bool:
    """Whether a folder stands at `path`, or behind the link that does."""
    return path.is_dir()


def sync(fd: int) -> None:
    """Make a file durable, or the names in a folder."""
    os.fsync(fd)


def sync_data(fd: int) -> None:
    """Make the bytes of a file durable, and its size."""
    if sys.platform == "darwin":
        import fcntl

        # macOS: fsync leaves the bytes in the drive's cache (man 2 fsync).
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(fd)


def make_folder(path: Path | str, *, folder: int | None = None) -> None:
    """Make a folder, for its owner alone."""
    os.mkdir(path, 0o700, dir_fd=folder)


def remove_folder(path: Path) -> None:
    """Remove a folder in which nothing stands."""
    path.rmdir()


def set_mode(target: Path | str | int, mode: int, *, folder: int | None = None) -> None:
    """Set the permissions of what stands at a path, or behind a descriptor."""
    os.chmod(target, mode, dir_fd=folder)


def set_times(fd: int, atime_ns: int, mtime_ns: int) -> None:
    """Set when a file was last read and last changed."""
    os.utime(fd, ns=(atime_ns, mtime_ns))


def rename(old: Path, new: Path) -> None:
    """Give `old` the name `new`, in the place of what stands there, at once."""
    old.replace(new)


def unlink(path: Path) -> None:
    """Remove a file's name."""
    path.unlink()


def entries(folder: Path | str | int) -> "AbstractContextManager[Iterator[os.DirEntry[str]]]":
    """What stands in a folder, in no order."""
    return os.scandir(folder)


def lock(fd: int) -> None:
    """Lock the file for this descriptor alone, as flock does: the kernel frees it at kill -9.

    Raises:
        BlockingIOError: another one has it.
    """
    import fcntl

    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def unlock(fd: int) -> None:
    """Free what `lock` locked."""
    import fcntl

    fcntl.flock(fd, fcntl.LOCK_UN)

"""The system calls on log files, lock files, and generations that are being published.

There is one function for each call, so that tests can substitute a disk that fails, records calls or loses
unsynced writes. SQLite accesses its own files directly.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

CALLS = tuple(
    "open close read write overwrite position_of_descriptor status_of_descriptor inode_generation"
    " status_of_path is_folder is_mounted_read_only sync sync_data make_folder remove_folder set_mode"
    " set_times rename unlink scan_folder lock unlock".split()
)
"""The names of the functions that tests may replace."""

READ = os.O_RDONLY
APPEND = os.O_RDWR | os.O_APPEND
WRITE = os.O_RDWR
FOLDER = os.O_RDONLY | os.O_DIRECTORY
CREATE = os.O_CREAT
NEW = os.O_CREAT | os.O_EXCL

# Opening a pipe or device does not block; callers check what they have opened.
_ALWAYS = os.O_CLOEXEC | os.O_NONBLOCK

_locked: set[int] = set()
"""The descriptors whose files this process has locked."""


def open(path: Path | str, flags: int, *, folder: int | None = None, follow: bool = False) -> int:
    """Open `path`; child processes do not inherit the descriptor, and only the owner can access a new file.

    folder: a folder's descriptor, to which `path` is relative. follow: follow a symbolic link.
    """
    no_link = 0 if follow else os.O_NOFOLLOW
    return os.open(path, flags | _ALWAYS | no_link, 0o600, dir_fd=folder)


def close(fd: int) -> None:
    """Close a descriptor, first releasing its lock, which a forked child may also hold."""
    if fd in _locked:
        _release(fd)
    os.close(fd)


def read(fd: int, length: int, offset: int) -> bytes:
    """Read up to `length` bytes at `offset`; return b"" at the end of the file."""
    return os.pread(fd, length, offset)


def write(fd: int, data: bytes | memoryview) -> int:
    """Write at the current position, or append; return the number of bytes written."""
    return os.write(fd, data)


def overwrite(fd: int, data: bytes | memoryview, offset: int) -> int:
    """Write at `offset` and return the number of bytes written; `fd` must not be opened for appending.

    Only erasures overwrite log bytes.
    """
    return os.pwrite(fd, data, offset)


def position_of_descriptor(fd: int) -> int:
    """Return the descriptor's position, which is the end of its last write."""
    return os.lseek(fd, 0, os.SEEK_CUR)


def status_of_descriptor(fd: int) -> os.stat_result:
    """Return an open file's status."""
    return os.fstat(fd)


def inode_generation(fd: int) -> int | None:
    """Return a number that distinguishes files that reuse an inode; None if the file system provides none.

    Linux only: see FS_IOC_GETVERSION in ioctl_getflags(2), and the headers of ext4, xfs and btrfs.
    """
    if sys.platform != "linux":
        return None
    import fcntl

    size = 8 if sys.maxsize > 2**32 else 4  # bytes of a C long, part of the request's number
    try:
        answer = fcntl.ioctl(fd, 2 << 30 | size << 16 | ord("v") << 8 | 1, bytes(size))
    except OSError:
        return None
    return int.from_bytes(answer[:4], sys.byteorder)


def status_of_path(path: Path | str, *, folder: int | None = None, follow: bool = False) -> os.stat_result:
    """Return the status of `path`, following symbolic links only if `follow` is true."""
    return os.stat(path, dir_fd=folder, follow_symlinks=follow)


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder or a symbolic link to one."""
    return path.is_dir()


def is_mounted_read_only(path: Path) -> bool:
    """Whether the file system of `path` is mounted read-only."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def sync(fd: int) -> None:
    """Sync a file, or the names in a folder, to disk."""
    os.fsync(fd)


def sync_data(fd: int) -> None:
    """Sync a file's contents and size to disk."""
    if sys.platform == "darwin":
        import fcntl

        # macOS: fsync leaves the bytes in the drive's cache (man 2 fsync).
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(fd)


def make_folder(path: Path | str, *, folder: int | None = None) -> None:
    """Create a folder that only its owner can access."""
    os.mkdir(path, 0o700, dir_fd=folder)


def remove_folder(path: Path) -> None:
    """Remove an empty folder."""
    path.rmdir()


def set_mode(target: Path | str | int, mode: int, *, folder: int | None = None) -> None:
    """Set the permissions of a path or an open file."""
    os.chmod(target, mode, dir_fd=folder)


def set_times(fd: int, atime_ns: int, mtime_ns: int) -> None:
    """Set the access and modification times, in nanoseconds."""
    os.utime(fd, ns=(atime_ns, mtime_ns))


def rename(old: Path, new: Path) -> None:
    """Rename `old` to `new`, atomically replacing an existing file."""
    old.replace(new)


def unlink(path: Path) -> None:
    """Remove a file's name."""
    path.unlink()


def scan_folder(folder: Path | str | int) -> "AbstractContextManager[Iterator[os.DirEntry[str]]]":
    """Iterate over a folder's entries, in arbitrary order; use the iterator as a context manager."""
    return os.scandir(folder)


def lock(fd: int) -> None:
    """Lock a file exclusively with flock. Raises BlockingIOError if another descriptor holds the lock."""
    import fcntl

    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _locked.add(fd)


def unlock(fd: int) -> None:
    """Release the lock on a file."""
    _release(fd)


def _release(fd: int) -> None:
    # Not in `unlock`, which tests replace: `close` must always release the lock.
    import fcntl

    _locked.discard(fd)
    fcntl.flock(fd, fcntl.LOCK_UN)


def _drop_inherited_locks() -> None:  # pragma: no cover - runs in a forked child
    """Drop the parent's locks, which a forked child would otherwise hold until it exits.

    Unlocking would release them in the parent too, so the descriptors are redirected to /dev/null. They stay
    open, so that closing them later cannot close other files.
    """
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for fd in _locked:
        os.dup2(nothing, fd, inheritable=False)
    os.close(nothing)
    _locked.clear()


os.register_at_fork(after_in_child=_drop_inherited_locks)

"""Advisory file locks (flock) with a deadline; the kernel releases them even after kill -9."""

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from memlog.eventlog.errors import Busy, LogError
from memlog.eventlog.files import disk, file_io
from memlog.eventlog.files.file_io import closing_descriptor, status_at
from memlog.eventlog.log.layout import DISPOSABLE, LOG
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.eventlog.settings import DEFAULTS

TIMEOUT = DEFAULTS.lock_timeout
"""Seconds to wait for a lock by default."""

_FIRST_PAUSE = 0.0002
_LONGEST_PAUSE = 0.010
_BETWEEN_LOOKS = 0.25
_PROC = "/proc"
_held_by_thread: set[tuple[int, Path]] = set()
"""Pairs of a thread and the path of a lock file that it holds; see `holding_lock`."""
os.register_at_fork(after_in_child=_held_by_thread.clear)


def lock_file(
    fd: int,
    what: str,
    timeout: float,
    *,
    if_stopped: float | None = None,
    is_held_here: Callable[[], bool] = lambda: False,
) -> None:
    """Lock an open file exclusively, waiting up to `timeout` seconds.

    what: the file's name in error messages. if_stopped: seconds to wait if the process that holds the lock is
      stopped (SIGSTOP, Ctrl-Z); None for `timeout`.
    is_held_here: returns whether a thread of this process holds the lock; the deadline is extended while it
      does.

    Raises Busy if the file stays locked; the message names the holder, if the system knows it.
    """
    started = time.monotonic()
    next_look = started + (timeout if if_stopped is None else if_stopped)
    pause = _FIRST_PAUSE
    while not _try_lock(fd):
        now = time.monotonic()
        if is_held_here():
            started = now
        remaining = started + timeout - now
        if now >= next_look:
            next_look = now + _BETWEEN_LOOKS
            remaining = 0 if _is_holder_stopped(fd) else remaining
        if remaining <= 0:
            raise Busy(f"{what} is locked by {describe_holder(fd)}", hint="try again, or stop that process")
        time.sleep(min(pause, remaining))
        pause = min(pause * 2, _LONGEST_PAUSE)


@contextmanager
def holding_lock(
    path: Path,
    what: str,
    timeout: float,
    *,
    if_stopped: float | None = None,
    is_held_here: Callable[[], bool] = lambda: False,
) -> Iterator[None]:
    """Hold the lock file at `path` within the context, creating it if missing; see `lock_file`.

    The file is never removed. Raises Busy immediately if this thread already holds the lock, since a callback
    or signal handler would otherwise wait for its own thread.
    """
    mine = threading.get_ident(), path.absolute()
    with closing_descriptor(file_io.open_file(path, disk.WRITE | disk.CREATE)) as fd:
        if mine in _held_by_thread and not _try_lock(fd):
            raise Busy(
                f"{what} is in use by this thread",
                hint="do not call memlog from a callback or a signal handler",
            )
        lock_file(fd, what, timeout, if_stopped=if_stopped, is_held_here=is_held_here)
        try:
            _held_by_thread.add(mine)
            yield
        finally:
            _held_by_thread.discard(mine)


@contextmanager
def holding_lock_if_file_exists(
    path: Path, what: str, timeout: float, *, if_stopped: float | None = None
) -> Iterator[bool]:
    """Hold the lock file at `path` if it exists, even if it is read-only; yield whether it exists."""
    try:
        fd = disk.open(path, disk.READ)
    except FileNotFoundError:
        yield False
        return
    with closing_descriptor(fd):
        lock_file(fd, what, timeout, if_stopped=if_stopped)
        yield True


def is_lock_held(path: Path) -> bool:
    """Whether a process holds the lock file at `path`; False if it does not exist."""
    try:
        fd = disk.open(path, disk.READ)
    except FileNotFoundError:
        return False
    with closing_descriptor(fd):
        return not _try_lock(fd)


def _try_lock(fd: int) -> bool:
    try:
        disk.lock(fd)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EINTR):
            return False
        raise
    return True


def describe_holder(fd: int) -> str:
    """Describe the holder of a lock in an error message: `process 123`, or `another process` if unknown."""
    holders = _holder_ids(fd)
    if not holders:
        return "another process"
    return f"process {', '.join(sorted(holders))}" + (", which is stopped" if _is_holder_stopped(fd) else "")


def _is_holder_stopped(fd: int) -> bool:
    holders = _holder_ids(fd)
    return bool(holders) and all(_process_state(pid) in ("T", "t") for pid in holders)


def _process_state(pid: str) -> str:
    """Return the state letter of a Linux process, from /proc/pid/stat (see proc(5)); "" if unknown."""
    return _read_proc_file(pid, "stat").rpartition(")")[2].strip()[:1]


def _holder_ids(fd: int) -> set[str]:
    """Return the ids of the processes with a flock on this file, from /proc/locks on Linux."""
    inode = f":{disk.status_of_descriptor(fd).st_ino}"
    listing = _read_proc_file("locks").splitlines()
    fields = [line.split() for line in listing if " FLOCK " in line and "->" not in line]
    return {line[4] for line in fields if line[5].endswith(inode)}


def _read_proc_file(*path: str) -> str:
    """Read a file below /proc; return "" if that is impossible."""
    try:
        return Path(_PROC, *path).read_text(errors="replace")
    except OSError:
        return ""


# Files that root creates in another user's store would be unreadable for the owner. So root continues as the
# owner, or is refused.

Answer = TypeVar("Answer")
_ROOT = 0


def check_owner(store: Path) -> None:
    """Raise LogError if this process runs as root but the store belongs to another user."""
    if (
        os.geteuid() == _ROOT
        and (owner := _status_of_path_or_none(store)) is not None
        and owner.st_uid != _ROOT
    ):
        raise _owner_error(store, owner, "its owner cannot read files that root creates")


def drop_root_privileges(store: Path) -> None:
    """Drop root privileges, if any, by becoming the owner of the store or of its nearest existing parent.

    Raises LogError if the system refuses, or if that user cannot read memlog or this Python.
    """
    if os.geteuid() != _ROOT:
        return
    store = store.absolute()
    owner = next(filter(None, map(_status_of_path_or_none, (store, *store.parents))), None)
    if owner is None or owner.st_uid == _ROOT:
        return
    name, group = _look_up_account(owner)
    try:
        os.setgroups([]) if name is None else os.initgroups(name, group)
        os.setegid(group)
        os.seteuid(owner.st_uid)
        unread = [
            file for file in (os.__file__, __file__) if not os.access(file, os.R_OK, effective_ids=True)
        ]
        os.seteuid(_ROOT)
        if unread:
            raise _owner_error(
                store,
                owner,
                f"its owner cannot read {escape_invalid_utf8(Path(unread[0]))}, which memlog needs",
            )
        os.setgid(group)
        os.setuid(owner.st_uid)
    except OSError as error:
        raise _owner_error(store, owner, f"cannot switch to that user: {error.strerror}") from error


def _status_of_path_or_none(path: Path) -> os.stat_result | None:
    with suppress(OSError):
        return disk.status_of_path(path, follow=True)
    return None


def _look_up_account(owner: os.stat_result) -> tuple[str | None, int]:
    """Return the name and primary group of a folder's owner; None and the folder's group if unknown."""
    # Imported here: only root needs it.
    import pwd

    try:
        account = pwd.getpwuid(owner.st_uid)
    except KeyError:
        return None, owner.st_gid
    return account.pw_name, account.pw_gid


def _owner_error(store: Path, owner: os.stat_result, why: str) -> LogError:
    name = _look_up_account(owner)[0]
    user = f"#{owner.st_uid}" if name is None else name
    return LogError(
        f"{escape_invalid_utf8(store)} belongs to {f'user {owner.st_uid}' if name is None else name}: {why}",
        hint=f"use sudo -u '{user}' …, or start the container with --user {owner.st_uid}:{owner.st_gid}",
        code="cannot_create",
        retryable=False,
    )


def find_permission_errors(store: Path) -> Iterator[PermissionError]:
    """Yield an error for each path of a writable store that this user cannot both read and write."""
    if os.access(store, os.W_OK):
        for name in (LOG, *DISPOSABLE):
            yield from _find_refusals_at(store / name)


def _find_refusals_at(path: Path) -> Iterator[PermissionError]:
    status = status_at(path)
    is_folder = status is not None and stat.S_ISDIR(status.st_mode)
    if status is None or stat.S_ISLNK(status.st_mode):
        return
    if not os.access(path, os.R_OK | os.W_OK | (os.X_OK if is_folder else 0)):
        yield PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    elif is_folder:
        with disk.scan_folder(path) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            yield from _find_refusals_at(path / name)


def retry_without_unusable(store: Path, work: Callable[[], Answer], notify: Callable[[str], None]) -> Answer:
    """Call `work`, and retry whenever it fails on another user's disposable file, after removing that file.

    notify: called with a note about each removal.
    """
    for _ in DISPOSABLE:
        try:
            return work()
        except PermissionError as error:
            note = remove_or_rename_unusable(store, error)
            if note is None:
                raise
            notify(note)
    return work()


def remove_or_rename_unusable(store: Path, refused: OSError) -> str | None:
    """Remove a disposable file, or rename its folder if only root may remove it; return a note about it.

    Returns None if the file is not disposable, or if the system also refuses to rename its folder.
    """
    path = Path(str(refused.filename))
    top = path.relative_to(store).parts[:1] if path.is_relative_to(store) else ()
    if not top or top[0] not in DISPOSABLE:
        return None
    try:
        disk.unlink(path)
        done = "it was removed"
    except OSError:
        folder = store / top[0]
        aside = folder.with_name(f"{folder.name}.unreadable-{os.urandom(4).hex()}")
        try:
            disk.rename(folder, aside)
        except OSError:
            return None
        done = f"{escape_invalid_utf8(folder)} was renamed to {aside.name}, which root can remove"
    return f"{escape_invalid_utf8(path)}: {refused.strerror}: {done}, and memlog will recreate it"

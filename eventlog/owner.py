"""The owner of a store: what root makes in another user's store, its owner could not read.

So root goes on as the owner, or is refused; nothing is given to another owner.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from memlog.eventlog import disk
from memlog.eventlog.errors import LogError
from memlog.eventlog.file_io import status_at
from memlog.eventlog.layout import DISPOSABLE, LOG
from memlog.eventlog.streams import shown

Answer = TypeVar("Answer")
_ROOT = 0


def check_owner(store: Path) -> None:
    """Raises LogError if this process is root's and the store is another user's."""
    if os.geteuid() == _ROOT and (owner := _owner_of(store)) is not None and owner.st_uid != _ROOT:
        raise _refused(store, owner, "what root makes there its owner cannot read")


def become_owner(store: Path) -> None:
    """Go on as the owner of a store if this process is root's, for as long as it lives.

    The owner of a store that is still missing is that of the nearest folder above.

    Raises:
        LogError: the system refuses it, or the owner cannot read memlog or this Python.
    """
    if os.geteuid() != _ROOT:
        return
    store = store.absolute()
    owner = next(filter(None, map(_owner_of, (store, *store.parents))), None)
    if owner is None or owner.st_uid == _ROOT:
        return
    name, group = _account(owner)
    try:
        os.setgroups([]) if name is None else os.initgroups(name, group)
        os.setegid(group)
        os.seteuid(owner.st_uid)
        unread = [
            file for file in (os.__file__, __file__) if not os.access(file, os.R_OK, effective_ids=True)
        ]
        os.seteuid(_ROOT)
        if unread:
            raise _refused(store, owner, f"its owner cannot read {shown(Path(unread[0]))}, which this needs")
        os.setgid(group)
        os.setuid(owner.st_uid)
    except OSError as error:
        raise _refused(store, owner, f"root cannot become its owner: {error.strerror}") from error


def _owner_of(path: Path) -> os.stat_result | None:
    with suppress(OSError):
        return disk.look(path, follow=True)
    return None


def _account(owner: os.stat_result) -> tuple[str | None, int]:
    """The name and the first group of a user; the group of the folder for one without a name."""
    # Imported here: only root needs it.
    import pwd

    try:
        account = pwd.getpwuid(owner.st_uid)
    except KeyError:
        return None, owner.st_gid
    return account.pw_name, account.pw_gid


def _refused(store: Path, owner: os.stat_result, why: str) -> LogError:
    name = _account(owner)[0]
    user = f"#{owner.st_uid}" if name is None else name
    return LogError(
        f"{shown(store)} belongs to {f'user {owner.st_uid}' if name is None else name}: {why}",
        hint=f"sudo -u '{user}' …; in a container, start it with --user {owner.st_uid}:{owner.st_gid}",
        code="cannot_create",
        retryable=False,
    )


def refusals(store: Path) -> Iterator[PermissionError]:
    """An error for each file and folder of a store that this user may not read and write.

    Nothing of a store that cannot be written at all.
    """
    if os.access(store, os.W_OK):
        for name in (LOG, *DISPOSABLE):
            yield from _refused_below(store / name)


def _refused_below(path: Path) -> Iterator[PermissionError]:
    status = status_at(path)
    is_folder = status is not None and stat.S_ISDIR(status.st_mode)
    if status is None or stat.S_ISLNK(status.st_mode):
        return
    if not os.access(path, os.R_OK | os.W_OK | (os.X_OK if is_folder else 0)):
        yield PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    elif is_folder:
        with disk.entries(path) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            yield from _refused_below(path / name)


def making_way(store: Path, work: Callable[[], Answer], notify: Callable[[str], None]) -> Answer:
    """Do `work`, again after each disposable file that another user has made unreadable was removed.

    notify: called with what was removed.
    """
    for _ in DISPOSABLE:
        try:
            return work()
        except PermissionError as error:
            note = remove_unusable(store, error)
            if note is None:
                raise
            notify(note)
    return work()


def remove_unusable(store: Path, refused: OSError) -> str | None:
    """Remove a disposable file, or rename its folder, which root alone can empty.

    Returns a note on what was done; None if it is not disposable, or the system refuses this, too.
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
        done = f"{shown(folder)} was renamed to {aside.name}, which root can remove"
    return f"{shown(path)}: {refused.strerror}: {done}, and memlog makes it anew"

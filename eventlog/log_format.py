"""`log/FORMAT` names the format of the log, so that an older memlog does not write into a newer one."""

import errno
from contextlib import suppress
from pathlib import Path

from memlog.eventlog import disk, locks, permissions
from memlog.eventlog.errors import LogError
from memlog.eventlog.file_io import check_regular, overwrite_all
from memlog.eventlog.folders import make_path
from memlog.eventlog.layout import FORMAT

NUMBER = 2
_HEAD = b"memlog log format "
LINE = b"%s%d\n" % (_HEAD, NUMBER)

_MOST_DIGITS = 9
_LONGEST = 4096
_LOCK_TIMEOUT = 10.0


def check_writable(log: Path) -> bool:
    """Check that this memlog may write to `log`; return whether the log names its format.

    Raises:
        LogError: the log has a newer format, or its FORMAT is damaged.
        OSError: FORMAT cannot be read.
    """
    try:
        fd = disk.open(log / FORMAT, disk.READ)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _damaged(log) from error
        raise
    try:
        check_regular(fd)
        text = disk.read(fd, _LONGEST, 0)
    except FileExistsError as error:
        raise _damaged(log) from error
    finally:
        disk.close(fd)
    number = _number(text)
    if number is None:
        raise _damaged(log)
    if number > NUMBER:
        raise LogError(
            f"{log.name}/{FORMAT}: the log has format {number}; this memlog writes format {NUMBER}",
            hint="update memlog; this version still reads the log",
            code="newer_format",
            retryable=False,
        )
    return True


def claim(log: Path, *, lock_timeout: float = _LOCK_TIMEOUT) -> bool:
    """Check as `check_writable`, and write FORMAT where the log has none; return whether it was written.

    lock_timeout: seconds to wait for another process that writes it.

    Raises as `check_writable`; OSError also where the file cannot be written.
    """
    if check_writable(log):
        return False
    make_path(log)
    folder = disk.open(log, disk.FOLDER, follow=True)
    try:
        locks.acquire(folder, log.name, lock_timeout)
        # Another process may have been faster.
        return not check_writable(log) and _write(log)
    finally:
        disk.close(folder)


def _number(text: bytes) -> int | None:
    digits = text.removeprefix(_HEAD).rstrip()
    is_named = text.startswith(_HEAD) and digits.isdigit() and not digits.startswith(b"0")
    return int(digits) if is_named and len(digits) <= _MOST_DIGITS else None


def _write(log: Path) -> bool:
    # Hidden, so that no reader takes the draft that a kill leaves for a part of the log.
    draft = log / f".{FORMAT}.draft"
    with suppress(FileNotFoundError):
        disk.unlink(draft)
    fd = permissions.open_file(draft, disk.WRITE | disk.NEW)
    try:
        overwrite_all(fd, LINE, 0)
        # Else a power cut could leave the name with no bytes, which is a damaged FORMAT.
        disk.sync_data(fd)
    finally:
        disk.close(fd)
    disk.rename(draft, log / FORMAT)
    return True


def _damaged(log: Path) -> LogError:
    return LogError(
        f"{log.name}/{FORMAT} names no format of the log",
        hint=f"restore it from a copy of the log; or, if no newer memlog has written here, remove it:"
        f" the next append writes `{LINE.decode().strip()}`",
        code="damaged_format",
        retryable=False,
    )

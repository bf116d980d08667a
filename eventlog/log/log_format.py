"""`log/FORMAT` has the format number of the log, so that an older memlog does not write to a newer log."""

from pathlib import Path

from memlog.eventlog.errors import LogError
from memlog.eventlog.files import disk, locks
from memlog.eventlog.files.file_io import closing, drafted, open_regular, overwrite_all
from memlog.eventlog.files.folders import make_path
from memlog.eventlog.log.layout import FORMAT

NUMBER = 2
_HEAD = b"memlog log format "
LINE = b"%s%d\n" % (_HEAD, NUMBER)

_MOST_DIGITS = 9
_LONGEST = 4096


def check_writable(log: Path) -> bool:
    """Whether FORMAT exists, after a check that this memlog may write to `log`.

    Raises LogError if the log has a newer format or FORMAT is damaged, OSError if it cannot be read.
    """
    try:
        with closing(open_regular(log / FORMAT, disk.READ)) as fd:
            number = _number(disk.read(fd, _LONGEST, 0))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except FileExistsError as error:
        raise _damaged(log) from error
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


def claim(log: Path, *, lock_timeout: float = locks.TIMEOUT) -> bool:
    """Write FORMAT unless it exists; return whether it was missing. Raises Busy, and as `check_writable`."""
    if check_writable(log):
        return False
    make_path(log)
    with closing(disk.open(log, disk.FOLDER, follow=True)) as folder:
        locks.acquire(folder, log.name, lock_timeout)
        # Another process may have been faster.
        if check_writable(log):
            return False
        # Hidden: no reader takes the draft that a kill leaves for a part of the log.
        with drafted(log / FORMAT, log / f".{FORMAT}.draft") as fd:
            overwrite_all(fd, LINE, 0)
            # Otherwise a power cut could leave an empty file, a damaged FORMAT.
            disk.sync_data(fd)
        return True


def _number(text: bytes) -> int | None:
    digits = text.removeprefix(_HEAD).rstrip()
    is_named = text.startswith(_HEAD) and digits.isdigit() and not digits.startswith(b"0")
    return int(digits) if is_named and len(digits) <= _MOST_DIGITS else None


def _damaged(log: Path) -> LogError:
    return LogError(
        f"{log.name}/{FORMAT} does not name a format of the log",
        hint=f"restore it from a copy of the log; or, if no newer memlog has written here, remove it:"
        f" the next append writes `{LINE.decode().strip()}`",
        code="damaged_format",
        retryable=False,
    )

"""The format number in `log/FORMAT`, which keeps older versions of memlog from writing to newer logs."""

from pathlib import Path

from memlog.eventlog.errors import LogError
from memlog.eventlog.files import disk, locks
from memlog.eventlog.files.file_io import closing_descriptor, open_regular_file, overwrite_all, replacing_file
from memlog.eventlog.files.folders import make_folder_and_parents
from memlog.eventlog.log.layout import FORMAT

NUMBER = 2
_HEAD = b"memlog log format "
LINE = b"%s%d\n" % (_HEAD, NUMBER)

_MOST_DIGITS = 9
_LONGEST = 4096


def check_version_may_write(log: Path) -> bool:
    """Check that this version may write to `log`; return whether FORMAT exists.

    Raises LogError if the format is newer or FORMAT is damaged; OSError if it cannot be read.
    """
    try:
        with closing_descriptor(open_regular_file(log / FORMAT, disk.READ)) as fd:
            number = _parse_format_number(disk.read(fd, _LONGEST, 0))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except FileExistsError as error:
        raise _damage_error(log) from error
    if number is None:
        raise _damage_error(log)
    if number > NUMBER:
        raise LogError(
            f"{log.name}/{FORMAT}: the log has format {number}; this memlog writes format {NUMBER}",
            hint="update memlog; this version can only read the log",
            code="newer_format",
            retryable=False,
        )
    return True


def claim_format(log: Path, *, lock_timeout: float = locks.TIMEOUT) -> bool:
    """Write FORMAT unless it exists; return whether it was written. Raises Busy, LogError and OSError."""
    if check_version_may_write(log):
        return False
    make_folder_and_parents(log)
    with closing_descriptor(disk.open(log, disk.FOLDER, follow=True)) as folder:
        locks.lock_file(folder, log.name, lock_timeout)
        # Another process may have been faster.
        if check_version_may_write(log):
            return False
        # The draft is a hidden file, so that readers ignore it if a kill leaves it behind.
        with replacing_file(log / FORMAT, log / f".{FORMAT}.draft") as fd:
            overwrite_all(fd, LINE, 0)
            # Sync before the rename, so that a power cut cannot leave an empty FORMAT.
            disk.sync_data(fd)
        return True


def _parse_format_number(text: bytes) -> int | None:
    digits = text.removeprefix(_HEAD).rstrip()
    is_valid = text.startswith(_HEAD) and digits.isdigit() and not digits.startswith(b"0")
    return int(digits) if is_valid and len(digits) <= _MOST_DIGITS else None


def _damage_error(log: Path) -> LogError:
    return LogError(
        f"{log.name}/{FORMAT} does not contain a log format",
        hint=f"restore it from a copy of the log or, if no newer memlog has written here, remove it:"
        f" the next append will write `{LINE.decode().strip()}`",
        code="damaged_format",
        retryable=False,
    )

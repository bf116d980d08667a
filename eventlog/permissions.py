"""Creates files and folders for their owner alone, and usable by the owner, whatever the umask.

The mode given at creation only loses bits, so nothing is open to others even for a moment.
"""

import stat
from pathlib import Path

from memlog.eventlog import disk

_FOLDER = 0o700
_FILE = 0o600


def make_folder(path: Path | str, *, folder: int | None = None) -> None:
    """Make a folder; see `disk.make_folder`."""
    disk.make_folder(path, folder=folder)
    if disk.look(path, folder=folder).st_mode & _FOLDER != _FOLDER:
        disk.set_mode(path, _FOLDER, folder=folder)


def open_file(path: Path | str, flags: int, *, folder: int | None = None) -> int:
    """As `disk.open`; a new file gets the owner's permissions."""
    fd = disk.open(path, flags, folder=folder)
    try:
        made = disk.status(fd)
        if made.st_size == 0 and stat.S_ISREG(made.st_mode) and made.st_mode & _FILE != _FILE:
            disk.set_mode(fd, _FILE)
    except BaseException:
        disk.close(fd)
        raise
    return fd

"""The folder of a source. Everything below it is reached name by name from one descriptor.

No link below the root is followed, also where another process puts one in the place of a folder meanwhile.
"""

import errno
import os
from pathlib import Path
from typing import Self

from memlog.eventlog import disk
from memlog.eventlog.file_io import identity


class Root:
    """An open folder, as a context manager. Its own path may be a link.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = disk.open(path, disk.FOLDER, follow=True)
        self._entered = ("", self._fd)
        """The folder that was entered last, and its descriptor."""
        self.identity = identity(disk.status(self._fd))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._move("", self._fd)
        disk.close(self._fd)

    def entries(self, folder: str) -> "list[os.DirEntry[str]]":
        """The entries of a folder, by name. They can be used until the next call.

        Raises:
            OSError: it cannot be listed, or a part of its path is a link.
        """
        with disk.entries(self._enter(folder)) as entries:
            return sorted(entries, key=lambda entry: entry.name)

    def open(self, file: str) -> int:
        """A descriptor of a file, to read it. It follows no link and waits for no pipe.

        Raises:
            OSError: it is gone or a link, or a folder above it is.
        """
        folder, name = self._place_of(file)
        return disk.open(name, disk.READ, folder=folder)

    def status(self, path: str) -> os.stat_result:
        """The status of a file, or of a link itself.

        Raises:
            OSError: it is gone, or a folder above it is gone or a link.
        """
        folder, name = self._place_of(path)
        return disk.look(name, folder=folder)

    def check_same(self) -> None:
        """Check that the root's path still names this folder.

        Raises:
            OSError: it is gone, or another folder is in its place.
        """
        if identity(disk.look(self.path, follow=True)) != self.identity:
            raise OSError(errno.ESTALE, "another folder was put in its place", str(self.path))

    def _place_of(self, path: str) -> tuple[int, str]:
        """The descriptor of the folder that holds `path`, and its name there."""
        folder, _, name = path.rpartition("/")
        return self._enter(folder), name

    def _enter(self, folder: str) -> int:
        """The descriptor of a folder, kept until the next call: files come folder by folder."""
        entered, fd = self._entered
        if entered and not f"{folder}/".startswith(f"{entered}/"):
            entered, fd = "", self._fd
            self._move(entered, fd)
        for name in filter(None, folder[len(entered) :].split("/")):
            fd = disk.open(name, disk.FOLDER, folder=fd)
            entered = f"{entered}/{name}" if entered else name
            self._move(entered, fd)
        return fd

    def _move(self, folder: str, fd: int) -> None:
        """Keep another folder's descriptor in place of the present one's."""
        _, before = self._entered
        self._entered = (folder, fd)
        if before not in (self._fd, fd):
            disk.close(before)

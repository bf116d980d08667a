"""The folder of a source. Everything below it is reached name by name from one descriptor.

No link below the root is followed, also where another process puts one in the place of a folder meanwhile.
"""

import errno
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from memlog.eventlog import disk


class Root:
    """An open folder, as a context manager. Its own path may be a link.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = disk.open(path, disk.FOLDER, follow=True)
        self._entered = ("", self._fd)
        """The folder that was asked for last, and its descriptor."""
        self.identity = _identity(disk.status(self._fd))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its descriptors."""
        self._leave()
        disk.close(self._fd)

    def entries(self, folder: str) -> "list[os.DirEntry[str]]":
        """The entries of a folder, by name. They can be asked until the next call.

        Raises:
            OSError: it cannot be listed, or a part of its path is a link.
        """
        with disk.entries(self._enter(folder)) as entries:
            return sorted(entries, key=lambda entry: entry.name)

    def open(self, file: str) -> int:
        """A descriptor of a file, to read it. Neither a link is followed nor a pipe waited for.

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
        if _identity(disk.look(self.path, follow=True)) != self.identity:
            raise OSError(errno.ESTALE, "another folder was put in its place", str(self.path))

    def _place_of(self, path: str) -> tuple[int, str]:
        """The descriptor of the folder that holds `path`, and its name there."""
        folder, _, name = path.rpartition("/")
        return self._enter(folder), name

    def _enter(self, folder: str) -> int:
        """The descriptor of a folder, kept until another one is asked for: files come folder by folder."""
        entered, fd = self._entered
        if folder == entered:
            return fd
        if entered and not folder.startswith(f"{entered}/"):
            self._leave()
            entered, fd = self._entered
        # `_below` closes what it leaves, also where it fails.
        self._entered = ("", self._fd)
        for name in folder[len(entered) :].split("/"):
            if name:
                fd = self._below(fd, name)
        self._entered = (folder, fd)
        return fd

    def _below(self, parent: int, name: str) -> int:
        try:
            return disk.open(name, disk.FOLDER, folder=parent)
        finally:
            if parent != self._fd:
                disk.close(parent)

    def _leave(self) -> None:
        if self._entered[1] != self._fd:
            disk.close(self._entered[1])
        self._entered = ("", self._fd)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino

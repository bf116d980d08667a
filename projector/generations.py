"""Generations: one SQLite file each, and CURRENT, which names the live one and is replaced atomically."""

import os
import time
from contextlib import AbstractContextManager, closing
from pathlib import Path

from memlog.eventlog import disk, permissions
from memlog.eventlog.errors import DatabaseError
from memlog.eventlog.file_io import file_version, is_regular, status_at
from memlog.eventlog.folders import make_path
from memlog.eventlog.layout import CURRENT, MODEL
from memlog.projector import atomic_file
from memlog.projector.sqlite import Connection, connect, remove_database


class Generations:
    """The files below `model/` of the store at `store`."""

    def __init__(self, store: Path) -> None:
        self.folder = store / MODEL
        self._current = store / CURRENT
        self._known: tuple[tuple[int, ...], Path | None] | None = None

    def current(self) -> Path | None:
        """The live generation, if any."""
        named = self._named()
        while named is not None and not is_regular(named):
            # Two others may have taken its place since its name was read.
            self._known = None
            before, named = named, self._named()
            if named == before:
                return None
        return named

    def _named(self) -> Path | None:
        """The file that CURRENT names, which may be missing; None if it names no generation, or is a link.

        CURRENT is read again once it is another file: every step of a catch-up asks.
        """
        version, known = file_version(status_at(self._current)), self._known
        if known is None or known[0] != version:
            self._known = known = version, self._read()
        return known[1]

    def _read(self) -> Path | None:
        try:
            name = (atomic_file.read(self._current) or b"").decode().strip()
        except (NotADirectoryError, FileExistsError, UnicodeDecodeError):
            return None
        path = self.folder / name
        return path if path.parent == self.folder and path.suffix == ".db" else None

    def why_none(self) -> str:
        """Why there is no live generation."""
        is_missing = status_at(self._current) is None
        return "there was no read model" if is_missing else "model/CURRENT pointed to no valid read model"

    def make_folder(self) -> None:
        """Make the folder if it is missing."""
        make_path(self.folder)

    def new_file(self) -> Path:
        """An empty file of a name that was never used, readable for its owner alone.

        SQLite's side files take its permissions.
        """
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        path = self.folder / f"{stamp}-{os.urandom(4).hex()}.db"
        disk.close(permissions.open_file(path, disk.WRITE | disk.NEW))
        return path

    def scratch(self) -> AbstractContextManager[Connection]:
        """A context with an empty database that only this process sees; nothing of it is left.

        Its file loses its name before anything is written to it. A kill just before that leaves an empty
        file, which the next build removes.
        """
        while True:
            path = self.new_file()
            try:
                db = connect(path, "bulk")
            except DatabaseError:
                # A build that ended just now has taken it for a leftover.
                if is_regular(path):
                    raise
                continue
            remove_database(path)
            return closing(db)

    def publish(self, path: Path) -> None:
        """Make `path`, which is closed, the live generation; it and one predecessor stay.

        Under the build lock and the projector lock.
        """
        predecessor = self.current()
        atomic_file.sync(path)
        # The name, too: after a power cut CURRENT could else name a file that is not there.
        atomic_file.sync(self.folder)
        atomic_file.replace(self._current, path.name.encode() + b"\n")
        self.remove_others({path, predecessor})

    def remove_others(self, kept: set[Path | None]) -> None:
        """Remove every generation but `kept`: older ones, and what killed builds left. Under the build lock.

        A reader that has one open keeps it until it closes it.
        """
        with disk.entries(self.folder) as entries:
            names = [entry.name for entry in entries]
        databases = {self.folder / (name.partition(".db")[0] + ".db") for name in names if ".db" in name}
        for database in databases - kept:
            remove_database(database)

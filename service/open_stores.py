"""The stores that a server has open, by project; each is watched while the server runs."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from memlog.eventlog.errors import Busy, MemlogError, NotFound
from memlog.eventlog.streams import shown
from memlog.service.projects import Projects
from memlog.service.store import Store

DEFAULT = "default"
"""The project of a server of one store."""

_MOST = 16
"""Stores without documents that stay open: each has about 12 descriptors and 5 threads."""

_AGAIN = 5.0
"""Seconds after which a watch that failed, or that another process holds, is begun again."""

_PATIENCE = 2.0

T = TypeVar("T")


class _Opened:
    """An open store, how many requests use it, and its watch."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.users = 0
        self.has_documents = False
        self.watch: threading.Thread | None = None
        self.stop = threading.Event()
        self.is_closing = threading.Event()

    def end(self) -> None:
        """Have the watch end."""
        self.is_closing.set()
        self.stop.set()

    def close(self) -> None:
        """Wait for the watch, and close the store."""
        if self.watch is not None:
            self.watch.join(_PATIENCE)
        self.store.close()


def _without_path(error: MemlogError, store: Path, project: str) -> MemlogError:
    """Return an error that tells a client nothing of where the server keeps its stores."""
    if error.code == "store_not_found":
        said = f"nothing is stored in the project {project!r} yet"
        return NotFound(said, hint="its first append makes it", code=error.code)
    above = f"{shown(store.parent)}/"
    error.message, error.hint = (text.replace(above, "") for text in (error.message, error.hint))
    return error


class OpenStores:
    """Opens the store of a project at the first request for it, and keeps those that were used last.

    open_store: opens the store in a folder. where: the folder of the one store, or the projects.
    notify: called with notes for people.
    """

    def __init__(
        self, open_store: Callable[[Path], Store], where: Path | Projects, notify: Callable[[str], None]
    ) -> None:
        self._open_store, self._where, self._notify = open_store, where, notify
        self._lock = threading.Lock()
        self._open: dict[Path, _Opened] = {}
        """By folder, the one that was used last at the end."""

    def run(self, project: str, call: Callable[[Store], T]) -> T:
        """What `call` returns for the store of a project. A project gets its store by its first append.

        Raises:
            BadInput: it is no name of a project.
            NotFound: the server has one store alone, and another project is named.
        """
        opened = self._entered(self._path(project))
        try:
            return call(opened.store)
        except MemlogError as error:
            raise _without_path(error, opened.store.path, project) from None
        finally:
            self._leave(opened)

    def begin(self) -> None:
        """Open the one store, or each project that has documents, so that their files are followed."""
        threading.Thread(target=self._open_followed, daemon=True).start()

    def troubles(self) -> dict[str, str]:
        """What keeps the open stores from answering fully, by part; empty where all is well."""
        with self._lock:
            stores = [each.store for each in self._open.values() if each.store.exists]
        said = {side: why for store in stores for side, why in store.maintenance.status().silent.items()}
        return {side: why for side, why in said.items() if side != "pending"}

    def close(self) -> None:
        """End the watches and close the stores."""
        with self._lock:
            opened = [*self._open.values()]
            for each in opened:
                each.end()
        for each in opened:
            each.close()

    def _path(self, project: str) -> Path:
        if isinstance(self._where, Projects):
            return self._where.path(project)
        if project != DEFAULT:
            raise NotFound(
                f"no project {project!r}",
                hint=f"this server has one store: its project is {DEFAULT}",
                code="project_not_found",
            )
        return self._where

    def _entered(self, path: Path) -> _Opened:
        with self._lock:
            opened = self._open.pop(path) if path in self._open else _Opened(self._open_store(path))
            self._open[path] = opened
            opened.users += 1
            return opened

    def _leave(self, opened: _Opened) -> None:
        with self._lock:
            opened.users -= 1
            # Not before there is a store: a watch would make one.
            if opened.watch is None and not opened.is_closing.is_set() and opened.store.exists:
                opened.watch = threading.Thread(target=self._watch, args=(opened,), daemon=True)
                opened.watch.start()
            idle = [(path, each) for path, each in self._open.items() if not each.has_documents]
            surplus = [(path, each) for path, each in idle[: max(0, len(idle) - _MOST)] if not each.users]
            for path, _ in surplus:
                del self._open[path]
        for path, each in surplus:
            self._put_away(path, each)

    def _put_away(self, path: Path, opened: _Opened) -> None:
        with suppress(MemlogError):  # one that cannot be read has nothing to follow
            opened.has_documents = opened.store.exists and bool(opened.store.documents.list())
        with self._lock:
            if opened.has_documents and path not in self._open:
                self._open[path] = opened
                return
        opened.end()
        threading.Thread(target=opened.close, daemon=True).start()

    def _open_followed(self) -> None:
        if isinstance(self._where, Path):
            self.run(DEFAULT, lambda _: None)
            return
        for project in self._where.list():
            try:
                if not project.is_being_removed and self._has_documents(project.name):
                    self.run(project.name, lambda _: None)
                    self._notify(f"{project.name}: its documents are followed")
            except MemlogError as error:
                self._notify(f"{project.name}: {error.message}")

    def _has_documents(self, project: str) -> bool:
        with self._open_store(self._path(project)) as store:
            return bool(store.documents.list())

    def _watch(self, opened: _Opened) -> None:
        told = ""
        while not opened.is_closing.is_set():
            # Another one each time: a watch sets it when it ends, also by an error.
            stop = opened.stop = threading.Event()
            if opened.is_closing.is_set():
                return
            try:
                opened.store.maintenance.watch(stop=stop)
            except Busy:
                # Another process watches, and does the same.
                told = ""
            except MemlogError as error:
                if error.message != told:
                    told = error.message
                    self._notify(f"{opened.store.path.name}: {told}")
            opened.is_closing.wait(_AGAIN)

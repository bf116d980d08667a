"""The stores that a server has open, by project; each is watched while the server runs."""

import threading
from collections.abc import Callable
from pathlib import Path

from memlog.eventlog.errors import Busy, MemlogError
from memlog.service.missing import not_found
from memlog.service.projects import Projects
from memlog.service.store import Store

DEFAULT = "default"
"""The project of a server of one store."""

_AGAIN = 5.0
"""Seconds after which a watch that failed, or that another process holds, is begun again."""

_PATIENCE = 2.0


class OpenStores:
    """Opens the store of a project at the first request for it.

    open_store: opens the store in a folder. where: the folder of the one store, or the projects.
    notify: called with notes for people.
    """

    def __init__(
        self, open_store: Callable[[Path], Store], where: Path | Projects, notify: Callable[[str], None]
    ) -> None:
        self._open_store, self._where, self._notify = open_store, where, notify
        self._lock = threading.Lock()
        self._open: dict[Path, Store] = {}
        self._watches: dict[Path, threading.Thread] = {}
        self._stops: dict[Path, threading.Event] = {}
        self._closing = threading.Event()

    def store(self, project: str) -> Store:
        """The store of a project. A project without a store gets one by its first append.

        Raises:
            BadInput: it is no name of a project.
            NotFound: the server has one store alone, and another project is named.
        """
        path = self._path(project)
        with self._lock:
            if path not in self._open:
                self._open[path] = self._open_store(path)
            # Not before there is a store: a watch would make one.
            if path not in self._watches and self._open[path].exists:
                self._watches[path] = self._watched(path)
            return self._open[path]

    def open_all(self) -> None:
        """Open the one store, or each project that has documents, so that their files are followed."""
        if isinstance(self._where, Path):
            self.store(DEFAULT)
            return
        for project in self._where.list():
            if not project.is_being_removed and self.store(project.name).documents.list():
                self._notify(f"{project.name}: its documents are followed")

    def troubles(self) -> dict[str, str]:
        """What keeps the open stores from answering fully, by part; empty where all is well."""
        with self._lock:
            stores = [store for store in self._open.values() if store.exists]
        said = {side: why for store in stores for side, why in store.maintenance.status().silent.items()}
        return {side: why for side, why in said.items() if side != "pending"}

    def close(self) -> None:
        """End the watches and close the stores."""
        self._closing.set()
        with self._lock:
            for stop in [*self._stops.values()]:
                stop.set()
            for thread in self._watches.values():
                thread.join(_PATIENCE)
            for store in self._open.values():
                store.close()

    def _path(self, project: str) -> Path:
        if isinstance(self._where, Projects):
            return self._where.path(project)
        if project != DEFAULT:
            raise not_found("project_not_found", project)
        return self._where

    def _watched(self, path: Path) -> threading.Thread:
        thread = threading.Thread(target=self._watch, args=(path,), daemon=True)
        thread.start()
        return thread

    def _watch(self, path: Path) -> None:
        told = ""
        while not self._closing.is_set():
            # Another one each time: a watch sets it when it ends, also by an error.
            stop = self._stops[path] = threading.Event()
            if self._closing.is_set():
                return
            try:
                self._open[path].maintenance.watch(stop=stop)
            except Busy:
                # Another process watches, and does the same.
                told = ""
            except MemlogError as error:
                if error.message != told:
                    told = error.message
                    self._notify(f"{path.name}: {told}")
            self._closing.wait(_AGAIN)

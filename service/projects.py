"""Projects: the stores below one folder, one a project, so that nothing of one comes into another."""

import os
import re
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from os import DirEntry
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import unquote

import msgspec

from memlog.eventlog.errors import BadInput, Busy, LogError, MemlogError, NotFound
from memlog.eventlog.files import disk, locks
from memlog.eventlog.files.file_io import is_regular
from memlog.eventlog.files.folders import sync_folder
from memlog.eventlog.limits import LOCK_TIMEOUT
from memlog.eventlog.log.layout import (
    BUILD_LOCK,
    CONVERSATIONS,
    LOG,
    MODEL,
    PROJECTOR_LOCK,
    SCRUB_LOCK,
    TOP,
    WATCH_LOCK,
    seals_files,
)
from memlog.eventlog.log.reader import last_at
from memlog.eventlog.log.streams import project_folder, segments_of, shown
from memlog.eventlog.text import equivalents
from memlog.query.request import Request, path_of, read_argument
from memlog.service.engine.operation import not_found, operation
from memlog.service.engine.requests import Tried
from memlog.service.store import Store


class ListProjects(Request, frozen=True):
    """List the projects by name, with size and last append.

    The size is that of the log; no read model is opened. What a removal that was killed has left is listed,
    too.

    Raises:
        LogError: a folder cannot be read.
    """


class _OfProject(Request, frozen=True):
    name: Annotated[str, "The project."]


class GetProject(_OfProject, frozen=True):
    """Show a project.

    Raises:
        BadInput: it is no name. LogError: its folder cannot be read.
    """


class RemoveProject(Tried, frozen=True):
    """Remove a project and its store permanently.

    Everything in the store's folder is deleted: log, read model, cache, settings. Only an earlier copy brings
    it back. The folder is renamed at once, then emptied: killed at any moment, the whole store remains, or
    the list shows what is left, and the next removal finishes it. Who has the store open goes on with an
    empty one. A link, or a folder that is no store, stays as it is.

    Raises:
        BadInput: the name is invalid; or the folder is a link, or not a store.
        NotFound: no project has this name.
        Busy: another process held a lock of the store for too long.
        LogError: it cannot be removed, or not all of it.
    """

    name: Annotated[str, "The project."]
    lock_timeout: Annotated[float, LOCK_TIMEOUT.meta, "Seconds to wait for those who use the store."] = (
        LOCK_TIMEOUT.default
    )


# No project's folder has a `~`.
_ASIDE = re.compile(r"([^~]+)~[0-9a-f]{8}")
_ASIDE_HEAD = 240  # a name has 255 bytes at most

_NOT_WRITTEN = "see that all in it can be written, then remove it again"


class Project(msgspec.Struct, kw_only=True):
    """A project, as far as it is known without reading its log.

    folder: of its store.
    conversations: how many have a folder in the log. log_bytes: of all segments.
    last_append: when memlog appended to it last; None where it never did.
    is_being_removed: whether a removal was begun and not finished; this is what it has left.
    """

    name: str
    folder: str
    conversations: int
    log_bytes: int
    last_append: str | None
    is_being_removed: bool = False


class ProjectRemoval(msgspec.Struct, kw_only=True):
    """What the removal of a project's store deletes, or deleted.

    files, bytes: in its folder.
    others: names in its folder that are not memlog's; they go with it.
    links: below its folder; their targets stay.
    finished: the projects whose removal had been begun before, and was not finished.
    done: whether it is gone; False of a dry run.
    """

    name: str
    folder: str
    files: int = 0
    bytes: int = 0
    last_append: str | None = None
    others: list[str] = []
    links: list[str] = []
    finished: list[str] = []
    done: bool = False


_Listed = list[Project]
"""Within the class `list` is its method."""


class Projects:
    """The projects with stores in `folder`, as the commands use them by name."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = read_argument("folder", path_of, folder).absolute()

    def path(self, name: str) -> Path:
        """Return the folder of a project's store, whether it exists or not; always directly below `folder`.

        The name of an existing project may be given in any canonical form.

        Raises:
            BadInput: it is no name.
        """
        forms = [self.folder / project_folder(form) for form in equivalents(name)]
        return next((path for path in forms if path.is_dir()), forms[0])

    @operation(ListProjects, effect="read")
    def list(self, _: ListProjects) -> _Listed:
        with _naming(self.folder):
            found = [_project(path, name) for path, name in self._stores()]
            left = [_project(path, name, is_left=True) for path, name in self._left()]
        return sorted(filter(None, found + left), key=lambda project: (project.name, project.folder))

    @operation(GetProject, effect="read", missing="project_not_found")
    def get(self, request: GetProject) -> Project | None:
        """Return a project; None if it has no store."""
        path = self.path(request.name)
        with _naming(path):
            return _project(path, request.name) if _is_store(path) else None

    @operation(RemoveProject, effect="erase")
    def remove(self, request: RemoveProject) -> ProjectRemoval:
        name, path = request.name, self.path(request.name)
        with _naming(path):
            left = [*self._left()]
            is_standing = self._is_standing(path, name, left)
            found = _survey(path, name) if is_standing else ProjectRemoval(name=name, folder=shown(path))
            if request.dry_run:
                return found
            if is_standing:
                left.append((self._put_aside(path, request.lock_timeout), name))
            for folder, _ in left:
                _delete(folder)
        found.finished = [other for _, other in left[: len(left) - is_standing]]
        found.done = True
        return found

    def _stores(self) -> Iterator[tuple[Path, str]]:
        for entry in _entries(self.folder):
            name = unquote(entry.name)
            if _names(name, entry.name) and _is_store(Path(entry.path)):
                yield Path(entry.path), name

    def _left(self) -> Iterator[tuple[Path, str]]:
        """Yield the remains of killed removals: a folder with the lock, which goes last, or an empty one."""
        for entry in _entries(self.folder):
            match = _ASIDE.fullmatch(entry.name)
            if match is not None and entry.is_dir(follow_symlinks=False) and _is_rest(Path(entry.path)):
                yield Path(entry.path), unquote(match[1])

    def _is_standing(self, path: Path, name: str, left: Iterable[tuple[Path, str]]) -> bool:
        """Whether there is a store to remove; False where there is only what is left of one."""
        try:
            mode = disk.look(path).st_mode
        except FileNotFoundError:
            if any(rest.name.partition("~")[0] == path.name[:_ASIDE_HEAD] for rest, _ in left):
                return False
            raise not_found("project_not_found", name) from None
        if stat.S_ISLNK(mode):
            raise BadInput(
                f"{shown(path)} is a link: nothing was removed",
                hint="remove it, and what it points to, by hand",
            )
        if not _is_store(path):
            raise BadInput(f"not a store, so nothing was removed: {shown(path)}", hint="Projects.list()")
        return True

    def _put_aside(self, path: Path, lock_timeout: float) -> Path:
        """Give a store another name, which no project has, while nobody projects, writes or scrubs.

        A writer that comes between has written before the removal: what it appended goes with the rest.
        """
        aside = path.with_name(f"{path.name[:_ASIDE_HEAD]}~{os.urandom(4).hex()}")
        log = path / LOG
        with ExitStack() as held:
            # A watch holds its own as long as it runs, and would create the store again.
            held.enter_context(locks.locked_if_there(path / WATCH_LOCK, "the store", 0))
            held.enter_context(locks.locked_if_there(path / SCRUB_LOCK, "the scrub", lock_timeout))
            held.enter_context(locks.locked_if_there(path / BUILD_LOCK, "the rebuild", lock_timeout))
            held.enter_context(locks.locked(path / PROJECTOR_LOCK, "the read model", lock_timeout))
            seals = [log / name for name in seals_files(log)]
            for file in (*seals, *(segment.path for segment in segments_of(log)[0])):
                with locks.locked_if_there(file, shown(file.relative_to(path)), lock_timeout):
                    pass
            disk.rename(path, aside)
        sync_folder(self.folder)
        return aside


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Convert an error of the system in this context to memlog's, with the file that it is about."""
    try:
        yield
    except OSError as error:
        where = shown(error.filename or path)
        raise LogError(f"{where}: {error.strerror}", hint=_NOT_WRITTEN, retryable=False) from error


def _names(name: str, folder: str) -> bool:
    """Whether a project of this name has its store in this folder."""
    try:
        return project_folder(name) == folder
    except BadInput:
        return False


def _is_store(folder: Path) -> bool:
    """Whether memlog has made a store of a folder.

    There is a log with nothing but streams in it, or what reading a store without a log makes.
    """
    log = folder / LOG
    if not disk.is_folder(log):
        return disk.is_folder(folder / MODEL) and is_regular(folder / PROJECTOR_LOCK)
    segments, strangers = segments_of(log)
    return bool(segments) or not strangers


def _entries(folder: Path) -> list[DirEntry[str]]:
    """Return the entries of a folder by name, a projector's lock last; [] where there is no folder."""
    if not disk.is_folder(folder):
        return []
    with disk.entries(folder) as entries:
        return sorted(entries, key=lambda entry: (entry.name == PROJECTOR_LOCK, entry.name))


def _is_rest(folder: Path) -> bool:
    names = [entry.name for entry in _entries(folder)]
    return not names or PROJECTOR_LOCK in names


def _project(folder: Path, name: str, *, is_left: bool = False) -> Project | None:
    """Return the project of a store's folder; None if the store vanishes meanwhile."""
    with suppress(FileNotFoundError):
        segments = segments_of(folder / LOG)[0]
        conversations = {each.stream for each in segments if each.stream.startswith(f"{CONVERSATIONS}/")}
        return Project(
            name=name,
            folder=shown(folder),
            conversations=len(conversations),
            log_bytes=sum(segment.status().st_size for segment in segments),
            last_append=last_at(segments),
            is_being_removed=is_left,
        )
    return None


def _survey(folder: Path, name: str) -> ProjectRemoval:
    found = ProjectRemoval(name=name, folder=shown(folder), last_append=last_at(segments_of(folder / LOG)[0]))
    for entry in _below(folder):
        path = Path(entry.path)
        if path.parent == folder and entry.name not in TOP:
            found.others.append(shown(entry.name))
        if entry.is_symlink():
            found.links.append(shown(path.relative_to(folder)))
        if not entry.is_dir(follow_symlinks=False):
            found.files += 1
            found.bytes += disk.look(path).st_size
    return found


def _delete(folder: Path) -> None:
    """Remove a folder and all below it. Another process may be at the same."""
    with suppress(FileNotFoundError):
        for entry in _below(folder):
            remove = disk.remove_folder if entry.is_dir(follow_symlinks=False) else disk.unlink
            with suppress(FileNotFoundError):
                remove(Path(entry.path))
        disk.remove_folder(folder)


def _below(folder: Path) -> Iterator[DirEntry[str]]:
    """Yield every path below a folder, each folder after its contents; no link is followed.

    The lock comes last: it marks what a killed removal leaves.
    """
    for entry in _entries(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path))
        yield entry


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
    """Return an error that does not reveal where the server keeps its stores."""
    if error.code == "store_not_found":
        message = f"nothing is stored in the project {project!r} yet"
        return NotFound(message, hint="its first append makes it", code=error.code)
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
        """Run `call` on the store of a project, and return its result.

        A project gets its store by its first append.

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
        """Return the troubles of the open stores, by part; empty where all is well."""
        with self._lock:
            stores = [each.store for each in self._open.values() if each.store.exists]
        message = {side: why for store in stores for side, why in store.maintenance.status().silent.items()}
        return {side: why for side, why in message.items() if side != "pending"}

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

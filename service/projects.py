"""Projects: stores below one folder, one per project, completely separate from each other."""

import os
import re
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from os import DirEntry
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec import Meta

from memlog.eventlog.errors import BadInput, Busy, LogError, MemlogError, NotFound
from memlog.eventlog.fields import Reads, read_argument, to_path
from memlog.eventlog.files import disk, locks
from memlog.eventlog.files.file_io import is_regular_file
from memlog.eventlog.files.folders import sync_folder
from memlog.eventlog.log.layout import (
    BUILD_LOCK,
    CONVERSATIONS,
    LOG,
    MODEL,
    PROJECTOR_LOCK,
    SCRUB_LOCK,
    TOP,
    list_seals_files,
)
from memlog.eventlog.log.reader import read_last_append_time
from memlog.eventlog.log.streams import escape_invalid_utf8, list_segments, project_folder
from memlog.eventlog.settings import DEFAULTS, LockTimeout
from memlog.eventlog.text import equivalent_forms
from memlog.projector.sqlite import is_file_of_wal
from memlog.query.request import PathField, Time, to_log_time
from memlog.query.search.request import Search
from memlog.service.engine.operation import make_not_found_error, operation
from memlog.service.engine.requests import DryRun, Paths, ProgressField
from memlog.service.exchange.formats import check_format
from memlog.service.project_links import ProjectLink, folder_to_link, read_links, write_links
from memlog.service.store import Store

if TYPE_CHECKING:
    from memlog.projector.catchup import Progress
    from memlog.service.by_project import (
        ProjectImportRun,
        ProjectImports,
        ProjectImportUndo,
        ProjectsSearchResult,
        ProjectStores,
    )
    from memlog.service.exchange.incoming import ImportedRecords

# No project's folder has a `~` in its name.
_ASIDE = re.compile(r"([^~]+)~[0-9a-f]{8}")
_ASIDE_HEAD = 240  # a name has 255 bytes at most

_NOT_WRITTEN = "make everything in it writable, then remove it again"


class Project(msgspec.Struct, kw_only=True):
    """A project, described without reading its log.

    folder: its store's folder.
    conversations: how many conversations have a folder in the log. log_bytes: the size of all segments.
    last_append: when memlog last appended to it; None if never.
    is_being_removed: whether the project is only the remains of an unfinished removal.
    """

    name: str
    folder: str
    conversations: int
    log_bytes: int
    last_append: str | None
    is_being_removed: bool = False


class SearchProjects(Search, frozen=True, kw_only=True, dict=True):
    """Search the stores of all projects for `text`, each as `Store.search` does.

    The hits are in one list, by score; an event that two stores have is one hit. A store that fails is
    named in the answer.

    Raises:
        BadInput: as `Store.search`. MemlogError: every store failed.
    """


class ProjectRemoval(msgspec.Struct, kw_only=True):
    """The result of removing a project: the data to delete or, if `done`, already deleted.

    files, bytes: how many files the store's folder has, and their total size.
    others: names of other programs' files in the folder, which are also deleted.
    links: the links below the folder; their targets stay.
    finished: the projects whose interrupted removal this call has finished.
    done: whether the store is deleted; False after a dry run.
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
"""An alias for use in the class, where `list` is a method."""

_Links = list[ProjectLink]
_Imports = list["ProjectImportRun"]
_Undone = list["ProjectImportUndo"]


class Projects:
    """The projects whose stores are in `folder`.

    open_store: opens the store in a folder, for imports and searches; `memlog.open` by default.
    """

    def __init__(self, folder: str | Path, open_store: Callable[[Path], Store] = Store) -> None:
        self.folder = read_argument("folder", to_path, folder).absolute()
        self._open_store = open_store

    def path(self, name: str) -> Path:
        """Return the folder of a project's store, directly below `folder`, even if it does not exist.

        The name of an existing project may be given in any canonical form.

        Raises:
            BadInput: `name` cannot name a project.
        """
        forms = [self.folder / project_folder(form) for form in equivalent_forms(name)]
        return next((path for path in forms if path.is_dir()), forms[0])

    @operation("read")
    def list(self) -> _Listed:
        """List the projects by name, with size and last append.

        The size is that of the log. The list includes the remains of interrupted removals.

        Raises:
            LogError: a folder cannot be read.
        """
        with _converting_os_errors_to_log_errors(self.folder):
            entries = [(Path(entry.path), unquote(entry.name)) for entry in _list_entries(self.folder)]
            found = [
                _read_project(path, name)
                for path, name in entries
                if _is_folder_of(name, path.name) and _is_store(path)
            ]
            left = [_read_project(path, name, is_left=True) for path, name in self._find_remains()]
        return sorted(filter(None, found + left), key=lambda project: (project.name, project.folder))

    @operation("read", missing="project_not_found")
    def get(self, name: Annotated[str, "The project."]) -> Project | None:
        """Show a project.

        Raises:
            BadInput: the name is invalid. LogError: its folder cannot be read.
        """
        path = self.path(name)
        with _converting_os_errors_to_log_errors(path):
            return _read_project(path, name) if _is_store(path) else None

    @operation("erase")
    def remove(
        self,
        name: Annotated[str, "The project."],
        *,
        lock_timeout: Annotated[
            LockTimeout, "Seconds to wait for other users of the store."
        ] = DEFAULTS.lock_timeout,
        dry_run: DryRun = False,
    ) -> ProjectRemoval:
        """Remove a project and its store permanently.

        Everything in the store's folder is deleted: log, read model, cache and settings. Only a backup can
        restore it. The folder is first renamed atomically: if the process is killed, either the whole store
        stays, or the list shows the remains, and the next removal deletes them. A process that has the store
        open continues with an empty store. Links, and folders that are not stores, are not removed.

        Raises:
            BadInput: the name is invalid; or the folder is a link, or not a store.
            NotFound: no project has this name.
            Busy: another process held a lock of the store for too long.
            LogError: the store, or a part of it, cannot be removed.
        """
        path = self.path(name)
        with _converting_os_errors_to_log_errors(path):
            left = [*self._find_remains()]
            is_standing = self._has_store_to_remove(path, name, left)
            found = (
                _examine_project(path, name)
                if is_standing
                else ProjectRemoval(name=name, folder=escape_invalid_utf8(path))
            )
            if dry_run:
                return found
            if is_standing:
                left.append((self._rename_aside(path, lock_timeout), name))
            for folder, _ in left:
                _delete_folder(folder)
        found.finished = [other for _, other in left[: len(left) - is_standing]]
        found.done = True
        return found

    @operation("append", reads_paths=True)
    def import_from(
        self,
        format: Annotated[str, Meta(title="NAME"), "The format.", Reads(check_format, "format")],
        paths: Annotated[Paths, Meta(title="PATH"), "The files, folders or archives of the other program."],
        *,
        project: Annotated[str | None, "Import only this project."] = None,
        home: Annotated[
            PathField | None, "The person's home folder: its own checkout is not the project of all below it."
        ] = None,
        since: Annotated[
            Time | None, "Import only files that changed at or after this time; of an archive, all."
        ] = None,
        progress: ProgressField = None,
        dry_run: DryRun = False,
    ) -> "ProjectImports":
        """Import another program's data, each of its projects into the store of the same name.

        A coding-agent session belongs to the project of the folder where it first worked, named after the git
        remote, such as `github.com/anna/tea`; without a remote, after the main checkout; without git, after
        the folder. A session stays in the project that already has it; otherwise a link takes precedence.

        Raises:
            BadInput: the format has no projects; or as `DataExchange.import_from`.
            Busy, LogError: as `Store.append`; earlier imported records stay.
        """
        sources = {format: [Path(path) for path in paths]}
        return self.import_sources(
            sources, project=project, home=home, since=since, progress=progress, dry_run=dry_run
        )

    def import_sources(
        self,
        sources: Mapping[str, Sequence[Path]],
        *,
        project: str | None = None,
        home: str | Path | None = None,
        since: str | datetime | None = None,
        progress: "Progress | None" = None,
        dry_run: bool = False,
        run: str | None = None,
        imported: "ImportedRecords | None" = None,
    ) -> "ProjectImports":
        """Import the data of several programs; see `import_from`.

        sources: the paths, keyed by format. run, imported: see `DataExchange.import_from`.
        """
        from memlog.service.by_project import import_by_project

        return import_by_project(
            self._stores(),
            read_links(self.folder),
            sources,
            project=project,
            home=None if home is None else Path(home),
            since=None if since is None else to_log_time(since),
            progress=progress,
            dry_run=dry_run,
            run=run,
            imported=imported,
        )

    def project_of_session(self, format: str, session: str, folder: str, home: Path) -> str:
        """Return the project of a coding-agent session whose agent works in `folder`; see `import_from`."""
        from memlog.service.by_project import find_project_of_session

        return find_project_of_session(self._stores(), read_links(self.folder), format, session, folder, home)

    def list_imports(self, failed: dict[str, MemlogError] | None = None) -> "_Imports":
        """List the imports into all projects' stores, newest last.

        failed: filled with the stores' errors, keyed by project; None to raise the first error.

        Raises:
            BadInput, DatabaseError: a store cannot be read.
        """
        from memlog.service.by_project import list_imports_of_projects

        return list_imports_of_projects(self._stores(), failed)

    def undo_import(
        self, run: str, *, anyway: bool = False, erase: bool = False, dry_run: bool = False
    ) -> "_Undone":
        """Undo an import in each store that has it, or in none if one refuses; see `Erasure.undo_import`.

        Raises:
            NotFound: no store has this import. BadInput, Busy, LogError: as `Erasure.undo_import`.
        """
        from memlog.service.by_project import undo_import_of_projects

        return undo_import_of_projects(self._stores(), run, anyway=anyway, erase=erase, dry_run=dry_run)

    @operation("read")
    def links(self) -> _Links:
        """List the folders that are linked to projects.

        Raises:
            BadInput: the links file is damaged.
        """
        return read_links(self.folder)

    @operation("maintain")
    def link(
        self,
        folder: Annotated[PathField, Meta(title="FOLDER"), "The folder, which may be gone."],
        project: Annotated[str, "The project."],
    ) -> ProjectLink:
        """Link a folder to a project: coding-agent sessions in the folder go into the project.

        Sessions in folders below it do too, unless a nearer folder is linked. A session that another project
        already has stays there.

        Raises:
            BadInput: `project` cannot name a project; or the links file is damaged.
            LogError: the links file cannot be written.
        """
        self.path(project)
        made = ProjectLink(folder=folder_to_link(Path(folder)), project=project)
        write_links(self.folder, [made, *self._links_without(made.folder)])
        return made

    @operation("maintain", missing="link_not_found")
    def unlink(
        self, folder: Annotated[PathField, Meta(title="FOLDER"), "The folder, as it was linked."]
    ) -> ProjectLink | None:
        """Remove a folder's link to a project.

        Raises:
            BadInput, LogError: as `link`.
        """
        name = folder_to_link(Path(folder))
        found = next((link for link in read_links(self.folder) if link.folder == name), None)
        if found is not None:
            write_links(self.folder, self._links_without(name))
        return found

    def _links_without(self, folder: str) -> _Links:
        return [link for link in read_links(self.folder) if link.folder != folder]

    @operation("read", request=SearchProjects)
    def search(self, request: SearchProjects) -> "ProjectsSearchResult":
        from memlog.service.by_project import search_projects

        return search_projects(self._stores(), request)

    def _stores(self) -> "ProjectStores":
        from memlog.service.by_project import ProjectStores

        with _converting_os_errors_to_log_errors(self.folder):
            entries = [(Path(entry.path), unquote(entry.name)) for entry in _list_entries(self.folder)]
        names = sorted(
            name for path, name in entries if _is_folder_of(name, path.name) and _may_be_store(path)
        )
        return ProjectStores(names, self.path, self._open_store)

    def _find_remains(self) -> Iterator[tuple[Path, str]]:
        """Yield the folders left by interrupted removals, each with the name of its project."""
        for entry in _list_entries(self.folder):
            match = _ASIDE.fullmatch(entry.name)
            if match is not None and entry.is_dir(follow_symlinks=False) and _is_remains(Path(entry.path)):
                yield Path(entry.path), unquote(match[1])

    def _has_store_to_remove(self, path: Path, name: str, left: Iterable[tuple[Path, str]]) -> bool:
        """Whether there is a store to remove; False if only the remains of a removal are left."""
        try:
            mode = disk.status_of_path(path).st_mode
        except FileNotFoundError:
            if any(rest.name.partition("~")[0] == path.name[:_ASIDE_HEAD] for rest, _ in left):
                return False
            raise make_not_found_error("project_not_found", name) from None
        if stat.S_ISLNK(mode):
            raise BadInput(
                f"{escape_invalid_utf8(path)} is a symbolic link: nothing was removed",
                hint="remove the link and the folder that it points to by hand",
            )
        if not _is_store(path):
            raise BadInput(
                f"{escape_invalid_utf8(path)} is not a store: nothing was removed", hint="Projects.list()"
            )
        return True

    def _rename_aside(self, path: Path, lock_timeout: float) -> Path:
        """Rename a store's folder so that it belongs to no project, and return the new path.

        The store's locks are held meanwhile. Events appended just before the rename are removed, too.
        """
        aside = path.with_name(f"{path.name[:_ASIDE_HEAD]}~{os.urandom(4).hex()}")
        log = path / LOG
        with ExitStack() as held:
            held.enter_context(
                locks.holding_lock_if_file_exists(path / SCRUB_LOCK, "the scrub", lock_timeout)
            )
            held.enter_context(
                locks.holding_lock_if_file_exists(path / BUILD_LOCK, "the rebuild", lock_timeout)
            )
            held.enter_context(locks.holding_lock(path / PROJECTOR_LOCK, "the read model", lock_timeout))
            seals = [log / name for name in list_seals_files(log)]
            for file in (*seals, *(segment.path for segment in list_segments(log)[0])):
                with locks.holding_lock_if_file_exists(
                    file, escape_invalid_utf8(file.relative_to(path)), lock_timeout
                ):
                    pass
            disk.rename(path, aside)
        sync_folder(self.folder)
        return aside


@contextmanager
def _converting_os_errors_to_log_errors(path: Path) -> Iterator[None]:
    """Convert an OSError in this context to a LogError that names the file."""
    try:
        yield
    except OSError as error:
        where = escape_invalid_utf8(error.filename or path)
        raise LogError(f"{where}: {error.strerror}", hint=_NOT_WRITTEN, retryable=False) from error


def _is_folder_of(name: str, folder: str) -> bool:
    """Whether `folder` is the folder name of the project `name`."""
    try:
        return project_folder(name) == folder
    except BadInput:
        return False


def _is_store(folder: Path) -> bool:
    """Whether a folder is a store: its log has segments or no files; or it has only a read model."""
    log = folder / LOG
    if not disk.is_folder(log):
        return disk.is_folder(folder / MODEL) and is_regular_file(folder / PROJECTOR_LOCK)
    segments, strangers = list_segments(log)
    return bool(segments) or not strangers


def _may_be_store(folder: Path) -> bool:
    """Whether a folder is a store, or cannot be read: opening it will show why."""
    try:
        return _is_store(folder)
    except OSError:
        return True


def _list_entries(folder: Path) -> list[DirEntry[str]]:
    """Return a folder's entries, sorted by name with a projector's lock last; [] if it does not exist."""
    if not disk.is_folder(folder):
        return []
    with disk.scan_folder(folder) as entries:
        return sorted(entries, key=lambda entry: (entry.name == PROJECTOR_LOCK, entry.name))


def _is_remains(folder: Path) -> bool:
    names = [entry.name for entry in _list_entries(folder)]
    return not names or PROJECTOR_LOCK in names


def _read_project(folder: Path, name: str, *, is_left: bool = False) -> Project | None:
    """Return the project whose store is in `folder`; None if the folder has vanished."""
    with suppress(FileNotFoundError):
        segments = list_segments(folder / LOG)[0]
        conversations = {each.stream for each in segments if each.stream.startswith(f"{CONVERSATIONS}/")}
        return Project(
            name=name,
            folder=escape_invalid_utf8(folder),
            conversations=len(conversations),
            log_bytes=sum(segment.read_status().st_size for segment in segments),
            last_append=read_last_append_time(segments),
            is_being_removed=is_left,
        )
    return None


def _examine_project(folder: Path, name: str) -> ProjectRemoval:
    found = ProjectRemoval(
        name=name,
        folder=escape_invalid_utf8(folder),
        last_append=read_last_append_time(list_segments(folder / LOG)[0]),
    )
    for entry in _walk_below(folder):
        path = Path(entry.path)
        if path.parent == folder and entry.name not in TOP:
            found.others.append(escape_invalid_utf8(entry.name))
        if entry.is_symlink():
            found.links.append(escape_invalid_utf8(path.relative_to(folder)))
        if not (entry.is_dir(follow_symlinks=False) or is_file_of_wal(entry.name)):
            found.files += 1
            found.bytes += disk.status_of_path(path).st_size
    return found


def _delete_folder(folder: Path) -> None:
    """Remove a folder and everything in it, even if another process also removes it."""
    with suppress(FileNotFoundError):
        for entry in _walk_below(folder):
            remove = disk.remove_folder if entry.is_dir(follow_symlinks=False) else disk.unlink
            with suppress(FileNotFoundError):
                remove(Path(entry.path))
        disk.remove_folder(folder)


def _walk_below(folder: Path) -> Iterator[DirEntry[str]]:
    """Yield every path below a folder, contents before their folder, without following links.

    The lock comes last: it marks the remains of an interrupted removal.
    """
    for entry in _list_entries(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from _walk_below(Path(entry.path))
        yield entry


DEFAULT = "default"
"""The project name on a single-store server."""

_MAX_IDLE = 16
"""How many stores without documents stay open: each uses about 12 file descriptors and 5 threads."""

_RETRY_SECONDS = 5.0
"""Seconds before retrying a watch that failed, or whose lock another process holds."""

_PATIENCE = 2.0

T = TypeVar("T")


class _Opened:
    """An open store, the number of requests that use it, and its watch."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.users = 0
        self.has_documents = False
        self.watch: threading.Thread | None = None
        self.stop = threading.Event()
        self.is_closing = threading.Event()

    def stop_watch(self) -> None:
        """Tell the watch to end."""
        self.is_closing.set()
        self.stop.set()

    def close(self) -> None:
        """Wait for the watch, and close the store."""
        if self.watch is not None:
            self.watch.join(_PATIENCE)
        self.store.close()


def _error_without_path(error: MemlogError, store: Path, project: str) -> MemlogError:
    """Return an error without the path of the server's stores."""
    if error.code == "store_not_found":
        message = f"nothing is stored in the project {project!r} yet"
        return NotFound(message, hint="the project's first append creates its store", code=error.code)
    above = f"{escape_invalid_utf8(store.parent)}/"
    error.message, error.hint = (text.replace(above, "") for text in (error.message, error.hint))
    return error


class OpenStores:
    """Opens the store of a project on its first request, and keeps the most recently used stores open.

    open_store: opens the store in a folder. where: the folder of the only store, or the projects.
    notify: called with human-readable notes.
    """

    def __init__(
        self, open_store: Callable[[Path], Store], where: Path | Projects, notify: Callable[[str], None]
    ) -> None:
        self._open_store, self._where, self._notify = open_store, where, notify
        self.has_projects = isinstance(where, Projects)
        self._lock = threading.Lock()
        self._open: dict[Path, _Opened] = {}
        """The open stores, keyed by folder, the most recently used one last."""

    def run(self, project: str, call: Callable[[Store], T]) -> T:
        """Run `call` on a project's store, and return its result.

        Raises:
            BadInput: the name of the project is invalid.
            NotFound: the server has a single store, and `project` names another project.
        """
        opened = self._open_or_share(self._project_path(project))
        try:
            return call(opened.store)
        except MemlogError as error:
            raise _error_without_path(error, opened.store.path, project) from None
        finally:
            self._release_store(opened)

    def begin_watches(self) -> None:
        """Open the only store, or the stores of all projects with documents, to watch their files."""
        threading.Thread(target=self._open_stores_with_documents, daemon=True).start()

    def find_problems_of_stores(self) -> dict[str, str]:
        """Return the open stores' problems, keyed by part; {} if there are none."""
        with self._lock:
            stores = [each.store for each in self._open.values() if each.store.exists]
        message = {side: why for store in stores for side, why in store.maintenance.status().silent.items()}
        return {side: why for side, why in message.items() if side != "pending"}

    def close(self) -> None:
        """End the watches and close the stores."""
        with self._lock:
            opened = [*self._open.values()]
            for each in opened:
                each.stop_watch()
        for each in opened:
            each.close()

    def _project_path(self, project: str) -> Path:
        if isinstance(self._where, Projects):
            return self._where.path(project)
        if project != DEFAULT:
            raise NotFound(
                f"no project {project!r}",
                hint=f"use {DEFAULT}, the only project of this server",
                code="project_not_found",
            )
        return self._where

    def _open_or_share(self, path: Path) -> _Opened:
        with self._lock:
            opened = self._open.pop(path) if path in self._open else _Opened(self._open_store(path))
            self._open[path] = opened
            opened.users += 1
            return opened

    def _release_store(self, opened: _Opened) -> None:
        with self._lock:
            opened.users -= 1
            # The watch starts only once the store exists, since it would create the store.
            if opened.watch is None and not opened.is_closing.is_set() and opened.store.exists:
                opened.watch = threading.Thread(target=self._watch_until_closed, args=(opened,), daemon=True)
                opened.watch.start()
            idle = [(path, each) for path, each in self._open.items() if not each.has_documents]
            surplus = [(path, each) for path, each in idle[: max(0, len(idle) - _MAX_IDLE)] if not each.users]
            for path, _ in surplus:
                del self._open[path]
        for path, each in surplus:
            self._close_idle(path, each)

    def _close_idle(self, path: Path, opened: _Opened) -> None:
        with suppress(MemlogError):  # an unreadable store has nothing to follow
            opened.has_documents = opened.store.exists and bool(opened.store.documents.list())
        with self._lock:
            if opened.has_documents and path not in self._open:
                self._open[path] = opened
                return
        opened.stop_watch()
        threading.Thread(target=opened.close, daemon=True).start()

    def _open_stores_with_documents(self) -> None:
        if isinstance(self._where, Path):
            try:
                self.run(DEFAULT, lambda _: None)
            except MemlogError as error:
                self._notify(error.message)
            return
        for project in self._where.list():
            try:
                if not project.is_being_removed and self._has_documents(project.name):
                    self.run(project.name, lambda _: None)
                    self._notify(f"{project.name}: its documents are watched")
            except MemlogError as error:
                self._notify(f"{project.name}: {error.message}")

    def _has_documents(self, project: str) -> bool:
        with self._open_store(self._project_path(project)) as store:
            return bool(store.documents.list())

    def _watch_until_closed(self, opened: _Opened) -> None:
        told = ""
        while not opened.is_closing.is_set():
            # Each watch needs a new event, because it sets its event when it ends, even by an error.
            stop = opened.stop = threading.Event()
            if opened.is_closing.is_set():
                return
            try:
                opened.store.maintenance.watch(stop=stop)
            except Busy:
                # Another process is already watching.
                told = ""
            except MemlogError as error:
                if error.message != told:
                    told = error.message
                    self._notify(f"{opened.store.path.name}: {told}")
            opened.is_closing.wait(_RETRY_SECONDS)

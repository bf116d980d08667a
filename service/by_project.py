"""Imports each record into its project's store, and searches all projects' stores."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import asdict

from memlog.eventlog.errors import BadInput, MemlogError, NotFound
from memlog.eventlog.events import ImportUndone
from memlog.eventlog.files import disk
from memlog.eventlog.log.layout import CONVERSATIONS, LOG
from memlog.eventlog.log.streams import conversation_stream
from memlog.eventlog.settings import Mode
from memlog.projector.catchup import Progress
from memlog.query.imports import ImportRun, StreamsOfChannel, read_streams_of_channel
from memlog.query.search.hits import Hit
from memlog.query.search.request import Search
from memlog.service.engine.operation import bind_operation, make_not_found_error
from memlog.service.exchange.checkouts import Checkouts
from memlog.service.exchange.exchange import check_project, list_projects, no_data_error
from memlog.service.exchange.formats import ChosenSessions, ForeignSession, check_format, load_importer
from memlog.service.exchange.importing import ImportReport, draw_run_id
from memlog.service.exchange.incoming import ImportedRecords
from memlog.service.exchange.session_projects import project_of_checkout, sort_sessions
from memlog.service.project_links import ProjectLink, project_linked_to
from memlog.service.store import Store
from memlog.service.upkeep.undoing import ImportUndo


class ProjectStores(NamedTuple):
    """The stores of projects.

    names: the projects that have a store. path: returns the folder of a project's store.
    open: opens the store in a folder.
    """

    names: Sequence[str]
    path: Callable[[str], Path]
    open: Callable[[Path], Store]


class StayingSessions(msgspec.Struct, kw_only=True):
    """Sessions from linked folders that stay in the project that already has them.

    project: the project that has them. linked_to: the project to which they would go if the import that
        brought them were undone.
    """

    project: str
    linked_to: str
    sessions: int


class ProjectImports(msgspec.Struct, kw_only=True):
    """The reports of an import, one for each project.

    left_out: notes on projects that were left out because their names are invalid for a store.
    staying: sessions from linked folders that stay in another project.
    notes: why projects are named after folders rather than by git.
    """

    projects: list[ImportReport] = []
    left_out: list[str] = []
    staying: list[StayingSessions] = []
    notes: list[str] = []


class _Pass(NamedTuple):
    """The import of one project from one format. chosen: its sessions; None for a format without sessions."""

    project: str
    format: str
    paths: Sequence[Path]
    chosen: ChosenSessions | None


def import_by_project(
    stores: ProjectStores,
    links: Sequence[ProjectLink],
    sources: Mapping[str, Sequence[Path]],
    *,
    project: str | None,
    home: Path | None,
    since: str | None,
    progress: Progress | None,
    dry_run: bool,
    run: str | None = None,
    imported: ImportedRecords | None = None,
) -> ProjectImports:
    """Import each project of the sources into its own store; see `Projects.import_sources`."""
    done, checkouts, passes = ProjectImports(), Checkouts(home), list[_Pass]()
    for format, paths in sources.items():
        sorting = _SessionSorting(stores, links, format, checkouts)
        passes += _find_passes(format, paths, sorting, since)
        done.staying += sorting.staying()
    done.notes = checkouts.notes
    format, run = next(iter(sources), ""), run or draw_run_id()
    if not passes:
        raise no_data_error(format, [path for paths in sources.values() for path in paths])
    if project is not None:
        check_project(project, sorted({each.project for each in passes}), format)
    for each in sorted(passes, key=lambda each: (each.project, each.format)):
        if project not in (None, each.project):
            continue
        try:
            path = stores.path(each.project)
        except BadInput as error:
            done.left_out.append(f"left out: {error.message}")
            continue
        with stores.open(path) as store:
            report = store.exchange.import_from(
                each.format,
                each.paths,
                project=each.project,
                chosen=each.chosen,
                run=run,
                imported=imported,
                since=since,
                progress=progress,
                dry_run=dry_run,
            )
        report.store = str(path)
        done.projects.append(report)
    return done


def _find_passes(
    format: str, paths: Sequence[Path], sorting: "_SessionSorting", since: str | None
) -> Iterator[_Pass]:
    importer = load_importer(check_format(format))
    if importer.find_sessions is not None:
        for name, chosen in sort_sessions(format, paths, sorting.project_of, since).items():
            yield _Pass(name, format, paths, chosen)
    elif importer.projects is not None:
        yield from (_Pass(name, format, paths, None) for name in list_projects(format, paths))
    else:
        raise BadInput(f"{format} has no projects", hint="store.exchange.import_from(FORMAT, PATHS)")


def find_project_of_session(
    stores: ProjectStores, links: Sequence[ProjectLink], format: str, name: str, folder: str, home: Path
) -> str:
    """Return the project into which an import would put a session. folder: where its agent works."""
    session = ForeignSession(name, Path(folder), folder or None)
    return _SessionSorting(stores, links, format, Checkouts(home)).project_of(session)


class _SessionSorting:
    """Chooses a session's project: the one that already has it, else the linked one, else its checkout's."""

    def __init__(
        self, stores: ProjectStores, links: Sequence[ProjectLink], format: str, checkouts: Checkouts
    ) -> None:
        self._stores, self._links, self._format = stores, links, format
        self._project_of_checkout = project_of_checkout(checkouts)
        self._elsewhere: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._holders: defaultdict[str, list[str]] = defaultdict(list)
        for project in stores.names:
            for stream in {*_find_streams(stores.path(project) / LOG / CONVERSATIONS, format)}:
                self._holders[stream].append(project)
        self._streams_of = cache(self._find_streams_of_project)

    def project_of(self, session: ForeignSession) -> str:
        """Return a session's project."""
        linked = project_linked_to(session.folder, self._links)
        chosen = linked or self._project_of_checkout(session)
        stream = conversation_stream(self._format, session.name).removeprefix(f"{CONVERSATIONS}/")
        holders = self._holders.get(stream, [])
        if not {*holders} - {chosen}:
            return chosen
        forgotten = [each for each in holders if self._has(each, stream, "forgotten")]
        showing = [each for each in holders if self._has(each, stream, "shown")]
        # What was forgotten in one store must not come back in another.
        having = [*forgotten, *showing]
        if not having or (chosen in having and not {*forgotten} - {chosen}):
            return chosen
        if linked is not None and having[0] in showing:
            self._elsewhere[having[0], linked] += 1
        return having[0]

    def _has(self, project: str, stream: str, what: Literal["shown", "forgotten"]) -> bool:
        """Whether a project shows, or has forgotten, messages of a session or its subagents.

        Also true if the project cannot be read.
        """
        streams = self._streams_of(project)
        return streams is None or any(
            each == stream or each.startswith(f"{stream}.") for each in getattr(streams, what)
        )

    def staying(self) -> list[StayingSessions]:
        """Return how many sessions from linked folders stay where an earlier import put them."""
        return [
            StayingSessions(project=holder, linked_to=linked, sessions=count)
            for (holder, linked), count in sorted(self._elsewhere.items())
        ]

    def _find_streams_of_project(self, project: str) -> StreamsOfChannel | None:
        """Return the format's streams that a project shows or has forgotten; None if it cannot be read."""
        try:
            with self._stores.open(self._stores.path(project)) as store:
                return store._engine.decide(lambda db: read_streams_of_channel(db, self._format))
        except NotFound:
            return StreamsOfChannel(set(), set())
        except MemlogError:
            return None


def _find_streams(folder: Path, format: str) -> Iterator[str]:
    """Yield the folder names of a format's conversations and, for subagents, of their sessions."""
    if disk.is_folder(folder):
        with disk.scan_folder(folder) as entries:
            for entry in entries:
                if entry.name.startswith(f"{format}_"):
                    yield from (entry.name, entry.name.rpartition(".")[0])


class ProjectImportRun(ImportRun, kw_only=True):
    """An import into one project's store. An import of several projects has the same id in each."""

    project: str


class ProjectImportUndo(ImportUndo, kw_only=True):
    """The result of undoing an import in one project's store."""

    project: str


def list_imports_of_projects(
    stores: ProjectStores, failed: dict[str, MemlogError] | None = None
) -> list[ProjectImportRun]:
    """Return the imports into all projects' stores, newest last.

    failed: filled with the stores' errors, keyed by project; None to raise the first error.
    """
    found = []
    for project in stores.names:
        path = stores.path(project)
        if not disk.is_folder(path / LOG / ImportUndone.STREAM):
            continue
        try:
            with stores.open(path) as store:
                runs = store.exchange.list_imports()
        except MemlogError as error:
            if failed is None:
                raise
            failed[project] = error
            continue
        found += [ProjectImportRun(project=project, **asdict(run)) for run in runs]
    return sorted(found, key=lambda run: (run.ts, run.run))


def undo_import_of_projects(
    stores: ProjectStores, run: str, *, anyway: bool, erase: bool, dry_run: bool
) -> list[ProjectImportUndo]:
    """Undo an import in the store of every project; see `Projects.undo_import`."""
    failed: dict[str, MemlogError] = {}
    runs = [each for each in list_imports_of_projects(stores, failed) if each.run == run]
    if not runs:
        error = next(iter(failed.values()), make_not_found_error("import_not_found", run))
        raise error
    left = [each for each in runs if erase or not each.is_undone] or runs
    # Nothing is undone anywhere if a store refuses.
    for is_trial in (True,) if dry_run else (True, False):
        done = []
        for each in left:
            with stores.open(stores.path(each.project)) as store:
                report = store.erasure.undo_import(run, anyway=anyway, erase=erase, dry_run=is_trial)
            done.append(ProjectImportUndo(project=each.project, **asdict(report)))
    return done


class ProjectHit(Hit, kw_only=True):
    """A hit in a project's store."""

    project: str


class ProjectsSearchResult(msgspec.Struct, kw_only=True):
    """The hits in all projects' stores, best first.

    synced: whether every read model had caught up with its log.
    silent: what was left out and why, keyed by project: sides as in a `SearchResult`; `store` if it failed.
    took_ms: milliseconds.
    """

    hits: list[ProjectHit]
    mode: Mode
    synced: bool
    silent: dict[str, dict[str, str]]
    took_ms: float


def search_projects(stores: ProjectStores, request: Search) -> ProjectsSearchResult:
    """Search all projects' stores; see `Projects.search`."""
    started = time.perf_counter()
    result = ProjectsSearchResult(hits=[], mode=request.mode, synced=True, silent={}, took_ms=0.0)
    answered = 0
    for project in stores.names:
        try:
            with stores.open(stores.path(project)) as store:
                found = bind_operation(store, "search")(request)
        except MemlogError as error:
            result.silent[project] = {"store": error.message}
            if not answered and project == stores.names[-1]:
                raise
            continue
        answered += 1
        result.hits += [
            ProjectHit(project=project, **{name: getattr(hit, name) for name in hit.__struct_fields__})
            for hit in found.hits
        ]
        result.synced = result.synced and found.synced
        if found.silent:
            result.silent[project] = found.silent
    newest_first = sorted(result.hits, key=lambda hit: hit.ts, reverse=True)
    best_first = sorted(newest_first, key=lambda hit: hit.score, reverse=True)
    distinct: dict[tuple[str, str], ProjectHit] = {}
    for hit in best_first:  # a fork and its original may be in two projects
        distinct.setdefault((hit.event_id, hit.content), hit)
    result.hits = [*distinct.values()][: request.k]
    result.took_ms = round((time.perf_counter() - started) * 1000, 3)
    return result

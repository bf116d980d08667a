"""Sorts coding-agent sessions by project, for imports that read one project's sessions at a time."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from memlog.eventlog.errors import BadInput
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.service.exchange.archives import opened_archive
from memlog.service.exchange.checkouts import Checkouts
from memlog.service.exchange.formats import ChosenSessions, ForeignSession, load_importer
from memlog.service.exchange.source import ForeignFiles, Tables

_WITHOUT = "default"
"""The project for sessions that name neither a folder nor a remote."""

ProjectOf = Callable[[ForeignSession], str]
"""Returns a session's project."""


def project_of_checkout(checkouts: Checkouts) -> ProjectOf:
    """Return a function that names a session's project by its folder and remote."""
    return lambda session: checkouts.project_of(session.folder, session.remote) or _WITHOUT


def sort_sessions(
    format: str, paths: Sequence[Path], project_of: ProjectOf, since: str | None = None
) -> dict[str, ChosenSessions]:
    """Return the sessions at `paths`, keyed by project in name order; {} if the format has no sessions.

    All files of a session and its subagents belong to the project of the first file that names a folder.

    since: only files that changed at or after this time; None for all.

    Raises:
        BadInput: a path does not exist.
    """
    check_paths_exist(paths)
    if (find_sessions := load_importer(format).find_sessions) is None:
        return {}
    found: list[tuple[Path, ForeignSession]] = []
    with closing(Tables()) as tables:
        for path in paths:
            with opened_archive(path) as archive:
                files = ForeignFiles(path, tables, archive=archive, since=since)
                found += [(path, session) for session in find_sessions(files)]
    first: dict[str, ForeignSession] = {}
    for _, session in sorted(found, key=lambda each: (each[1].folder is None, each[1].remote is None)):
        first.setdefault(session.name, session)
    projects = {name: project_of(session) for name, session in first.items()}
    names = sorted({*projects.values()})
    sorted_by_project = {name: ChosenSessions(set(), defaultdict(set), name == names[0]) for name in names}
    for path, session in found:
        chosen = sorted_by_project[projects[session.name]]
        chosen.names.add(session.name)
        chosen.files[path].add(session.path)
    return sorted_by_project


def check_paths_exist(paths: Sequence[Path]) -> None:
    """Raise BadInput if any of the paths is neither a file nor a folder."""
    if missing := [path for path in paths if not (path.is_file() or path.is_dir())]:
        raise BadInput(f"the path does not exist: {escape_invalid_utf8(missing[0])}", hint="check the path")

"""The operations of `store.exchange`: import and export."""

import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import msgspec
from msgspec import Meta

from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Local, Reads
from memlog.eventlog.files.folders import make_folder_and_parents
from memlog.eventlog.files.locks import holding_lock
from memlog.eventlog.log.layout import IMPORT_LOCK
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.projector.sqlite import Connection, choose_binding, error_types_of_binding
from memlog.query.records import PLAIN_TABLES, rows_of_plain_table
from memlog.query.request import PathField, Time
from memlog.service.engine.operation import OperationGroup, operation
from memlog.service.engine.readable import is_file_access_restricted
from memlog.service.engine.requests import DryRun, Paths, ProgressField
from memlog.service.exchange.formats import ChosenSessions, check_format, format_names, load_importer
from memlog.service.exchange.incoming import ImportedRecords

if TYPE_CHECKING:
    from memlog.query.imports import ImportRun
    from memlog.service.exchange.histories import FoundHistory
    from memlog.service.exchange.importing import ImportReport


class DataExchange(OperationGroup):
    """Imports data from other programs, and exports data for them."""

    @operation("append", reads_paths=True)
    def import_from(
        self,
        format: Annotated[
            str | None,
            Meta(title="NAME"),
            "The format.",
            Reads(check_format, "format", choices=(*format_names(),)),
        ] = None,
        paths: Annotated[
            Paths, Meta(title="PATH"), "The files, folders or archives of the other program."
        ] = (),
        *,
        project: Annotated[
            str | None, "Import only this project of the other program (chatdo and coding agents only)."
        ] = None,
        map: Annotated[
            PathField | None, Meta(title="FILE"), "A TOML file that tells what the records mean (jsonl only)."
        ] = None,
        since: Annotated[
            Time | None, "Import only files that changed at or after this time; of an archive, all."
        ] = None,
        chosen: Annotated[
            ChosenSessions | None, Local(is_callback=False), "Import only these sessions of coding agents."
        ] = None,
        run: Annotated[
            str | None, Local(is_callback=False), "The id of the import; a random one by default."
        ] = None,
        imported: Annotated[
            ImportedRecords | None, Local(is_callback=False), "What to skip, as it was imported before."
        ] = None,
        progress: ProgressField = None,
        dry_run: DryRun = False,
    ) -> "ImportReport":
        """Import another program's data: memories, facts, daily events and messages become events.

        Records that were imported before are recognised by their ids and not written again, but their changes
        are imported. Forgotten records do not come back. An interrupted import can be run again. If two
        sources use the same ids, the second source's records get different ids. The report accounts for every
        record.

        A store is for one project: if a source has several projects, choose one. Only coding-agent sessions
        may all go into one store.

        Raises:
            BadInput: there is no such format or project, a path does not exist or has no data in the format,
                the source has several projects and none is chosen, or the map is invalid, or the format takes
                none.
            Busy, LogError: as `Store.append`; earlier imported records stay.
        """
        from memlog.service.exchange.archives import opened_archive
        from memlog.service.exchange.checkouts import Checkouts
        from memlog.service.exchange.importing import Importing, ImportReport
        from memlog.service.exchange.maps import read_map
        from memlog.service.exchange.session_projects import (
            check_paths_exist,
            project_of_checkout,
            sort_sessions,
        )
        from memlog.service.exchange.source import Tables

        sources, first = [Path(path) for path in paths], cast("str | None", since)
        if format is None or not sources:
            missing = "format" if format is None else "path"
            raise BadInput(f"no {missing}", hint="name a format, and the files or folders to import")
        importer = load_importer(format)
        if importer.find_sessions is None:
            check_project(project, list_projects(format, sources), format)
        elif chosen is None and project is not None:
            if is_file_access_restricted():  # git would tell about folders that it may not read
                raise BadInput("a server imports all sessions", hint="omit the project")
            sessions = sort_sessions(format, sources, project_of_checkout(Checkouts()), first)
            check_project(project, [*sessions], format)
            chosen = sessions[project]
        check_paths_exist(sources)
        if map is not None and format != "jsonl":
            raise BadInput(f"{format} takes no map", hint="use jsonl for files of your own, or omit the map")
        records = None if map is None else read_map(Path(map))
        report = ImportReport(format=format, dry_run=dry_run, project=project)
        if not dry_run:
            make_folder_and_parents(self._engine.path)  # for the lock file
        lock = holding_lock(self._engine.path / IMPORT_LOCK, "the import", self._engine.lock_timeout)
        with closing(Tables()) as tables, nullcontext() if dry_run else lock:
            importing = Importing(
                report, self._engine, tables, progress, records, chosen, run, first, imported
            )
            for path in sources:
                with opened_archive(path) as archive:
                    importing.import_path(importer, path, archive)
        if not report.found:
            raise no_data_error(format, sources)
        return report

    @operation("read")
    def list_imports(self) -> "list[ImportRun]":
        """List the imports that brought events, newest last."""
        from memlog.query.imports import list_imports

        return self._read(list_imports)

    @operation("read", reads_paths=True)
    def find_histories(
        self,
        home: Annotated[PathField, "The home folder of a person."],
        *,
        folders: Annotated[Paths, "Further folders of the programs."] = (),
        hosts: Annotated[tuple[str, ...], Meta(title="NAME"), "Only these programs, such as codex."] = (),
        since: Annotated[Time | None, "Only sessions that changed at or after this time."] = None,
        progress: ProgressField = None,
    ) -> "list[FoundHistory]":
        """Find the conversations that coding agents keep on this machine, and count them.

        Also counts the sessions that the agents will delete within a week.

        Raises:
            BadInput: `home` does not exist.
        """
        from memlog.service.exchange.histories import find_histories

        if not Path(home).is_dir():
            raise BadInput(
                f"the path does not exist: {escape_invalid_utf8(Path(home))}", hint="check the path"
            )
        return [
            *find_histories(
                Path(home),
                [Path(folder) for folder in folders],
                progress,
                formats=[check_format(host) for host in hosts] or format_names(),
                since=cast("str | None", since),
            )
        ]

    @operation("read", writes_paths=True)
    def export_sqlite(
        self,
        path: Annotated[PathField, Meta(title="FILE"), "The file to write."],
        *,
        replace: Annotated[bool, "Replace an existing file."] = False,
        progress: ProgressField = None,  # noqa: ARG002 - an export is short
    ) -> "ExportReport":
        """Write messages, memories, facts, core memory and daily events as plain tables in an SQLite file.

        The file is for Datasette, DuckDB and people; memlog never reads it.

        Raises:
            BadInput: the file exists and `replace` is not set, or it cannot be written.
        """
        if replace and is_file_access_restricted():
            raise BadInput("a server export cannot replace a file", hint="use the path of a new file")

        return self._read(lambda db: write_tables(db, Path(path), replace=replace))


def list_projects(format: str, paths: Sequence[Path]) -> list[str]:
    """Return the names of the projects in the data at `paths`; [] if the format has no projects.

    Raises:
        BadInput: a path does not exist.
    """
    from memlog.service.exchange.archives import opened_archive
    from memlog.service.exchange.session_projects import check_paths_exist
    from memlog.service.exchange.source import ForeignFiles, Tables

    check_paths_exist(paths)
    if (projects := load_importer(format).projects) is None:
        return []
    found: set[str] = set()
    with closing(Tables()) as tables:
        for path in paths:
            with opened_archive(path) as archive:
                found.update(projects(ForeignFiles(path, tables, archive=archive)))
    return sorted(found)


def no_data_error(format: str, paths: Iterable[Path]) -> BadInput:
    """Return the error for paths without data in a format."""
    return BadInput(
        f"no {format} data in {', '.join(escape_invalid_utf8(each) for each in paths)}",
        hint="see docs/importing.md for the files of each format",
    )


def check_project(chosen: str | None, projects: Sequence[str], name: str) -> None:
    """Raise BadInput if the project is unknown, or if none of several projects is chosen."""
    named = ", ".join(map(escape_invalid_utf8, projects))
    if chosen is not None and chosen not in projects:
        hint = f"use one of: {named}" if projects else f"omit the project: {name} has no projects"
        if load_importer(name).find_sessions is not None:
            hint += "; store.exchange.import_from(FORMAT, PATHS) takes all into one store"
        raise BadInput(f"there is no project {escape_invalid_utf8(chosen)!r}", hint=hint)
    if chosen is None and len(projects) > 1:
        raise BadInput(f"the source has several projects: {named}", hint="choose one: project=NAME")


_TYPES = {
    **dict.fromkeys(("rank", "access_count", "raw_tokens"), int),
    **dict.fromkeys(("importance", "salience"), float),
}
"""The types of the columns that do not hold text."""


class ExportReport(msgspec.Struct, kw_only=True):
    """The result of an export. tables: the number of rows, keyed by table."""

    path: str
    tables: dict[str, int]
    bytes: int


def write_tables(db: Connection, path: Path, *, replace: bool) -> ExportReport:
    """Write the plain tables to a new file atomically; see `DataExchange.export_sqlite`."""
    from sqlite_utils import Database

    if os.path.lexists(path) and not replace:
        raise BadInput(f"{escape_invalid_utf8(path)} already exists", hint="use another file or replace=True")
    if path.name.endswith(("-wal", "-shm", "-journal")):
        raise BadInput(
            f"{escape_invalid_utf8(path)}: SQLite uses such names for its own files", hint="use a .db file"
        )
    try:
        is_in_use = path.with_name(f"{path.name}-wal").exists()
        handle, name = tempfile.mkstemp(prefix=".export.", dir=path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error
    os.close(handle)
    unfinished = Path(name)
    failures: tuple[type[Exception], ...] = (OSError, *error_types_of_binding())
    try:
        if is_in_use:
            raise BadInput(
                f"{escape_invalid_utf8(path)} is in use by another program", hint="close that program"
            )
        counts = {}
        with closing(choose_binding().connect(name)) as connection:
            made = Database(connection)
            for table in PLAIN_TABLES:
                columns, rows = rows_of_plain_table(db, table)
                made.table(table).create({column: _TYPES.get(column, str) for column in columns})
                made.table(table).insert_all(rows)
                counts[table] = made.table(table).count
            connection.commit()
        size = unfinished.stat().st_size
        if replace:
            unfinished.replace(path)
        else:
            os.link(unfinished, path)  # fails if the file exists by now
    except failures as error:
        raise _cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()
    return ExportReport(path=str(path), tables=counts, bytes=size)


def _cannot_write(path: Path, error: Exception) -> BadInput:
    return BadInput(
        f"{escape_invalid_utf8(path)} cannot be written: {error}", hint="use a file in a writable folder"
    )

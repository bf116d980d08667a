"""memlog import, export."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from msgspec.structs import replace

import memlog
from memlog import BadInput
from memlog.cli.options.open_store import open_store
from memlog.cli.options.request_options import Given, Store, request_command
from memlog.cli.options.settings import Group, Settings, projects_folder
from memlog.cli.output.answer import Columns, Done, TextAnswer, table_of_records
from memlog.cli.output.output import count_noun, escape_controls, prints_sentences
from memlog.cli.process.confirmation import ask_yes_or_no
from memlog.service.engine.operation import bind_operation
from memlog.service.exchange.exchange import list_projects
from memlog.service.exchange.formats import describe_format, format_names, load_importer
from memlog.service.projects import Projects

_UNREADABLE = 65

_LONGEST = 100
"""How many characters of an event are shown."""

_FORMATS = "\n\n".join(f"{name}: {describe_format(name)}" for name in format_names())


class _ImportReports(TextAnswer, frozen=True):
    """The reports of an import, one per project. Exits with 65 if anything could not be read or stored.

    nameless: projects whose names no store can have.
    """

    reports: "Sequence[memlog.ImportReport]" = ()
    nameless: Sequence[str] = ()

    def print(self, ctx: click.Context) -> int:
        is_whole = not self.nameless and not any(done.unreadable or done.refused for done in self.reports)
        return super().print(ctx) or (0 if is_whole else _UNREADABLE)


@request_command(
    "exchange.import_from",
    adds=f"\n{_FORMATS}\n\nIf no store and no project is named, each project of chatdo is imported into the"
    " store of the project with its name.\n\nThe exit code is 65 if anything could not be read or stored;"
    " the rest is imported.",
    gets="store",
)
def import_(store: Store, given: Given) -> _ImportReports:
    ctx = click.get_current_context()
    if given.format is None or not given.paths:
        found = _find_histories(store, given)
        shown = _show_histories(found)
        if given.format is None and not _is_agreed(ctx, shown):
            return shown
        return _import_histories(store, given, found) if found else shown
    settings = ctx.ensure_object(Settings)
    project, origin = settings.find_value_and_origin("project", of_store=False)
    projects: Sequence[str] = ()
    if load_importer(given.format).projects is not None:
        if origin != "default":
            given = replace(given, project=given.project or project)
        elif not settings.names_store:
            projects = list_projects(given.format, given.paths) if given.project is None else [given.project]
    if not projects:
        done: memlog.ImportReport = bind_operation(store, "exchange.import_from")(given)
        return _ImportReports(done, text=[*_summary_lines(done)], reports=[done])
    known = Projects(projects_folder())
    reports, nameless = [], []
    for name in projects:
        try:
            ctx.obj = settings.with_store_at(known.path(name))
        except BadInput as error:
            nameless.append(f"left out: {error.message}")
            continue
        with open_store(ctx) as own:
            reports.append(bind_operation(own, "exchange.import_from")(replace(given, project=name)))
    lines = [
        line
        for done in reports
        for line in (f"project  {escape_controls(str(done.project))}", *_summary_lines(done))
    ]
    document = {"projects": reports, "left_out": nameless} if nameless else {"projects": reports}
    return _ImportReports(document, text=lines, notes=nameless, reports=reports, nameless=nameless)


def _find_histories(store: Store, given: Given) -> "list[memlog.FoundHistory]":
    """Return what the programs keep on this machine; with a format, only that program's."""
    if given.format is not None and not load_importer(given.format).homes:
        raise click.UsageError(
            f"{given.format} has no folder of its own: name the files or folders to import"
        )
    variables = (load_importer(name).variable for name in format_names())
    named = [os.environ[name] for name in variables if name and os.environ.get(name)]
    found = store.exchange.find_histories(Path.home(), folders=named, progress=given.progress)
    return [each for each in found if given.format in (None, each.format)]


def _show_histories(found: "Sequence[memlog.FoundHistory]") -> _ImportReports:
    if not found:
        note = "no conversations of a known program found: name a format and a path; see --help"
        return _ImportReports({"histories": []}, notes=[note])
    days = next((each.kept_days for each in found if each.expiring), None)
    notes = [
        "memlog import FORMAT imports what a program keeps, memlog import FORMAT PATH what is elsewhere",
        *(
            [f"sessions that did not change for {days} days are deleted when their program starts"]
            if days
            else []
        ),
    ]
    return _ImportReports({"histories": found}, table=table_of_records(found, _HISTORY), notes=notes)


def _is_agreed(ctx: click.Context, shown: _ImportReports) -> bool:
    """Show what was found, and return whether the person wants it imported."""
    if not shown.table.columns or not prints_sentences(ctx) or sys.stdin is None or not sys.stdin.isatty():
        return False
    shown.print(ctx)
    return ask_yes_or_no("Import them?")


def _import_histories(store: Store, given: Given, found: "Sequence[memlog.FoundHistory]") -> _ImportReports:
    importing = bind_operation(store, "exchange.import_from")
    reports = [importing(replace(given, format=each.format, paths=(Path(each.folder),))) for each in found]
    if len(reports) == 1:
        return _ImportReports(reports[0], text=[*_summary_lines(reports[0])], reports=reports)
    lines = [
        line
        for each, done in zip(found, reports, strict=True)
        for line in (f"source   {escape_controls(each.folder)} ({each.format})", *_summary_lines(done))
    ]
    return _ImportReports({"sources": reports}, text=lines, reports=reports)


def _shorten_home(folder: str) -> str:
    path, home = Path(folder), Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else folder


_HISTORY: Columns = {
    "program": "format",
    "folder": lambda each: _shorten_home(each.folder),
    "sessions": "sessions",
    "messages": "messages",
    "MB": lambda each: f"{each.bytes / 1e6:,.1f}",
    "from": lambda each: (each.first or "")[:10],
    "to": lambda each: (each.last or "")[:10],
    "deleted within a week": lambda each: str(each.expiring or ""),
}


def _summary_lines(done: "memlog.ImportReport") -> Iterator[str]:
    skipped = "".join(f", {count} {reason}" for reason, count in done.skipped.items())
    yield f"records  {done.found:,} found: {done.used:,} used, {done.unreadable:,} unreadable{skipped}"
    verb = "would be appended" if done.dry_run else "appended"
    changed = f" ({done.changed:,} changed since)" if done.changed else ""
    updated = f" {done.updated:,} {'would update' if done.dry_run else 'updated'}," if done.updated else ""
    yield (
        f"events   {done.events:,} made: {done.appended:,} {verb}, {done.known:,} known{changed},"
        f"{updated} {done.forgotten:,} forgotten, {done.refused:,} refused"
    )
    if done.described:
        yield f"chats    {count_noun(done.described, 'description')}"
    for prefix in done.prefixes:
        yield f"source   another source has the same ids: the ids of this source begin with {prefix}/"
    for name, count in sorted(done.types.items()):
        yield f"         {count:,} {name}"
    for name, count in sorted(done.unknown_columns.items()):
        yield f"left out {name}: {count_noun(count, 'row')}"
    for event in done.first if done.format == "jsonl" else ():
        speaker = "/".join(event[key] for key in ("role", "name") if event.get(key))
        content = " ".join(event["content"].split())
        line = f"{event.get('ts') or 'no time'} {event['channel']}:{event['chat_id']} {speaker}: {content}"
        yield escape_controls(f"first    {line[:_LONGEST]}")
    for problem in done.problems:
        yield f"problem  {problem.where}: {problem.why}"
    more = done.unreadable + done.refused + done.changed - len(done.problems)
    if more > 0:
        yield f"         and {more:,} more"


@click.group(cls=Group)
def export() -> None:
    """Export the store for other programs."""


@request_command("exchange.export_sqlite", group=export, name="sqlite")
def export_sqlite(done: "memlog.ExportReport", _: Given) -> Done:
    rows = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in done.tables.items())
    return Done(done, f"Wrote {done.path}: {rows}.")

"""memlog import, export."""

import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

import memlog
from memlog import BadInput
from memlog.cli.options.follow import folders_named_by_variables
from memlog.cli.options.open_store import make_store_opener, open_store
from memlog.cli.options.request_options import Given, RequestCommand, Store, request_command
from memlog.cli.options.settings import Group, Settings, projects_folder
from memlog.cli.options.zone import format_in_local_time
from memlog.cli.output.answer import (
    Answer,
    Columns,
    Done,
    TextAnswer,
    list_answer,
    records_answer,
    table_of_records,
)
from memlog.cli.output.output import STORED, count_noun, escape_controls, prints_sentences, put_on_one_line
from memlog.cli.process.confirmation import ask_yes_or_no, run_if_confirmed
from memlog.service.engine.operation import bind_operation
from memlog.service.exchange.formats import check_format, describe_format, format_names, load_importer
from memlog.service.projects import Projects

_UNREADABLE = 65

_LONGEST = 100
"""The maximum number of characters of an event to show."""

_FORMATS = "\n\n".join(f"{name}: {describe_format(name)}" for name in format_names())


class _ImportReports(TextAnswer, frozen=True):
    """The reports of an import, one per project. Exits with 65 if anything could not be read or stored.

    nameless: projects left out because their names are invalid for a store.
    """

    reports: "Sequence[memlog.ImportReport]" = ()
    nameless: Sequence[str] = ()

    def print(self, ctx: click.Context) -> int:
        is_whole = not self.nameless and not any(done.unreadable or done.refused for done in self.reports)
        return super().print(ctx) or (0 if is_whole else _UNREADABLE)


class _ImportCommand(RequestCommand, Group):
    """`memlog import`, which is both a command with arguments and the group of `undo` and `runs`."""

    allow_extra_args = click.Command.allow_extra_args
    allow_interspersed_args = click.Command.allow_interspersed_args

    parse_args = click.Command.parse_args
    invoke = click.Command.invoke
    collect_usage_pieces = click.Command.collect_usage_pieces

    def __init__(self, spelling: request_command, function: Callable[..., Any]) -> None:
        super().__init__(spelling, function)
        self.invoke_without_command = True
        self.no_args_is_help = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """See `click.Command`. In the context of a subcommand, there are no parameters."""
        return super().get_params(ctx) if ctx.command is self else []

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401
    ) -> click.Context:
        """See `click.Command`. Without a subcommand, the arguments are an import's."""
        if args[:1] and args[0] in self.commands:
            return Group(self.name, self.commands).make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


_SPELLING = request_command(
    "exchange.import_from",
    name="import",
    adds=f"\n{_FORMATS}\n\nIf no store and no project is named, each project of chatdo, and each session of"
    " a coding agent, is imported into the store of its project.\n\nThe exit code is 65 if anything could"
    " not be read or stored; the rest is imported.",
    gets="store",
)


@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Without a FORMAT: show and import only what this program keeps, such as codex; repeatable.",
)
@click.option("--yes", is_flag=True, help="Without a FORMAT: import all that is found, and do not ask.")
def _import(store: Store, given: Given, *, hosts: tuple[str, ...], yes: bool) -> _ImportReports:
    ctx = click.get_current_context()
    if hosts and given.format is not None:
        raise click.UsageError("--host cannot be combined with a FORMAT")
    if given.format is None or not given.paths:
        found = _find_histories(store, given, hosts)
        shown = _show_histories(found)
        if given.format is None and not yes and not _is_agreed(ctx, shown):
            return shown
        if not found:
            if given.format is not None:
                raise BadInput(f"no {given.format} data in its own folder", hint="name the files or folders")
            return shown
        if ctx.ensure_object(Settings).names_store_or_project:
            folders = [(each.format, (Path(each.folder),)) for each in found]
            return _import_into_store(
                store, [replace(given, format=name, paths=paths) for name, paths in folders]
            )
        sources: defaultdict[str, list[Path]] = defaultdict(list)
        for each in found:
            sources[each.format].append(Path(each.folder))
        return _import_by_project(ctx, given, sources)
    importer, settings = load_importer(given.format), ctx.ensure_object(Settings)
    if importer.projects is None and importer.find_sessions is None:
        return _import_into_store(store, [given])
    project, origin = settings.find_value_and_origin("project", of_store=False)
    if not settings.names_store_or_project:
        return _import_by_project(ctx, given, {given.format: given.paths})
    if importer.projects is not None and origin != "default":
        given = replace(given, project=given.project or project)
    return _import_into_store(store, [given])


def _import_into_store(store: Store, requests: Sequence[Given]) -> _ImportReports:
    reports = [bind_operation(store, "exchange.import_from")(given) for given in requests]
    if len(reports) == 1:
        lines = [*_summary_lines(reports[0]), *_lines_on_sending(reports)]
        return _ImportReports(reports[0], text=lines, reports=reports)
    lines = [
        line
        for given, done in zip(requests, reports, strict=True)
        for line in (
            f"source   {escape_controls(str(given.paths[0]))} ({given.format})",
            *_summary_lines(done),
        )
    ]
    return _ImportReports({"sources": reports}, text=[*lines, *_lines_on_sending(reports)], reports=reports)


def _import_by_project(
    ctx: click.Context, given: Given, sources: Mapping[str, Sequence[Path]]
) -> _ImportReports:
    done = _all_projects(ctx).import_sources(
        sources,
        project=given.project,
        home=Path.home(),
        since=given.since,
        progress=given.progress,
        dry_run=given.dry_run,
    )
    lines = []
    for name, reports in groupby(done.projects, key=lambda report: str(report.project)):
        lines.append(f"project  {put_on_one_line(name)}")
        for report in reports:
            lines += [f"source   {report.format}"] if len(sources) > 1 else []
            lines += _summary_lines(report)
    notes = [*done.left_out, *map(escape_controls, done.notes), *map(_describe_staying, done.staying)]
    return _ImportReports(
        done,
        text=[*lines, *_lines_on_sending(done.projects)],
        notes=notes,
        reports=done.projects,
        nameless=done.left_out,
    )


def _describe_staying(staying: "memlog.StayingSessions") -> str:
    holder, linked = escape_controls(staying.project), escape_controls(staying.linked_to)
    return (
        f"{holder} keeps sessions that are linked to {linked} ({staying.sessions:,}): to move them, undo the"
        f" whole import that brought them, then import again;"
        f" memlog --project {shlex.quote(holder)} import runs lists the imports"
    )


def _lines_on_sending(reports: "Sequence[memlog.ImportReport]") -> Iterator[str]:
    """Yield a line that says when imported sessions are sent to providers; see `list_agent_channels`."""
    formats = sorted(
        {each.format for each in reports if load_importer(each.format).find_sessions is not None}
    )
    if formats:
        names = " or ".join(formats)
        yield f"private  sent to no provider on another machine unless extraction.channels names {names}"


import_ = _ImportCommand(_SPELLING, _import)


def _find_histories(store: Store, given: Given, hosts: tuple[str, ...]) -> "list[memlog.FoundHistory]":
    """Return the conversations on this machine in the given format or, by default, of `hosts`."""
    hosts = hosts if given.format is None else (given.format,)
    for name in hosts:
        if not load_importer(check_format(name)).homes:
            raise click.UsageError(f"{name} has no folder of its own: name the files or folders to import")
    named = [*folders_named_by_variables()]
    return store.exchange.find_histories(
        Path.home(), folders=named, hosts=hosts, since=given.since, progress=given.progress
    )


def _show_histories(found: "Sequence[memlog.FoundHistory]") -> _ImportReports:
    if not found:
        note = "no conversations of a known program found: name a format and a path; see --help"
        return _ImportReports({"histories": []}, notes=[note])
    notes = [
        "memlog import FORMAT imports the sessions of one program; memlog import FORMAT PATH, other folders",
        *(
            f"{each.format} deletes sessions that have not changed for {each.kept_days} days"
            for each in found
            if each.expiring
        ),
    ]
    return _ImportReports({"histories": found}, table=table_of_records(found, _HISTORY), notes=notes)


def _is_agreed(ctx: click.Context, shown: _ImportReports) -> bool:
    """Show the conversations found, and return whether the user agrees to import them."""
    if not shown.table.columns or not prints_sentences(ctx) or sys.stdin is None or not sys.stdin.isatty():
        return False
    shown.print(ctx)
    return ask_yes_or_no("Import them?")


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


@request_command(
    "erasure.undo_import",
    group=import_,
    name="undo",
    adds="\nIf no store and no project is named, it is undone in the store of each project that has it.",
    gets="context",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def undo(ctx: click.Context, given: Given, *, yes: bool) -> Answer:
    def ask_person(found: "Sequence[memlog.ImportUndo]") -> bool:
        count = sum(each.events for each in found)
        return ask_yes_or_no(f"Erase the import {given.run} permanently: {count_noun(count, 'event')}?")

    def run(given: Given) -> "Sequence[memlog.ImportUndo]":
        options = {name: getattr(given, name) for name in ("anyway", "erase", "dry_run")}
        if not ctx.ensure_object(Settings).names_store_or_project:
            return _all_projects(ctx).undo_import(given.run, **options)
        with open_store(ctx) as store:
            return [store.erasure.undo_import(given.run, **options)]

    # What is not erased can be imported again.
    done = run_if_confirmed(run, given, ask_person, is_yes=yes or not given.erase)
    return records_answer(
        {"projects": done} if isinstance(done[0], memlog.ProjectImportUndo) else done[0],
        done,
        _with_project(done, _UNDONE),
        notes=[*_undo_notes(done)],
    )


def _all_projects(ctx: click.Context) -> Projects:
    return Projects(projects_folder(), make_store_opener(ctx, STORED.add_and_print_warnings))


def _with_project(records: Sequence[object], columns: Columns) -> Columns:
    has_project = any(hasattr(each, "project") for each in records)
    return {"project": "project", **columns} if has_project else columns


_UNDONE: Columns = {
    "import": "run",
    "format": lambda each: ", ".join(each.formats),
    "events": "events",
    "derived": "derived",
    "kept": lambda each: len(each.kept),
    "result": lambda each: ("erased" if each.erased else "undone") if each.done else "nothing was undone",
}


def _undo_notes(done: "Sequence[memlog.ImportUndo]") -> Iterator[str]:
    if met_by := dict.fromkeys(run for each in done for run in each.met_by):
        yield f"later imports of other sources met some of its events: {', '.join(met_by)}"
    if kept := [name for each in done for name in each.kept]:
        yield f"changed since the import, so they stay: {', '.join(kept)}"
    if any(each.erased for each in done):
        yield "erased events cannot be imported again; memlog scrub overwrites them in the log"
    elif any(each.done for each in done):
        yield "importing again brings back the events that are still in the source"


_RUNS: Columns = {
    "import": "run",
    "time": lambda each: format_in_local_time(each.ts),
    "format": lambda each: ", ".join(each.formats),
    "events": "appended",
    "met": "met",
    "state": lambda each: "undone" if each.is_undone else "",
    "path": lambda each: ", ".join(map(_shorten_home, each.paths)),
}


@request_command(
    "exchange.list_imports",
    group=import_,
    name="runs",
    adds="\nIf no store and no project is named, the imports into the stores of all projects are listed.",
    gets="context",
)
def runs(ctx: click.Context, _: Given) -> Answer:
    found: Sequence[memlog.ImportRun]
    failed: dict[str, memlog.MemlogError] = {}
    if ctx.ensure_object(Settings).names_store_or_project:
        with open_store(ctx) as store:
            found = store.exchange.list_imports()
    else:
        found = _all_projects(ctx).list_imports(failed)
    notes = [f"{escape_controls(name)}: {error.message}" for name, error in failed.items()]
    return list_answer("imports", found, _with_project(found, _RUNS), notes=notes, if_empty="no imports")


def _summary_lines(done: "memlog.ImportReport") -> Iterator[str]:
    skipped = "".join(f", {count} {reason}" for reason, count in done.skipped.items())
    yield f"records  {done.found:,} found: {done.used:,} used, {done.unreadable:,} unreadable{skipped}"
    verb = "would be appended" if done.dry_run else "appended"
    changed = f" ({done.changed:,} changed since)" if done.changed else ""
    updated = f" {done.updated:,} {'would update' if done.dry_run else 'updated'}," if done.updated else ""
    restored = f" {done.restored:,} restored," if done.restored else ""
    yield (
        f"events   {done.events:,} made: {done.appended:,} {verb},{restored} {done.known:,} known{changed},"
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
    if done.run is not None:
        named = "" if done.store is None else f" --project {shlex.quote(str(done.project))}"
        yield escape_controls(f"import   {done.run}: to take it back, memlog{named} import undo {done.run}")
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

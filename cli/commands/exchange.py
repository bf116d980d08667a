"""memlog import, export."""

from collections.abc import Iterator, Sequence

import click
from msgspec.structs import replace

import memlog
from memlog import BadInput
from memlog.cli.options.open_store import open_store
from memlog.cli.options.request_options import Given, Store, request_command
from memlog.cli.options.settings import Group, Settings, projects_folder
from memlog.cli.output.answer import Done, TextAnswer
from memlog.cli.output.output import count_noun, escape_controls
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

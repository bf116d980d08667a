"""memlog projects."""

from collections.abc import Iterator
from functools import partial

import click
from msgspec.structs import replace

from memlog.cli.commands.maintenance import status_values
from memlog.cli.options.open_store import open_store
from memlog.cli.options.param_types import PROJECT
from memlog.cli.options.request_options import Given, request_command
from memlog.cli.options.settings import Group, Settings, projects_folder
from memlog.cli.options.zone import ZONE, format_in_local_time
from memlog.cli.output.answer import (
    Answer,
    Columns,
    list_answer,
    notes_on_omitted_parts,
    table_of_named_values,
    table_of_records,
)
from memlog.cli.output.output import count_noun, escape_controls
from memlog.cli.process.confirmation import ask_yes_or_no, run_if_confirmed
from memlog.service.engine.operation import bind_operation, call_and_require_answer
from memlog.service.projects import Project, ProjectRemoval, Projects

_COLUMNS: Columns = {
    "project": "name",
    "conversations": "conversations",
    "bytes": "log_bytes",
    "last append": lambda project: format_in_local_time(project.last_append) or "never",
    "folder": "folder",
}


@click.group(cls=Group)
@click.pass_context
def projects(ctx: click.Context) -> None:
    """List, show, link and remove projects. Each has its own store in the platform's user data folder."""
    ZONE.name = partial(ctx.ensure_object(Settings).value, "timezone", of_store=False)


@request_command("projects.list", group=projects, name="list", gets="context")
def list_(_: click.Context, __: Given) -> Answer:
    found = Projects(projects_folder()).list()
    return list_answer("projects", found, _COLUMNS, notes=[*_unfinished_removals(found)])


@request_command(
    "projects.get",
    group=projects,
    types={"name": PROJECT},
    adds="\nThe status of its store is that of memlog --project NAME status, even if an option or a variable"
    " names another store.",
    gets="context",
)
def show(ctx: click.Context, given: Given) -> Answer:
    known = Projects(projects_folder())
    found = call_and_require_answer(known.get, given)
    ctx.obj = ctx.ensure_object(Settings).with_store_at(known.path(given.name))
    with open_store(ctx) as store:
        status = store.maintenance.status()
    (row,) = table_of_records([found], _COLUMNS).rows
    values = dict(zip(_COLUMNS, row, strict=True)) | status_values(status)
    document = {"project": found, "status": status}
    return Answer(document, table_of_named_values(values), notes=notes_on_omitted_parts(status.silent))


@request_command(
    "projects.remove",
    group=projects,
    types={"name": PROJECT},
    without=["lock_timeout"],
    gets="context",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(ctx: click.Context, given: Given, *, yes: bool) -> Answer:
    def ask_person(found: ProjectRemoval) -> bool:
        others = [f"{other} is not memlog's, and is removed, too" for other in found.others]
        return ask_yes_or_no(
            f"Remove the project {escape_controls(given.name)} permanently: {_describe_removal(found)}?",
            others,
        )

    known = Projects(projects_folder())
    lock_timeout = ctx.ensure_object(Settings).with_store_at(known.path(given.name)).value("lock_timeout")
    done = run_if_confirmed(known.remove, replace(given, lock_timeout=lock_timeout), ask_person, is_yes=yes)
    values = {
        "project": done.name,
        "folder": done.folder,
        "files": done.files,
        "bytes": done.bytes,
        "last append": format_in_local_time(done.last_append) or "never",
        "result": "removed" if done.done else "nothing was removed",
    }
    return Answer(done, table_of_named_values(values), notes=[*_removal_notes(done)])


@request_command("projects.links", group=projects, gets="context")
def links(_: click.Context, __: Given) -> Answer:
    found = Projects(projects_folder()).links()
    return list_answer("links", found, {"project": "project", "folder": "folder"})


@request_command("projects.link", group=projects, types={"project": PROJECT}, gets="context")
def link(_: click.Context, given: Given) -> Answer:
    made = bind_operation(Projects(projects_folder()), "link")(given)
    values = {"folder": made.folder, "project": made.project, "result": "linked"}
    return Answer(made, table_of_named_values(values))


@request_command("projects.unlink", group=projects, gets="context")
def unlink(_: click.Context, given: Given) -> Answer:
    found = call_and_require_answer(Projects(projects_folder()).unlink, given)
    values = {"folder": found.folder, "project": found.project, "result": "no longer linked"}
    return Answer(found, table_of_named_values(values))


def _unfinished_removals(found: list[Project]) -> Iterator[str]:
    for project in found:
        if project.is_being_removed:
            name = escape_controls(project.name)
            yield f"{name}: its removal is incomplete; to finish it: memlog projects remove {name}"


def _describe_removal(found: ProjectRemoval) -> str:
    last = f", last append {format_in_local_time(found.last_append)}" if found.last_append else ""
    return f"{count_noun(found.files, 'file')}, {count_noun(found.bytes, 'byte')}{last}"


def _removal_notes(done: ProjectRemoval) -> Iterator[str]:
    if done.done:
        yield from (f"{name} was not memlog's, and was removed, too" for name in done.others)
        yield from (f"{name} was a link: its target stays" for name in done.links)
        yield from (f"{name}: finished an earlier, incomplete removal" for name in done.finished)

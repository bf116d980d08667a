"""memlog projects."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click

from memlog.cli.answer import Answer, Columns, list_answer, named_values, printed, silence, table_of
from memlog.cli.confirmation import agrees, check_can_ask
from memlog.cli.maintenance import status_values
from memlog.cli.open_store import open_store
from memlog.cli.output import counted, printable
from memlog.cli.param_types import PROJECT
from memlog.cli.settings import Settings, projects_folder
from memlog.cli.standard_options import Group
from memlog.cli.zone import ZONE, minute
from memlog.service.missing import not_found
from memlog.service.projects import Project, ProjectRemoval, Projects

_COLUMNS: Columns = {
    "project": "name",
    "conversations": "conversations",
    "bytes": "log_bytes",
    "last append": lambda project: minute(project.last_append) or "never",
    "folder": "folder",
}

_name = click.argument("name", metavar="NAME", type=PROJECT)


@click.group(cls=Group)
@click.pass_context
def projects(ctx: click.Context) -> None:
    """List, show and remove projects. Each has its own store, in the platform's user data folder."""
    ZONE.name = partial(ctx.ensure_object(Settings).value, "timezone", of_store=False)


@projects.command("list")
@printed
def list_() -> Answer:
    """List the projects by name, with size and last append.

    The size is that of the log; no read model is opened.
    """
    found = Projects(projects_folder()).list()
    return list_answer("projects", found, _COLUMNS, notes=[*_left(found)])


@projects.command()
@_name
@printed
@click.pass_context
def show(ctx: click.Context, name: str) -> Answer:
    """Show a project and the status of its store.

    The status is that of memlog --project NAME status, even if an option or a variable names another store.
    """
    known = Projects(projects_folder())
    found = known.get(name)
    if found is None:
        raise not_found("project_not_found", name)
    ctx.obj = _settings_of(ctx, known.path(name))
    with open_store(ctx) as store:
        status = store.maintenance.status()
    (row,) = table_of([found], _COLUMNS).rows
    values = dict(zip(_COLUMNS, row, strict=True)) | status_values(status)
    document = {"project": found, "status": status}
    return Answer(document, named_values(values), notes=silence(status.silent))


@projects.command()
@_name
@click.option("--yes", is_flag=True, help="Do not ask.")
@printed
@click.pass_context
def remove(ctx: click.Context, name: str, yes: bool) -> Answer:
    """Remove a project and its store for ever.

    Everything in the store's folder is deleted: log, read model, cache, settings. Only an earlier copy brings
    it back. If the command is killed, the whole store remains, or memlog projects list shows what is left and
    the same command removes it. A link, or a folder that is no store, stays as it is.
    """
    check_can_ask(is_yes=yes)

    def confirm(found: ProjectRemoval) -> bool:
        others = [f"{other} is not memlog's, and goes with it" for other in found.others]
        return yes or agrees(f"Remove the project {printable(name)} for ever: {_told(found)}?", others)

    known = Projects(projects_folder())
    lock_timeout = _settings_of(ctx, known.path(name)).value("lock_timeout")
    done = known.remove(name, lock_timeout=lock_timeout, confirm=confirm)
    values = {
        "project": done.name,
        "folder": done.folder,
        "files": done.files,
        "bytes": done.bytes,
        "last append": minute(done.last_append) or "never",
        "result": "removed" if done.done else "nothing was removed",
    }
    return Answer(done, named_values(values), notes=[*_notes(done)])


def _settings_of(ctx: click.Context, store: Path) -> Settings:
    return ctx.ensure_object(Settings).at(store)


def _left(found: list[Project]) -> Iterator[str]:
    for project in found:
        if project.is_being_removed:
            name = printable(project.name)
            yield f"{name}: its removal was not finished, this is what is left: memlog projects remove {name}"


def _told(found: ProjectRemoval) -> str:
    last = f", last append {minute(found.last_append)}" if found.last_append else ""
    return f"{counted(found.files, 'file')}, {counted(found.bytes, 'byte')}{last}"


def _notes(done: ProjectRemoval) -> Iterator[str]:
    if done.done:
        yield from (f"{name} was not memlog's, and is gone too" for name in done.others)
        yield from (f"{name} was a link: its target stays" for name in done.links)
        yield from (f"{name}: what an earlier removal had left is gone" for name in done.finished)

"""memlog projects."""

from collections.abc import Iterator
from pathlib import Path

import click

from memlog.cli.answer import Answer, Table, format_options, named_values, print_answer, silence
from memlog.cli.confirm import agrees, check_can_ask, counted
from memlog.cli.open_store import open_store
from memlog.cli.output import minute, one_line, printable
from memlog.cli.param_types import PROJECT
from memlog.cli.settings import Settings, projects_folder
from memlog.cli.status import values
from memlog.service.projects import Project, ProjectRemoval, Projects, unknown_project

_COLUMNS = ("project", "conversations", "bytes", "last append", "folder")

_name = click.argument("name", metavar="NAME", type=PROJECT)


@click.group()
def projects() -> None:
    """List, show and remove projects: each has a store of its own, below the platform's user data."""


@projects.command("list")
@format_options
@click.pass_context
def list_(ctx: click.Context) -> None:
    """List the projects by name, with size and last append.

    The size is that of the log. No read model is opened.
    """
    found = Projects(projects_folder()).list()
    answer = Answer(
        document={"projects": found},
        table=Table(_COLUMNS, [_row(each) for each in found]),
        records=found,
        notes=list(_left(found)) if found else ["no projects"],
    )
    print_answer(ctx, answer)


@projects.command()
@_name
@format_options
@click.pass_context
def show(ctx: click.Context, name: str) -> None:
    """Show a project, and the status of its store.

    It is what memlog --project NAME status prints, whatever store is named elsewhere.
    """
    known = Projects(projects_folder())
    found = known.get(name)
    if found is None:
        raise unknown_project(name)
    ctx.obj = _settings_of(ctx, known.path(name))
    with open_store(ctx) as store:
        status = store.maintenance.status()
    answer = Answer(
        document={"project": found, "status": status},
        table=named_values(dict(_values(found)) | values(status)),
        notes=silence(status.silent),
    )
    print_answer(ctx, answer)


@projects.command()
@_name
@click.option("--yes", is_flag=True, help="Do not ask.")
@format_options
@click.pass_context
def remove(ctx: click.Context, name: str, yes: bool) -> None:
    """Remove a project and its store for ever.

    With the store goes all that stands in its folder: log, read model, cache, settings. Nothing brings it
    back but a copy made before. Killed at any moment, the store is whole, or it is gone and memlog projects
    list shows what is left to remove; the same command finishes it. What stands there and is a link, or no
    store, is left as it is.
    """
    check_can_ask(ctx, is_yes=yes)

    def confirm(found: ProjectRemoval) -> bool:
        if yes:
            return True
        for other in found.others:
            click.echo(one_line(f"{other} is not memlog's, and goes with it"), err=True)
        return agrees(f"Remove the project {printable(name)} for ever: {_told(found)}?")

    known = Projects(projects_folder())
    lock_timeout = _settings_of(ctx, known.path(name)).value("lock_timeout")
    done = known.remove(name, lock_timeout=lock_timeout, confirm=confirm)
    table = {
        "project": done.name,
        "folder": done.folder,
        "files": done.files,
        "bytes": done.bytes,
        "last append": minute(done.last_append or "") or "never",
        "result": "removed" if done.done else "nothing was removed",
    }
    print_answer(ctx, Answer(document=done, table=named_values(table), notes=list(_notes(done))))


def _settings_of(ctx: click.Context, store: Path) -> Settings:
    return ctx.ensure_object(Settings).at(store)


def _row(project: Project) -> tuple[object, ...]:
    return tuple(value for _, value in _values(project))


def _values(project: Project) -> Iterator[tuple[str, object]]:
    cells = (
        project.name,
        project.conversations,
        project.log_bytes,
        minute(project.last_append or "") or "never",
        project.folder,
    )
    return zip(_COLUMNS, cells, strict=True)


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

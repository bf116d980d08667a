"""memlog workspace."""

import click
from msgspec.structs import replace

from memlog.cli.answer import format_options, print_answer
from memlog.cli.docs import answer_of_added, answer_of_sources
from memlog.cli.open_store import open_store
from memlog.cli.output import json_on_terminal_option, print_done
from memlog.cli.progress import progress_line
from memlog.cli.request_options import request_command
from memlog.eventlog.errors import NotFound
from memlog.service.requests.documents import AddWorkspace, ListWorkspaces, RemoveWorkspace


@click.group()
def workspace() -> None:
    """Have the notes in an agent's folder found as memories."""


@request_command(AddWorkspace, group=workspace, arguments=["path"])
@format_options
def add(ctx: click.Context, asked: AddWorkspace) -> None:
    with open_store(ctx) as store, progress_line() as progress:
        added = store.workspaces.add(replace(asked, progress=progress))
    print_answer(ctx, answer_of_added([added]))


@request_command(ListWorkspaces, group=workspace)
@format_options
def list_(ctx: click.Context, asked: ListWorkspaces) -> None:
    with open_store(ctx) as store:
        found = store.workspaces.list(asked)
    print_answer(ctx, answer_of_sources(found, "workspaces"))


@request_command(RemoveWorkspace, group=workspace, arguments=["name"])
@json_on_terminal_option
def remove(ctx: click.Context, asked: RemoveWorkspace) -> None:
    with open_store(ctx) as store:
        position = store.workspaces.remove(asked)
    if position is False:
        raise NotFound(f"no workspace {asked.name!r}", hint="memlog workspace list", code="source_not_found")
    print_done(ctx, position, f"Removed {asked.name}.")

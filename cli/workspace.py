"""memlog workspace."""

from pathlib import Path

import click

from memlog.cli.answer import format_options, print_answer
from memlog.cli.docs import answer_of_added, answer_of_sources
from memlog.cli.open_store import open_store
from memlog.cli.output import json_option, print_json
from memlog.cli.param_types import PATH, TEXT
from memlog.cli.progress import progress_line
from memlog.eventlog.errors import NotFound


@click.group()
def workspace() -> None:
    """Have the notes in an agent's folder found as memories."""


@workspace.command()
@click.argument("path", metavar="DIR", type=PATH)
@click.option("--source", type=TEXT, metavar="NAME", help="The workspace's name; else the folder's.")
@format_options
@click.pass_context
def add(ctx: click.Context, path: Path, source: str | None) -> None:
    """Make the folder DIR a workspace, and read what is new or changed in it.

    MEMORY.md and memory/*.md are found as memories. What USER.md says is set in the core memory, where
    nothing is set yet. `memlog docs refresh` reads later changes.
    """
    with open_store(ctx) as store, progress_line() as progress:
        added = store.workspaces.add(path, source=source, progress=progress)
    print_answer(ctx, answer_of_added([added]))


@workspace.command("list")
@format_options
@click.pass_context
def list_(ctx: click.Context) -> None:
    """Print the workspaces."""
    with open_store(ctx) as store:
        found = store.workspaces.list()
    print_answer(ctx, answer_of_sources(found, "workspaces"))


@workspace.command()
@click.argument("name", type=TEXT)
@json_option
@click.pass_context
def remove(ctx: click.Context, name: str, as_json: bool) -> None:  # noqa: ARG001
    """Remove the workspace NAME, with all memories that are its files.

    The files stay, and so does what USER.md has set in the core memory.
    """
    with open_store(ctx) as store:
        position = store.workspaces.remove(name)
    if position is False:
        raise NotFound(f"no workspace {name!r}", hint="memlog workspace list", code="source_not_found")
    print_json(position)

"""Makes what follows the conversations of agents, for `watch --follow` and the setting `serve.follow`."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memlog.cli.options.open_store import make_store_opener
from memlog.cli.options.settings import Settings, projects_folder
from memlog.cli.output.output import print_note
from memlog.eventlog.errors import BadInput
from memlog.eventlog.log.layout import CACHE
from memlog.service.exchange.following import Follower
from memlog.service.exchange.formats import check_format, format_names, load_importer
from memlog.service.projects import Projects

if TYPE_CHECKING:
    from memlog.service.exchange.incoming import ImportedRecords


def make_follower(
    ctx: click.Context, hosts: Sequence[str], on_imported: Callable[[str], object] = lambda _: None
) -> Follower:
    """Return what imports the conversations of `hosts` into the named store, else by project.

    on_imported: called with the project of each import that brought events.

    Raises:
        BadInput: one of `hosts` is not a program whose conversations memlog finds.
    """
    for name in hosts:
        if not load_importer(check_format(name)).homes:
            known = ", ".join(each for each in format_names() if load_importer(each).homes)
            raise BadInput(f"{name} cannot be followed", hint=f"name one or several of: {known}")
    settings = ctx.ensure_object(Settings)
    open_store = make_store_opener(ctx)

    def import_into_store(format: str, files: Sequence[Path], run: str, imported: "ImportedRecords") -> None:
        with open_store(settings.store) as store:
            store.exchange.import_from(format, files, run=run, imported=imported)

    def import_by_project(format: str, files: Sequence[Path], run: str, imported: "ImportedRecords") -> None:
        done = Projects(projects_folder(), open_store).import_sources(
            {format: files}, home=Path.home(), run=run, imported=imported
        )
        for report in done.projects:
            if report.appended:
                on_imported(str(report.project))

    is_named = settings.names_store_or_project
    return Follower(
        hosts,
        Path.home(),
        [*folders_named_by_variables()],
        settings.store / CACHE if is_named else projects_folder(),
        import_into_store if is_named else import_by_project,
        print_note,
    )


def folders_named_by_variables() -> Iterator[Path]:
    """Yield the folders of programs that their own environment variables name."""
    for name in format_names():
        variable, _, rest = (load_importer(name).variable or "").partition("/")
        if os.environ.get(variable):
            yield Path(os.environ[variable], rest)

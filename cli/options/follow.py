"""Creates the follower of agent conversations, for `watch --follow` and the setting `serve.follow`."""

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
from memlog.service.exchange.following import ConversationFollower
from memlog.service.exchange.formats import format_names, load_importer
from memlog.service.projects import Projects

if TYPE_CHECKING:
    from memlog.service.exchange.importing import ImportReport
    from memlog.service.exchange.incoming import ImportedRecords


def make_follower(
    ctx: click.Context, hosts: Sequence[str], on_imported: Callable[["ImportReport"], object]
) -> ConversationFollower:
    """Return a follower that imports the conversations of `hosts` into the named store, else by project.

    on_imported: called with the report of each import that appended or updated events.

    Raises:
        BadInput: one of `hosts` is not an agent whose conversations memlog finds.
    """
    known = [name for name in format_names() if load_importer(name).homes]
    if unknown := [name for name in hosts if name not in known]:
        raise BadInput(
            f"memlog cannot follow {unknown[0]!r}", hint=f"use one or several of: {', '.join(known)}"
        )
    settings = ctx.ensure_object(Settings)
    open_store = make_store_opener(ctx)
    is_named = settings.names_store_or_project

    def import_files(
        format: str, files: Sequence[Path], run: str, imported: "ImportedRecords"
    ) -> "list[ImportReport]":
        if is_named:
            with open_store(settings.store) as store:
                reports = [store.exchange.import_from(format, files, run=run, imported=imported)]
        else:
            reports = (
                Projects(projects_folder(), open_store)
                .import_sources({format: files}, home=Path.home(), run=run, imported=imported)
                .projects
            )
        for report in reports:
            if report.appended or report.updated:
                on_imported(report)
        return reports

    return ConversationFollower(
        hosts,
        Path.home(),
        [*folders_named_by_variables()],
        settings.store / CACHE if is_named else projects_folder(),
        import_files,
        print_note,
    )


def folders_named_by_variables() -> Iterator[Path]:
    """Yield the program folders that are named by the programs' own environment variables."""
    for name in format_names():
        variable, _, rest = (load_importer(name).variable or "").partition("/")
        if os.environ.get(variable):
            yield Path(os.environ[variable], rest)

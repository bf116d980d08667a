"""memlog import, export."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from memlog.cli.answer import Done, TextAnswer
from memlog.cli.output import counted
from memlog.cli.request_options import Store, request_command
from memlog.cli.standard_options import Group
from memlog.service.importers import about, formats
from memlog.service.requests.exchange import ExportDatabase, ImportData

if TYPE_CHECKING:
    from memlog import ImportReport

_UNREADABLE = 65

_FORMATS = "\n\n".join(f"{name}: {about(name)}" for name in formats())


class _Account(TextAnswer, frozen=True):
    """An account of an import. It ends with 65 where something could not be read or stored."""

    def print(self, ctx: click.Context) -> int:
        """Print it, and return the exit code."""
        done: ImportReport = self.document  # type: ignore[assignment]
        return super().print(ctx) or (_UNREADABLE if done.unreadable or done.refused else 0)


@request_command(
    ImportData,
    arguments=["format", "paths"],
    adds=f"\n{_FORMATS}\n\nEnds with 65 where something could not be read or stored; the rest is in.",
)
def import_(store: Store, asked: ImportData) -> _Account:
    done = store.exchange.import_from(asked)

    def told() -> Iterator[str]:
        skipped = "".join(f", {count} {reason}" for reason, count in done.skipped.items())
        yield f"records  {done.found:,} found: {done.used:,} used, {done.unreadable:,} unreadable{skipped}"
        verb = "would be appended" if done.dry_run else "appended"
        changed = f" ({done.changed:,} changed since)" if done.changed else ""
        yield (
            f"events   {done.events:,} made: {done.appended:,} {verb}, {done.known:,} known{changed},"
            f" {done.forgotten:,} forgotten, {done.refused:,} refused"
        )
        for prefix in done.prefixes:
            yield f"source   another one has the same ids: those of this one begin with {prefix}/"
        for name, count in sorted(done.types.items()):
            yield f"         {count:,} {name}"
        for name, count in sorted(done.unknown_columns.items()):
            yield f"left out {name}: {counted(count, 'row')}"
        for problem in done.problems:
            yield f"problem  {problem.where}: {problem.why}"
        more = done.unreadable + done.refused + done.changed - len(done.problems)
        if more > 0:
            yield f"         and {more:,} more"

    return _Account(done, text=[*told()])


@click.group(cls=Group)
def export() -> None:
    """Write what the store holds for other programs."""


@request_command(ExportDatabase, group=export, name="sqlite", arguments=["path"])
def export_sqlite(store: Store, asked: ExportDatabase) -> Done:
    done = store.exchange.export_sqlite(asked)
    rows = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in done.tables.items())
    return Done(done, f"Wrote {rows} to {done.path}.")

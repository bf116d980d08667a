"""Asks for confirmation of irreversible operations, and offers to import notes into an empty store."""

import shlex
import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

import click
from msgspec.structs import replace

from memlog.cli.options.open_store import open_store
from memlog.cli.options.request_options import Given
from memlog.cli.options.settings import Settings
from memlog.cli.output.output import count_noun, print_note, put_on_one_line
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.service.engine.create import find_notes_beside

T = TypeVar("T")


def run_if_confirmed(
    operation: Callable[[Given], T], request: Given, agreed: Callable[[T], bool], *, is_yes: bool
) -> T:
    """Run an operation if the user agrees to the result of a dry run; return the last run's result.

    Raises:
        UsageError: stdin is not a terminal, so nobody can answer.
    """
    if request.dry_run or is_yes:
        return operation(request)
    if sys.stdin is None or not sys.stdin.isatty():
        command = click.get_current_context().info_name
        raise click.UsageError(
            f"{command} needs confirmation, but stdin is not a terminal: use --yes to skip it"
        )
    found = operation(replace(request, dry_run=True))
    return operation(request) if agreed(found) else found


def ask_yes_or_no(question: str, about: Iterable[str] = ()) -> bool:
    """Print lines and ask a yes-or-no question on stderr; return whether the answer is yes."""
    for line in about:
        click.echo(put_on_one_line(line), err=True)
    return click.confirm(question, err=True)


_FORMAT = "memory-folder"


def migrate_notes_or_name_command(ctx: click.Context, *, may_ask: bool = False) -> None:
    """Import the notes beside an empty store if `migrate.auto` is set; otherwise name the command.

    may_ask: whether to ask the user instead, on a terminal.
    """
    settings = ctx.ensure_object(Settings)
    notes = find_notes_beside(settings.store)
    if notes is None:
        return
    folder = shlex.quote(escape_invalid_utf8(notes))
    command = shlex.join(["memlog", *settings.store_options, "import", _FORMAT, str(notes)])
    can_ask = may_ask and sys.stdin is not None and sys.stdin.isatty()
    question = f"{folder} has notes, and the store is empty. Import them?"
    if not (settings.value("migrate.auto") or (can_ask and ask_yes_or_no(question))):
        print_note(f"{folder} has notes; to import them: {escape_invalid_utf8(command)}")
        return
    with open_store(ctx) as store:
        done = store.exchange.import_from(_FORMAT, [notes])
    unread = f", {count_noun(done.unreadable, 'record')} unreadable" if done.unreadable else ""
    print_note(f"{folder}: imported {count_noun(done.appended, 'event')}{unread}")

"""Offers to import the notes that lie beside an empty store."""

import shlex
import sys

import click

from memlog.cli.options.open_store import open_store
from memlog.cli.options.settings import Settings
from memlog.cli.output.output import count_noun, note
from memlog.cli.process.confirmation import ask_yes_or_no
from memlog.eventlog.log.streams import shown
from memlog.service.engine.create import find_notes_beside

_FORMAT = "memory-folder"


def migrate_notes(ctx: click.Context, *, may_ask: bool = False) -> None:
    """Import the notes beside an empty store if `migrate.auto` is set; otherwise name the command.

    may_ask: on a terminal, ask instead.
    """
    settings = ctx.ensure_object(Settings)
    notes = find_notes_beside(settings.store)
    if notes is None:
        return
    folder = shlex.quote(shown(notes))
    command = shlex.join(["memlog", *settings.store_options, "import", _FORMAT, str(notes)])
    is_asked = may_ask and sys.stdin is not None and sys.stdin.isatty()
    question = f"{folder} has notes, and the store is empty. Import them?"
    if not (settings.value("migrate.auto") or (is_asked and ask_yes_or_no(question))):
        note(f"{folder} has notes; to import them: {shown(command)}")
        return
    with open_store(ctx) as store:
        done = store.exchange.import_from(_FORMAT, [notes])
    unread = f", {count_noun(done.unreadable, 'record')} unreadable" if done.unreadable else ""
    note(f"{folder}: imported {count_noun(done.appended, 'event')}{unread}")

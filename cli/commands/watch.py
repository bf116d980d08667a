"""memlog watch."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from memlog.cli.options.open_store import open_store
from memlog.cli.options.request_options import Given, request_command
from memlog.cli.output.answer import JSON_OPTION
from memlog.cli.output.output import (
    STORED,
    ProgressLine,
    add_options_to_command,
    asks_for_json,
    count_noun,
    print_json,
    print_note,
    progress_line,
)
from memlog.cli.process.confirmation import migrate_notes_or_name_command
from memlog.service.engine.operation import bind_operation
from memlog.service.upkeep.worker import WatchStep

if TYPE_CHECKING:
    from memlog.service.exchange.following import ConversationFollower
    from memlog.service.exchange.importing import ImportReport


@request_command(
    "maintenance.watch",
    adds="Exit 0 on SIGTERM, 130 on Ctrl-C; the next watch continues from there. With --json, each"
    ' step is a line: {"projected","embedded","indexed","removed","pending","ms"}.',
    gets="context",
)
@click.option(
    "--follow",
    metavar="AGENTS",
    help="Also import the conversations of these agents as they are written, such as claude-code,codex.",
)
@add_options_to_command(JSON_OPTION)
def watch(ctx: click.Context, given: Given, *, follow: str | None) -> None:
    migrate_notes_or_name_command(ctx)
    follower = None if follow is None else _make_follower(ctx, follow)
    with progress_line() as line:
        output = _WatchOutput(line, as_json=asks_for_json(ctx), once=given.once)
        with (
            open_store(ctx, notify=output.print_note) as store,
            _event_set_by_sigterm(once=given.once) as stop,
        ):
            if follower is not None:
                _follow_beside(follower, stop, once=given.once)
            progress = line.show_progress if line else None
            bind_operation(store, "maintenance.watch")(
                replace(given, stop=stop, tell=output.print_step, progress=progress)
            )


def _make_follower(ctx: click.Context, follow: str) -> "ConversationFollower":
    # Imported here: most watches follow nothing.
    from memlog.cli.options.follow import make_follower

    def tell(report: "ImportReport") -> None:
        into = "" if report.project is None else f" into {report.project}"
        print_note(f"{report.format}: imported {count_noun(report.appended + report.updated, 'event')}{into}")

    return make_follower(ctx, [name.strip() for name in follow.split(",")], tell)


def _follow_beside(follower: "ConversationFollower", stop: threading.Event, *, once: bool) -> None:
    """Make a first pass, then follow in a thread. once: make only the first pass."""
    follower.run_once()
    if not once:
        threading.Thread(target=follower.run_until, args=(stop,), daemon=True).start()


class _WatchOutput:
    """Shows a watch's steps: as JSON, in a status line on a terminal, or as notes."""

    def __init__(self, line: ProgressLine | None, *, as_json: bool, once: bool) -> None:
        self._line = line
        self._as_json, self._once = as_json, once
        self._is_a_log = line is None and not (as_json or once)
        self._sum = WatchStep()
        self._text = ""

    def print_step(self, done: WatchStep) -> None:
        if self._as_json:
            print_json(done)
        elif self._once:
            click.echo(_describe_step(done))
        elif self._is_a_log:
            if not self._text:
                print_note("watching until SIGTERM or Ctrl-C")
            print_note(_describe_step(done))
        STORED.reset_after_acknowledgement()
        self._sum = WatchStep(
            projected=self._sum.projected + done.projected,
            embedded=self._sum.embedded + done.embedded,
            indexed=self._sum.indexed + done.indexed,
            removed=self._sum.removed + done.removed,
            pending=done.pending,
        )
        self._text = f"watching: {_describe_step(self._sum)}, last at {time.strftime('%H:%M:%S')}"
        if self._line is not None:
            self._line.show_text(self._text)

    def print_note(self, text: str) -> None:
        """Print a note above the status line."""
        if self._line is not None:
            self._line.clear_line()
        print_note(text)
        if self._line is not None and self._text:
            self._line.show_text(self._text)


def _describe_step(done: WatchStep) -> str:
    """Describe what a step did: `1,204 events projected, 38 passages embedded, 2 to do`."""
    counts = [f"{done.projected:,} events projected", f"{done.embedded:,} passages embedded"]
    if done.pending:
        counts.append(f"{done.pending:,} to do")
    if done.indexed or done.removed:
        counts.append(f"{done.indexed:,} documents read, {done.removed:,} removed")
    return ", ".join(counts)


@contextmanager
def _event_set_by_sigterm(*, once: bool) -> Iterator[threading.Event]:
    """Yield an event that SIGTERM sets.

    With `once`, SIGTERM kills the process as usual, since the work is incomplete.
    """
    stop = threading.Event()
    before = signal.getsignal(signal.SIGTERM)
    if not once:
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)

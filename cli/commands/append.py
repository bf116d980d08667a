"""memlog append: one event from options, or JSON Lines from stdin."""

import inspect
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import click

from memlog import Position
from memlog.cli.options.open_store import open_log
from memlog.cli.options.settings import Command, SettingOption
from memlog.cli.output.output import (
    JSON_ON_TERMINAL_OPTION,
    STORED,
    count_noun,
    print_done,
    print_json,
    print_note,
    prints_sentences,
    put_on_one_line,
)
from memlog.cli.process.error_handler import error_to_failure, exit_code_of
from memlog.cli.process.main import LazyCommands
from memlog.cli.process.stdin import read_stdin_text, stdin_bytes
from memlog.eventlog.events import TYPES, Event
from memlog.eventlog.log.quarantine import MAX_LINE
from memlog.eventlog.log.writer import Log, NumberedLine, RefusedLine, append_lines

_READ = 1024 * 1024
_COMMIT_LINES = 256
_NAMED = 2
"""The maximum number of streams named in a sentence."""

_OPTIONS = (
    SettingOption("durability", "--durability"),
    SettingOption("redact", "--redact/--no-redact"),
    JSON_ON_TERMINAL_OPTION,
)


class _Types(LazyCommands):
    """A command per event type, created on demand: most calls need one or none."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(TYPES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        kind = TYPES.get(cmd_name)
        return None if kind is None else _make_command(cmd_name, kind)


@click.group(
    cls=_Types,
    params=[*_OPTIONS],
    invoke_without_command=True,
    subcommand_metavar="[TYPE [OPTIONS]]",
)
@click.pass_context
def append(ctx: click.Context) -> int:
    """Append events to the log.

    Without a TYPE, events are read from stdin, one JSON object per line. Each line is answered in order:
    {"id","stream","segment","offset","durability"} once it is durable, or
    {"line","id","error":{"code","message","hint","retryable"}} if it is refused. The other lines are still
    appended, and the exit code is 65. "conflict" names the event that already has the id, if known.

    With a TYPE, one event is built from the options.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    log, fd = open_log(ctx), stdin_bytes().fileno()
    report = _Sentences(is_typed=os.isatty(fd)) if prints_sentences(ctx) else None
    worst = refused = 0
    try:
        with _progress_callback(fd) as show:
            for batch in _read_batches(fd):
                answers, code = _append_batch(log, batch)
                worst = max(worst, code)
                report.print_refusals_and_count(answers) if report else print_json(*answers)
                refused += sum(not isinstance(answer, Position) for answer in answers)
                STORED.reset_after_acknowledgement()
                show()
    finally:
        log.record_sizes()
        if report:
            report.print_untold_count()
    if refused and not report:
        lines = "1 line was" if refused == 1 else f"{refused:,} lines were"
        print_note(f'{lines} not stored: see the answers with an "error"')
    return worst


class _Sentences:
    """Reports what was stored: every line typed at a terminal, but only a count for a file or pipe.

    Refused lines are always printed.
    """

    def __init__(self, *, is_typed: bool) -> None:
        self._is_typed = is_typed
        self._count = 0
        self._streams: set[str] = set()

    def print_refusals_and_count(self, answers: list[Position | dict[str, Any]]) -> None:
        """Print a batch's refusals and, if lines are typed, stored events; count other stored events."""
        for answer in answers:
            if self._is_typed or not isinstance(answer, Position):
                click.echo(put_on_one_line(_answer_sentence(answer)))
            else:
                self._count += 1
                self._streams.add(answer.stream)

    def print_untold_count(self) -> None:
        """Print the number of stored events that were counted instead of printed, if any."""
        if self._count:
            streams = sorted(self._streams)
            where = " and ".join(streams) if len(streams) <= _NAMED else f"{len(streams):,} streams"
            click.echo(put_on_one_line(f"Stored {count_noun(self._count, 'event')} in {where}."))


@cache
def _make_command(name: str, kind: type[Event]) -> click.Command:
    from memlog.cli.options.event_options import members_of_options, options_for_event_type

    @click.pass_context
    def append_one(ctx: click.Context, /, **given: Any) -> None:  # noqa: ANN401
        event = members_of_options(kind, given)
        if event.get("content") == "-":
            event["content"] = read_stdin_text()
        (position,) = open_log(ctx).append([event])
        print_done(ctx, position, _answer_sentence(position))

    params = [*options_for_event_type(kind), *_OPTIONS]
    return Command(name, callback=append_one, params=params, help=_help_of_event_type(kind))


def _answer_sentence(answer: Position | dict[str, Any]) -> str:
    if not isinstance(answer, Position):
        return f"Line {answer['line']} was not stored: {answer['error'].message}."
    repeated = " It was stored before, and counts once." if answer.duplicate else ""
    return f"Stored {answer.id} in {answer.stream}/{answer.segment}.{repeated}"


def _help_of_event_type(kind: type[Event]) -> str:
    """Return an event type's docstring without its list of members."""
    paragraphs = inspect.cleandoc(kind.__doc__ or "").split("\n\n")
    return "\n\n".join(text for text in paragraphs if not _describes_members(text))


def _describes_members(paragraph: str) -> bool:
    names, colon, _ = paragraph.partition(": ")
    return colon != "" and all(name.isidentifier() for name in names.split(", "))


def _append_batch(log: Log, batch: list[NumberedLine]) -> tuple[list[Any], int]:
    """Append a batch and return the answer to each line, once durable, and the exit code."""
    answers: list[Any] = []
    code = 0
    for number, outcome in append_lines(log, batch):
        if isinstance(outcome, RefusedLine):
            named = {"line": number} | ({} if outcome.id is None else {"id": outcome.id})
            answers.append(named | {"error": error_to_failure(outcome.error)})
            code = max(code, exit_code_of(outcome.error))
        else:
            answers.append(outcome)
    return answers, code


@contextmanager
def _progress_callback(fd: int) -> Iterator[Callable[[], None]]:
    """Yield a callback that shows progress through a file; it does nothing for other input."""
    # Imported here: a single event has no progress.
    from memlog.cli.output.output import progress_line

    status = os.fstat(fd)
    with progress_line() as line:
        if line is None or not stat.S_ISREG(status.st_mode):
            yield lambda: None
        else:
            yield lambda: line.show_progress("bytes appended", os.lseek(fd, 0, os.SEEK_CUR), status.st_size)


def _read_batches(fd: int) -> Iterator[list[NumberedLine]]:
    """Yield the lines that have arrived, in batches of at most 256.

    Lines that arrive during an fsync go into the next batch: a single line is acknowledged at once, and many
    share an fsync.
    """
    number, rest, too_long = 0, bytearray(), False
    while data := os.read(fd, _READ):
        first, *others = data.split(b"\n")
        rest += first
        batch: list[NumberedLine] = []
        for other in others:
            number += 1
            batch.append((number, None if too_long else bytes(rest)))
            rest, too_long = bytearray(other), False
        if len(rest) > MAX_LINE:
            rest, too_long = bytearray(), True
        for start in range(0, len(batch), _COMMIT_LINES):
            yield batch[start : start + _COMMIT_LINES]
    if rest or too_long:
        yield [(number + 1, None if too_long else bytes(rest))]

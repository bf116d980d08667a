"""memlog log: the log itself, without a read model."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import click
import msgspec

from memlog.cli.options.param_types import CHAT, END, TEXT, TIME
from memlog.cli.options.settings import Group, Settings
from memlog.cli.output.answer import JSON_OPTION
from memlog.cli.output.output import escape_controls, print_lines, print_note
from memlog.eventlog.settings import MOST
from memlog.service.engine.log_reader import LogEntry, LogReader, describe_fault, make_event_members


@click.group(cls=Group)
def log() -> None:
    """Read the log itself. Needs no read model, and works while others write."""


_OPTIONS = (
    click.Option(["--stream"], type=TEXT, help="Only this stream, such as conversations/telegram_123456."),
    click.Option(
        ["--chat"], type=CHAT, metavar="CHANNEL:CHAT_ID", help="Only the streams of this conversation."
    ),
    click.Option(["--raw"], is_flag=True, help="Print lines unchanged, byte for byte."),
    click.Option(["--positions"], is_flag=True, help="Add the position of each event."),
    JSON_OPTION,
)


@log.command(params=[*_OPTIONS])
@click.option(
    "--since",
    type=TIME,
    help="Only events from this time on: 2026-02-24, RFC 3339, or words such as last week.",
)
@click.option(
    "--until",
    type=END,
    help="Only events before this time, or up to the end of a day or period, such as last week.",
)
def cat(*, since: str | None, until: str | None, raw: bool, positions: bool, **streams: Any) -> None:  # noqa: ANN401
    """Print events as JSON, one per line, in chronological order.

    Each event is printed once, in the current schema, unless it was redacted. With --raw, the lines of each
    stream are printed unchanged, including duplicates. Lines without an event are reported on stderr.
    """
    reader = _open_reader(raw=raw, positions=positions, **streams)
    left_out: Counter[str] = Counter()

    def count_and_report_left_out_line(entry: LogEntry, why: str) -> None:
        left_out[why] += 1
        if why != "duplicate":
            print_note(f"{entry.position}: {why}")

    entries = reader.read_lines() if raw else reader.read_events(count_and_report_left_out_line)
    print_lines(
        _format_entry(entry, raw=raw, positions=positions)
        for entry in _report_and_skip_bad_entries(entries)
        if (since or "") <= entry.event_time and (until is None or entry.event_time < until)
    )
    if left_out["duplicate"]:
        print_note(f"{left_out['duplicate']} lines repeat an event, which is printed once")


@log.command(params=[*_OPTIONS])
@click.option(
    "-n",
    "lines",
    type=click.IntRange(0, MOST),
    default=10,
    show_default=True,
    help="The number of lines.",
)
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines, until Ctrl-C.")
def tail(*, lines: int, follow: bool, raw: bool, positions: bool, **streams: Any) -> None:  # noqa: ANN401
    """Print the last lines of the log; with -f, keep printing lines as they are appended.

    Redacted events are left out; --raw prints every line.
    """
    reader = _open_reader(raw=raw, positions=positions, **streams)
    for entries in (
        reader.follow_new_lines(lines, print_note, all=raw)
        if follow
        else [reader.read_last_lines(lines, all=raw)]
    ):
        print_lines(
            _format_entry(entry, raw=raw, positions=positions)
            for entry in _report_and_skip_bad_entries(entries)
        )


def _open_reader(
    *, stream: str | None, chat: tuple[str, str] | None, raw: bool, positions: bool
) -> LogReader:
    if raw and positions:
        raise click.UsageError("--raw cannot be combined with --positions")
    if stream is not None and chat is not None:
        raise click.UsageError("--stream cannot be combined with --chat")
    return LogReader(click.get_current_context().ensure_object(Settings).store, stream=stream, chat=chat)


def _report_and_skip_bad_entries(entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """Yield the good entries, and report the bad ones on stderr."""
    for entry in entries:
        fault = describe_fault(entry)
        if fault is not None:
            print_note(f"{entry.position}: {fault}")
        else:
            yield entry


def _format_entry(entry: LogEntry, *, raw: bool, positions: bool) -> bytes:
    if raw:
        line = entry.line.data or b""
        return escape_controls(line.decode(errors="replace")).encode() if sys.stdout.isatty() else line
    return msgspec.json.encode(make_event_members(entry, position=positions))

"""memlog log: the log itself, without a read model."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from memlog.cli.output import json_option, note, print_lines, printable
from memlog.cli.param_types import CHAT, TEXT, TIME, count
from memlog.cli.settings import Settings
from memlog.eventlog.errors import NotFound
from memlog.eventlog.layout import LOG
from memlog.eventlog.quarantine import BadLine
from memlog.eventlog.reader import (
    Entry,
    accepted,
    in_log_order,
    last_entries,
    segments_about,
    todays_members,
    why_bad,
)
from memlog.eventlog.store_folder import check_store
from memlog.eventlog.streams import Segment, segments_of
from memlog.eventlog.tail import Follower, looks


@click.group()
def log() -> None:
    """Read the log itself: works without a read model, and beside whoever writes."""


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        json_option,
        click.option("--positions", is_flag=True, help="Add the position of each event."),
        click.option("--raw", is_flag=True, help="Print lines as they stand, byte for byte."),
        click.option(
            "--chat", type=CHAT, metavar="CHANNEL:CHAT_ID", help="Only the streams of this conversation."
        ),
        click.option("--stream", type=TEXT, help="Only this stream, such as conversations/telegram_123456."),
    ):
        command = option(command)
    return command


@log.command()
@_options
@click.option("--since", type=TIME, help="Only what happened from this time on (2026-02-24, or RFC 3339).")
@click.option("--until", type=TIME, help="Only what happened before this time.")
@click.pass_context
def cat(
    ctx: click.Context,
    stream: str | None,
    chat: tuple[str, str] | None,
    since: str | None,
    until: str | None,
    raw: bool,
    positions: bool,
    as_json: bool,  # noqa: ARG001 - events are JSON whether asked for or not
) -> None:
    """Print events as JSON, one a line, in the order in which they happened.

    Each event is printed once, in today's shape, and none that was redacted. With --raw, lines are printed
    as they stand in the files, repeated ones too, stream by stream. Lines that hold no event are named on
    stderr.
    """
    _check(raw, positions, stream, chat)
    segments = _segments(ctx, stream, chat)
    left_out: Counter[str] = Counter()

    def leave_out(entry: Entry, why: str) -> None:
        left_out[why] += 1
        if why != "duplicate":
            note(f"{entry.position}: {why}")

    entries = in_log_order(segments) if raw else accepted(segments, leave_out)
    print_lines(
        _printed(entry, raw=raw, positions=positions)
        for entry in _readable(entries)
        if (since or "") <= entry.ts and (until is None or entry.ts < until)
    )
    if left_out["duplicate"]:
        note(f"{left_out['duplicate']} lines repeat an event, which is printed once")


@log.command()
@_options
@click.option("-n", "lines", type=count(0), default=10, show_default=True, help="So many lines at most.")
@click.option("-f", "--follow", is_flag=True, help="Then print what is appended, as it comes, until Ctrl-C.")
@click.pass_context
def tail(
    ctx: click.Context,
    stream: str | None,
    chat: tuple[str, str] | None,
    lines: int,
    follow: bool,
    raw: bool,
    positions: bool,
    as_json: bool,  # noqa: ARG001
) -> None:
    """Print the lines that were appended last, one a line; with -f go on with what any process appends."""
    _check(raw, positions, stream, chat)
    folder = _log_folder(ctx)

    def show(entries: Iterable[Entry]) -> None:
        print_lines(_printed(entry, raw=raw, positions=positions) for entry in _readable(entries))

    if not follow:
        show(last_entries(_segments(ctx, stream, chat), lines))
        return
    follower = Follower(lambda: segments_about(folder, stream=stream, chat=chat), note)
    last = last_entries(segments_about(folder, stream=stream, chat=chat), lines)
    show(entry for entry in last if not follower.is_new(entry))
    for _ in looks(folder):
        show(follower.new())


def _check(raw: bool, positions: bool, stream: str | None, chat: tuple[str, str] | None) -> None:
    if raw and positions:
        raise click.UsageError("--raw prints lines as they stand, without --positions")
    if stream is not None and chat is not None:
        raise click.UsageError("--stream and --chat exclude each other")


def _log_folder(ctx: click.Context) -> Path:
    store: Path = ctx.ensure_object(Settings).store
    check_store(store)
    return store / LOG


def _segments(ctx: click.Context, stream: str | None, chat: tuple[str, str] | None) -> list[Segment]:
    """The segments that are asked for. An empty store has every stream, with nothing in it.

    Raises:
        NotFound: the log has segments, and none of this stream or chat.
    """
    folder = _log_folder(ctx)
    found = segments_about(folder, stream=stream, chat=chat)
    if not found and segments_of(folder)[0]:
        if chat is not None:
            named = ":".join(chat)
            raise NotFound(
                f"no chat {named}", hint="memlog sessions lists the chats", code="session_not_found"
            )
        raise NotFound(f"no stream {stream!r}", hint="a stream is a folder of log/", code="stream_not_found")
    return found


def _readable(entries: Iterable[Entry]) -> Iterator[Entry]:
    """`entries` without the bad ones, which are named on stderr."""
    for entry in entries:
        if isinstance(entry.event, BadLine):
            note(f"{entry.position}: {why_bad(entry.event)}")
        else:
            yield entry


def _printed(entry: Entry, *, raw: bool, positions: bool) -> bytes:
    if raw:
        line = entry.line.data or b""
        return printable(line.decode(errors="replace")).encode() if sys.stdout.isatty() else line
    members = todays_members(entry)
    if positions:
        segment, line_of = entry.segment, entry.line
        members["position"] = {
            "stream": segment.stream,
            "segment": segment.name.filename,
            "offset": line_of.offset,
            "line": line_of.number,
        }
    return msgspec.json.encode(members)

"""memlog append: one event from options, or JSON Lines from stdin."""

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import click

from memlog.cli.failures import exit_code_of, failure_of
from memlog.cli.main import Place
from memlog.cli.output import json_option, print_json
from memlog.cli.types import CHAT, JSON_OBJECT, TEXT
from memlog.eventlog.damage import HINTS, MAX_LINE
from memlog.eventlog.draft import Draft, draft
from memlog.eventlog.errors import BadInput, MemlogError
from memlog.eventlog.events import Event, Message, SessionBreak
from memlog.eventlog.line import BOM
from memlog.eventlog.log import Log, Position

_TOO_LONG = BadInput("too long", hint=HINTS["too_long"], code="too_long")
_READ = 1024 * 1024
_COMMIT_LINES = 256

_DURABILITY = "memlog.durability"

_durability = click.option(
    "--durability",
    type=click.Choice(["fsync", "os"]),
    help="fsync (the default): an acknowledged event survives a power cut; os: it survives the process only.",
)


@click.group(invoke_without_command=True, subcommand_metavar="[TYPE [OPTIONS]]")
@_durability
@json_option
@click.pass_context
def append(ctx: click.Context, durability: Any, as_json: bool) -> int:  # noqa: ANN401, ARG001
    """Append events to the log.

    Without a TYPE, events are read from stdin, one JSON object a line, until its end. Each line is answered
    in order: {"id","stream","segment","offset","durability"} once it is durable, or
    {"line","error":{"code","message","hint","retryable"}}; then the rest goes on and the exit code is 65.

    With a TYPE, one event is made of options.
    """
    if ctx.invoked_subcommand is not None:
        ctx.meta[_DURABILITY] = durability
        return 0
    log = Log(_place(ctx).store, durability=durability or "fsync")
    worst = 0
    for batch in _batches(_stdin().fileno()):
        answers: list[Any] = []
        for number, outcome in _appended(log, batch):
            if isinstance(outcome, MemlogError):
                answers.append({"line": number, "error": failure_of(outcome)})
                worst = max(worst, exit_code_of(outcome))
            else:
                answers.append(outcome)
        print_json(*answers)
    return worst


def _event_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        json_option,
        _durability,
        click.option("--ts", type=TEXT, help="When it happened (RFC 3339); now where not given."),
        click.option(
            "--id", "event_id", type=TEXT, help="The event's id; a retry with the same id is harmless."
        ),
        click.option(
            "--chat",
            type=CHAT,
            required=True,
            metavar="CHANNEL:CHAT_ID",
            help="The conversation, split at the first colon.",
        ),
    ):
        command = option(command)
    return command


@append.command("message")
@_event_options
@click.option(
    "--role",
    type=click.Choice(["user", "assistant", "system", "tool"]),
    required=True,
    help="Whose turn it is.",
)
@click.option("--content", type=TEXT, required=True, help="The text; - reads it from stdin.")
@click.option("--name", type=TEXT, help="Of the speaker; it is searched, too.")
@click.option("--kind", type=click.Choice(["subagent_result"]), help="What else than a turn it is.")
@click.option("--meta", type=JSON_OBJECT, help="A JSON object to keep with it, such as the model's name.")
@click.pass_context
def message(
    ctx: click.Context,
    chat: tuple[str, str],
    role: Any,  # noqa: ANN401 - click has checked it
    content: str,
    name: str | None,
    kind: Any,  # noqa: ANN401
    meta: dict[str, Any] | None,
    event_id: str | None,
    ts: str | None,
    durability: Any,  # noqa: ANN401
    as_json: bool,  # noqa: ARG001
) -> None:
    """Append one turn of a conversation."""
    event = Message(
        id=event_id,
        ts=ts,
        channel=chat[0],
        chat_id=chat[1],
        role=role,
        content=_stdin_text() if content == "-" else content,
        name=name,
        kind=kind,
        meta=meta,
    )
    _append_one(ctx, event, durability)


@append.command("session_break")
@_event_options
@click.option("--model", type=TEXT, help="The model that the new session talks to.")
@click.pass_context
def session_break(
    ctx: click.Context,
    chat: tuple[str, str],
    model: str | None,
    event_id: str | None,
    ts: str | None,
    durability: Any,  # noqa: ANN401
    as_json: bool,  # noqa: ARG001
) -> None:
    """End a session: what follows in the chat is a new one."""
    event = SessionBreak(id=event_id, ts=ts, channel=chat[0], chat_id=chat[1], model=model)
    _append_one(ctx, event, durability)


def _append_one(ctx: click.Context, event: Event, durability: Any) -> None:  # noqa: ANN401
    durability = durability or ctx.meta.get(_DURABILITY) or "fsync"
    (position,) = Log(_place(ctx).store, durability=durability).append([event])
    print_json(position)


def _place(ctx: click.Context) -> Place:
    return ctx.ensure_object(Place)


def _stdin() -> BinaryIO:
    # Python has none where it was started with it closed.
    if sys.stdin is None:
        raise BadInput("stdin is closed", hint="give events on stdin, or an event by options")
    return sys.stdin.buffer


def _stdin_text() -> str:
    """What stdin holds, without the newline that `echo` adds."""
    data = _stdin().read(MAX_LINE + 1)
    if len(data) > MAX_LINE:
        raise _TOO_LONG
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise BadInput(f"the content is not UTF-8: byte {error.start}: {error.reason}") from error


_NumberedLine = tuple[int, bytes | None]
"""A line's number, from 1, and its bytes; None where it was too long to be kept."""


def _appended(log: Log, batch: list[_NumberedLine]) -> Iterator[tuple[int, Position | MemlogError]]:
    """What became of each line, in order, once all that can be stored are durable."""
    checked: list[tuple[int, Draft | MemlogError]] = [
        (number, _checked(line)) for number, line in _without_blank(batch)
    ]
    stored = iter(log.append_each([item for _, item in checked if isinstance(item, Draft)]))
    for number, item in checked:
        yield number, next(stored) if isinstance(item, Draft) else item


def _without_blank(batch: list[_NumberedLine]) -> Iterator[_NumberedLine]:
    for number, line in batch:
        whole = line.removeprefix(BOM) if line is not None and number == 1 else line
        if whole is None or whole.strip():
            yield number, whole


def _checked(line: bytes | None) -> Draft | MemlogError:
    if line is None:
        return _TOO_LONG
    try:
        return draft(line)
    except BadInput as error:
        return error


def _batches(fd: int) -> Iterator[list[_NumberedLine]]:
    """The lines that have come, as they come, at most 256 at a time.

    What arrives while one batch is synced is the next: a lone line is acknowledged at once, and a flood
    shares its syncs.
    """
    number, rest, too_long = 0, bytearray(), False
    while data := os.read(fd, _READ):
        first, *others = data.split(b"\n")
        rest += first
        batch: list[_NumberedLine] = []
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

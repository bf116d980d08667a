"""memlog forget."""

from collections.abc import Iterator

import click
import msgspec

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.confirm import agrees, check_can_ask, counted
from memlog.cli.open_store import open_store
from memlog.cli.output import one_line
from memlog.cli.param_types import CHAT, TEXT
from memlog.service.erasure.forget import DoomedLine, Forgotten

_COLUMNS = ("position", "id", "type", "words")


@click.command()
@click.argument("event_id", metavar="[ID]", type=TEXT, required=False)
@click.option("--stream", type=TEXT, help="Where the ID stands, if in several streams.")
@click.option(
    "--chat",
    type=CHAT,
    metavar="CHANNEL:CHAT_ID",
    help="All of this conversation: its streams, its facts, the memories that were ever its own.",
)
@click.option("--memory", type=TEXT, metavar="ID", help="Every event that touched this memory.")
@click.option(
    "--match",
    type=TEXT,
    metavar="REGEX",
    help="Every event that says this (Python's re; at most 5 s an event).",
)
@click.option("--reason", type=TEXT, help="Why, for those who read the log. It stays there for ever.")
@click.option("--dry-run", is_flag=True, help="Only list what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@format_options
@click.pass_context
def forget(
    ctx: click.Context,
    event_id: str | None,
    stream: str | None,
    chat: tuple[str, str] | None,
    memory: str | None,
    match: str | None,
    reason: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Take events away: one of an ID, or all of a chat, of a memory, or that say something.

    What was forgotten is gone from the read model at once, and no line with its id counts again, wherever
    it stands and whenever it comes. Its bytes stay in the log: memlog scrub overwrites them. A line that
    holds no event is known by its position, as memlog quarantine shows it: 2026-02-24.jsonl:1042.
    """
    _check(ctx, event_id, stream, chat, memory, match)
    if not dry_run:
        check_can_ask(ctx, is_yes=yes)

    def confirm(found: Forgotten) -> bool:
        if dry_run or yes or not found.lines:
            return not dry_run
        for line in found.lines:
            click.echo(one_line(f"{_position(line)}  {line.id}  {line.words}"), err=True)
        return agrees(f"Forget {counted(len(found.lines), 'line')}?")

    with open_store(ctx) as store:
        done = store.forget(
            event_id,
            stream=stream,
            chat=chat,
            memory=memory,
            match=match,
            reason=reason,
            confirm=confirm,
        )
    print_answer(ctx, _answer(done, dry_run=dry_run))


def _check(
    ctx: click.Context,
    event_id: str | None,
    stream: str | None,
    chat: tuple[str, str] | None,
    memory: str | None,
    match: str | None,
) -> None:
    if sum(each is not None for each in (event_id, chat, memory, match)) != 1:
        raise click.UsageError("name one of ID, --chat, --memory and --match", ctx)
    if stream is not None and event_id is None:
        raise click.UsageError("--stream says where an ID stands", ctx)


def _answer(done: Forgotten, *, dry_run: bool) -> Answer:
    document = msgspec.structs.asdict(done) | {"dry_run": dry_run}
    return Answer(
        document=document,
        table=Table(_COLUMNS, [(_position(each), each.id, each.type, each.words) for each in done.lines]),
        records=done.lines,
        notes=list(_notes(done, dry_run=dry_run)),
    )


def _notes(done: Forgotten, *, dry_run: bool) -> Iterator[str]:
    if not done.lines:
        yield "nothing to forget" + (": it was forgotten before" if done.already else "")
    elif dry_run:
        yield f"{counted(len(done.lines), 'line')} would be forgotten"
    elif done.redacted:
        yield f"{counted(done.redacted, 'event')} forgotten; memlog scrub overwrites their bytes in the log"
    else:
        yield "nothing was forgotten"
    for position in done.unreachable:
        yield f"{position} stands in no stream: remove its file by hand"


def _position(line: DoomedLine) -> str:
    return f"{line.stream}/{line.segment}:{line.line}"

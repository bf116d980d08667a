"""memlog fact."""

from collections.abc import Iterator, Sequence

import click

from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import json_option, minute, one_line, print_json, printable
from memlog.cli.param_types import CHAT, TEXT, count
from memlog.cli.stdin import stdin_text
from memlog.query.facts.answers import FactAnswer, Route
from memlog.query.facts.current import Fact

_topic = click.argument("topic", metavar="KEY", type=TEXT)
_chat = click.option(
    "--chat",
    type=CHAT,
    metavar="CHANNEL:CHAT_ID",
    help="Of this conversation; of the whole store without it.",
)
any_chat_option = click.option(
    "--any-chat", is_flag=True, help="Where there is none, that of the chat that set it last."
)


@click.group()
def fact() -> None:
    """Set, show and remove facts: what is known by a topic's name, such as favorite_colors or city."""


@fact.command("set")
@_topic
@click.argument("values", metavar="VALUE...", type=TEXT, nargs=-1, required=True)
@click.option("--single", is_flag=True, help="The topic has one value, and no list.")
@click.option(
    "--rank",
    "ranks",
    type=count(1),
    multiple=True,
    help="Set this place of the list alone; once for each VALUE.",
)
@_chat
@click.option("--source-message-id", type=TEXT, help="The message that said so.")
@json_option
@click.pass_context
def set_(
    ctx: click.Context,
    topic: str,
    values: tuple[str, ...],
    single: bool,
    ranks: tuple[int, ...],
    chat: tuple[str, str] | None,
    source_message_id: str | None,
    as_json: bool,  # noqa: ARG001
) -> None:
    """Set the ranked list of KEY: all of it, the first VALUE at rank 1.

    KEY may be spelled in any way: favourite_colours and `my favorite color` are favorite_colors.
    """
    if single and ranks:
        raise click.UsageError("--single and --rank: a single value has no rank", ctx)
    with open_store(ctx) as store:
        done = store.facts.set(
            topic,
            *values,
            single=single,
            ranks=ranks or None,
            chat=name_of(chat),
            source_message_id=source_message_id,
        )
    print_json(done)


@fact.command()
@_topic
@click.option("--rank", type=count(1), help="Only this place of the list.")
@_chat
@any_chat_option
@format_options
@click.pass_context
def get(
    ctx: click.Context, topic: str, rank: int | None, chat: tuple[str, str] | None, any_chat: bool
) -> None:
    """Print what stands of KEY, or at one rank of its list."""
    with open_store(ctx) as store:
        found = store.facts.get(topic, rank=rank, chat=name_of(chat), any_chat=any_chat)
    print_answer(ctx, answer_of(found))


@fact.command("list")
@click.option("--chat", type=CHAT, metavar="CHANNEL:CHAT_ID", help="Only of this conversation.")
@format_options
@click.pass_context
def list_(ctx: click.Context, chat: tuple[str, str] | None) -> None:
    """List facts: the topic that was set last comes first."""
    with open_store(ctx) as store:
        found = store.facts.list(chat=name_of(chat))
    answer = Answer(
        document={"facts": found},
        table=_table(found),
        records=found,
        notes=[] if found else ["no facts"],
    )
    print_answer(ctx, answer)


@fact.command()
@click.argument("text", type=TEXT, required=False)
@_chat
@click.option("--source-message-id", type=TEXT, help="The message that says so.")
@click.option("--dry-run", is_flag=True, help="Say what would be stored, and store nothing.")
@format_options
@click.pass_context
def extract(
    ctx: click.Context,
    text: str | None,
    chat: tuple[str, str] | None,
    source_message_id: str | None,
    dry_run: bool,
) -> None:
    """Store the ranked list of favourites that TEXT says of its author; of stdin without one, or with -.

    By fixed rules and no model, in English, Russian or Finnish: `My favourite colours are 1) Blue, 2) Green`.
    Where topic and list are not both certain, nothing is stored, and stderr says why.
    """
    said = stdin_text() if text in (None, "-") else str(text)
    with open_store(ctx) as store:
        done = store.facts.extract(
            said, chat=name_of(chat), source_message_id=source_message_id, dry_run=dry_run
        )
    rows = [(done.topic_key, rank, value) for rank, value in enumerate(done.values, 1)]
    columns = ("topic", "rank", "value")
    answer = Answer(
        document=done,
        table=Table(columns, rows),
        records=[dict(zip(columns, row, strict=True)) for row in rows],
        notes=[] if done.stored else [f"nothing was stored: {printable(done.why or 'a dry run')}"],
    )
    print_answer(ctx, answer)


@fact.command()
@_topic
@click.option("--rank", type=count(1), help="Only this place of the list; the others keep theirs.")
@_chat
@json_option
@click.pass_context
def remove(
    ctx: click.Context,
    topic: str,
    rank: int | None,
    chat: tuple[str, str] | None,
    as_json: bool,  # noqa: ARG001
) -> None:
    """Remove what stands of KEY, or one rank of its list. The events stay in the log."""
    with open_store(ctx) as store:
        removed = store.facts.remove(topic, rank=rank, chat=name_of(chat))
    print_json({"removed": removed})


def name_of(chat: tuple[str, str] | None) -> str | None:
    """A chat as facts have it."""
    return None if chat is None else ":".join(chat)


def answer_of(found: FactAnswer) -> Answer:
    """What facts answer, ready for every form: for people the answer alone, and the way to it on stderr."""
    return Answer(
        document=found,
        table=_table(found.facts),
        text=[one_line(line) for line in _lines(found)],
        notes=list(_notes(found)),
    )


def _lines(found: FactAnswer) -> list[str]:
    return found.answer.split("\n") if len(found.facts) > 1 else [found.answer]


def _notes(found: FactAnswer) -> Iterator[str]:
    if found.route is None:
        yield printable(found.why or "")
    elif found.route.rule != "key" or found.route.other_chat:
        yield printable(_told(found.route))


def _told(route: Route) -> str:
    ranks = f", rank {', '.join(map(str, route.ranks))}" if route.ranks else ""
    scope = "of the store" if route.chat is None else f"of {route.chat}"
    asides = [
        *(["no topic was named, this one was set last"] if route.most_recent else []),
        *(["another chat"] if route.other_chat else []),
        f"rule: {route.rule}",
        *([f"language: {route.language}"] if route.language else []),
    ]
    return f"{route.topic_key}{ranks} {scope} ({'; '.join(asides)})"


def _table(facts: Sequence[Fact]) -> Table:
    return Table(
        ("topic", "rank", "value", "chat", "updated", "position"),
        [
            (fact.topic_key, fact.rank or None, fact.value, fact.chat, minute(fact.updated_at))
            + (f"{fact.position.stream}/{fact.position.segment}:{fact.position.line} {fact.event_id}",)
            for fact in facts
        ],
    )

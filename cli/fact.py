"""memlog fact."""

from collections.abc import Iterator

import click

from memlog import Fact, FactAnswer, FactUpdate, Route
from memlog.cli.answer import Answer, Table, format_options, print_answer
from memlog.cli.open_store import open_store
from memlog.cli.output import json_on_terminal_option, minute, one_line, print_done, printable
from memlog.cli.records import list_answer, rows_answer
from memlog.cli.request_options import request_command
from memlog.service.requests.facts import ExtractFacts, GetFact, ListFacts, RemoveFact, SetFact

_COLUMNS = ("topic", "rank", "value", "chat", "updated", "position")


@click.group()
def fact() -> None:
    """Set, show and remove facts: what is known by a topic's name, such as favorite_colors or city."""


@request_command(SetFact, group=fact, arguments=["topic", "values"])
@json_on_terminal_option
def set_(ctx: click.Context, asked: SetFact) -> None:
    with open_store(ctx) as store:
        done = store.facts.set(asked)
    print_done(ctx, done, _told_of_set(done))


@request_command(GetFact, group=fact, arguments=["topic"])
@format_options
def get(ctx: click.Context, asked: GetFact) -> None:
    with open_store(ctx) as store:
        found = store.facts.get(asked)
    print_answer(ctx, answer_of(found))


@request_command(ListFacts, group=fact)
@format_options
def list_(ctx: click.Context, asked: ListFacts) -> None:
    with open_store(ctx) as store:
        found = store.facts.list(asked)
    print_answer(ctx, list_answer("facts", found, _COLUMNS, _row))


@request_command(
    ExtractFacts,
    group=fact,
    joined="text",
    or_stdin=True,
    may_be_blank=True,
    adds="\nWithout TEXT, or with -, the text is read from stdin. stderr tells why nothing was stored.",
)
@format_options
def extract(ctx: click.Context, asked: ExtractFacts) -> None:
    with open_store(ctx) as store:
        done = store.facts.extract(asked)
    rows = [(done.topic_key, rank, value) for rank, value in enumerate(done.values, 1)]
    notes = [] if done.stored else [f"nothing was stored: {printable(done.why or 'a dry run')}"]
    print_answer(ctx, rows_answer(done, ("topic", "rank", "value"), rows, notes))


@request_command(RemoveFact, group=fact, arguments=["topic"])
@json_on_terminal_option
def remove(ctx: click.Context, asked: RemoveFact) -> None:
    with open_store(ctx) as store:
        removed = store.facts.remove(asked)
    what = asked.topic if asked.rank is None else f"rank {asked.rank} of {asked.topic}"
    print_done(ctx, {"removed": removed}, f"Removed {what}.")


def _told_of_set(done: FactUpdate) -> str:
    values = (
        f"{rank}. {value}" if rank else value for rank, value in zip(done.ranks, done.values, strict=True)
    )
    return f"Set {done.topic_key}: {', '.join(values)}."


def answer_of(found: FactAnswer) -> Answer:
    """The answer in every form: for people the answer alone, and the rule that found it on stderr."""
    return Answer(
        document=found,
        table=Table(_COLUMNS, [_row(each) for each in found.facts]),
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


def _row(fact: Fact) -> tuple[object, ...]:
    position = f"{fact.position.stream}/{fact.position.segment}:{fact.position.line} {fact.event_id}"
    return fact.topic_key, fact.rank or None, fact.value, fact.chat, minute(fact.updated_at), position

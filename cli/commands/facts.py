"""memlog ask, fact."""

from collections.abc import Iterator

import click
from msgspec.structs import replace

import memlog
from memlog.cli.options.request_options import Given, OperationCommands, request_command
from memlog.cli.options.zone import format_in_local_time
from memlog.cli.output.answer import Answer, Columns, Done, list_answer, rows_answer, table_of_records
from memlog.cli.output.output import asks_for_json, escape_controls, put_on_one_line

_COLUMNS: Columns = {
    "topic": "topic_key",
    "rank": lambda fact: fact.rank or None,
    "value": "value",
    "chat": "chat",
    "updated": lambda fact: format_in_local_time(fact.updated_at),
}


@request_command("facts.ask", joined="question", may_be_blank=True)
def ask(found: "memlog.FactAnswer", _: Given) -> Answer:
    return _printed_answer(found)


@click.group(cls=OperationCommands, operations="facts", without=("ask",))
def fact() -> None:
    """Set, show and remove facts, each stored under a topic such as favorite_colors or city."""


@request_command("facts.set", group=fact)
def set_(done: "memlog.FactUpdate", _: Given) -> Done:
    values = (
        f"{rank}. {value}" if rank else value for rank, value in zip(done.ranks, done.values, strict=True)
    )
    return Done(done, f"Set {done.topic_key}: {', '.join(values)}.")


@request_command("facts.get", group=fact, adds="\nThe exit code is 1 if nothing is stored under KEY.")
def get(found: "memlog.FactAnswer", _: Given) -> Answer:
    if not (found.found or asks_for_json(click.get_current_context())):
        # Imported here: it is only for unknown facts.
        from memlog.service.memory.facts import unknown_fact_error

        raise unknown_fact_error(f"{found.answer}: {found.why}")
    return replace(_printed_answer(found), exit_code=0 if found.found else 1)


@request_command("facts.list", group=fact)
def list_(found: "list[memlog.Fact]", _: Given) -> Answer:
    return list_answer("facts", found, _COLUMNS)


@request_command(
    "facts.extract",
    group=fact,
    joined="text",
    or_stdin=True,
    may_be_blank=True,
    adds="\nWithout TEXT, or with -, the text is read from stdin. stderr says why nothing was stored.",
)
def extract(done: "memlog.FactExtraction", _: Given) -> Answer:
    rows = [(done.topic_key, rank, value) for rank, value in enumerate(done.values, 1)]
    notes = [] if done.stored else [f"nothing was stored: {escape_controls(done.why or 'a dry run')}"]
    return rows_answer(done, ("topic", "rank", "value"), rows, notes)


@request_command("facts.remove", group=fact)
def remove(removed: "list[memlog.Position]", given: Given) -> Done:
    what = given.topic if given.rank is None else f"rank {given.rank} of {given.topic}"
    return Done({"removed": removed}, f"Removed {what}.")


def _printed_answer(found: "memlog.FactAnswer") -> Answer:
    """Format an answer, with a note on the rule that found it or on why nothing is known."""
    lines = found.answer.split("\n") if len(found.facts) > 1 else [found.answer]
    table = table_of_records(found.facts, _COLUMNS)
    return Answer(found, table, text=map(put_on_one_line, lines), notes=[*_answer_notes(found)])


def _answer_notes(found: "memlog.FactAnswer") -> Iterator[str]:
    if found.route is None:
        yield escape_controls(found.why or "")
    elif found.route.rule != "key" or found.route.other_chat:
        yield escape_controls(_describe_route(found.route))


def _describe_route(route: "memlog.Route") -> str:
    ranks = f", rank {', '.join(map(str, route.ranks))}" if route.ranks else ""
    scope = "of the store" if route.chat is None else f"of {route.chat}"
    asides = [
        *(["no topic was named, this one was set last"] if route.most_recent else []),
        *(["another chat"] if route.other_chat else []),
        f"rule: {route.rule}",
        *([f"language: {route.language}"] if route.language else []),
    ]
    return f"{route.topic_key}{ranks} {scope} ({'; '.join(asides)})"

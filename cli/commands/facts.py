"""memlog ask, fact."""

from collections.abc import Iterator

import click
from msgspec.structs import replace

import memlog
from memlog.cli.options.request_options import Store, request_command
from memlog.cli.options.settings import Group
from memlog.cli.options.zone import minute
from memlog.cli.output.answer import Answer, Columns, Done, list_answer, rows_answer, table_of
from memlog.cli.output.output import asks_for_json, one_line, printable
from memlog.service.memory.requests import AskFacts, ExtractFacts, GetFact, ListFacts, RemoveFact, SetFact

_COLUMNS: Columns = {
    "topic": "topic_key",
    "rank": lambda fact: fact.rank or None,
    "value": "value",
    "chat": "chat",
    "updated": lambda fact: minute(fact.updated_at),
    "position": lambda fact: f"{fact.position} {fact.event_id}",
}


@request_command(AskFacts, joined="question", may_be_blank=True)
def ask(store: Store, request: AskFacts) -> Answer:
    return _answer_of(store.facts.ask(request))


@click.group(cls=Group)
def fact() -> None:
    """Set, show and remove facts: what is known by a topic's name, such as favorite_colors or city."""


@request_command(SetFact, group=fact, arguments=["topic", "values"])
def set_(store: Store, request: SetFact) -> Done:
    done = store.facts.set(request)
    values = (
        f"{rank}. {value}" if rank else value for rank, value in zip(done.ranks, done.values, strict=True)
    )
    return Done(done, f"Set {done.topic_key}: {', '.join(values)}.")


@request_command(
    GetFact, group=fact, arguments=["topic"], adds="\nThe exit code is 1 if nothing is stored under KEY."
)
def get(store: Store, request: GetFact) -> Answer:
    found = store.facts.get(request)
    if not (found.found or asks_for_json(click.get_current_context())):
        # Imported here: it is only for unknown facts.
        from memlog.service.memory.facts import unknown_fact

        raise unknown_fact(f"{found.answer}: {found.why}")
    return replace(_answer_of(found), exit_code=0 if found.found else 1)


@request_command(ListFacts, group=fact)
def list_(store: Store, request: ListFacts) -> Answer:
    return list_answer("facts", store.facts.list(request), _COLUMNS)


@request_command(
    ExtractFacts,
    group=fact,
    joined="text",
    or_stdin=True,
    may_be_blank=True,
    adds="\nWithout TEXT, or with -, the text is read from stdin. stderr says why nothing was stored.",
)
def extract(store: Store, request: ExtractFacts) -> Answer:
    done = store.facts.extract(request)
    rows = [(done.topic_key, rank, value) for rank, value in enumerate(done.values, 1)]
    notes = [] if done.stored else [f"nothing was stored: {printable(done.why or 'a dry run')}"]
    return rows_answer(done, ("topic", "rank", "value"), rows, notes)


@request_command(RemoveFact, group=fact, arguments=["topic"])
def remove(store: Store, request: RemoveFact) -> Done:
    removed = store.facts.remove(request)
    what = request.topic if request.rank is None else f"rank {request.rank} of {request.topic}"
    return Done({"removed": removed}, f"Removed {what}.")


def _answer_of(found: "memlog.FactAnswer") -> Answer:
    """Return the answer in every form; the rule that found it is a note."""
    lines = found.answer.split("\n") if len(found.facts) > 1 else [found.answer]
    table = table_of(found.facts, _COLUMNS)
    return Answer(found, table, text=map(one_line, lines), notes=[*_notes(found)])


def _notes(found: "memlog.FactAnswer") -> Iterator[str]:
    if found.route is None:
        yield printable(found.why or "")
    elif found.route.rule != "key" or found.route.other_chat:
        yield printable(_rule(found.route))


def _rule(route: "memlog.Route") -> str:
    ranks = f", rank {', '.join(map(str, route.ranks))}" if route.ranks else ""
    scope = "of the store" if route.chat is None else f"of {route.chat}"
    asides = [
        *(["no topic was named, this one was set last"] if route.most_recent else []),
        *(["another chat"] if route.other_chat else []),
        f"rule: {route.rule}",
        *([f"language: {route.language}"] if route.language else []),
    ]
    return f"{route.topic_key}{ranks} {scope} ({'; '.join(asides)})"

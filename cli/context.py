"""memlog context."""

import click
import msgspec

import memlog
from memlog.cli.answer import silence
from memlog.cli.open_store import open_store
from memlog.cli.output import note, one_line
from memlog.cli.param_types import CHAT, TEXT, UNIT, count
from memlog.query.context.rendering import FORMS, Form
from memlog.query.context.token_counters import COUNTERS, Counter


@click.command()
@click.argument("text", type=TEXT)
@click.option(
    "--chat",
    type=CHAT,
    metavar="CHANNEL:CHAT_ID",
    help="The conversation that is going on: its window is given, and of other chats nothing.",
)
@click.option(
    "--max-tokens", type=count(1), default=4000, show_default=True, help="Of all that is printed, never more."
)
@click.option(
    "--counter",
    type=click.Choice(COUNTERS),
    default="model",
    show_default=True,
    help="What a token is: of the shipped vocabulary (model); 4 characters (chars4); a Chinese character is"
    " 1.5, a word 0.75 (heuristic).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    help="How to print: text for a prompt, which is the default; JSON for programs; messages as a language"
    " model is sent them.",
)
@click.option("--json", "as_json", is_flag=True, help="Short for --format json: one JSON document.")
@click.option("--limit", type=count(0), default=5, show_default=True, help="Memories at most.")
@click.option(
    "--passages", type=count(0), default=20, show_default=True, help="Passages of conversations at most."
)
@click.option(
    "--min-salience",
    type=UNIT,
    default=0.3,
    show_default=True,
    help="Leave out memories that have faded below this.",
)
@click.option(
    "--exclude", type=TEXT, multiple=True, metavar="ID", help="Leave out this event, memory or document."
)
@click.option("--no-record", is_flag=True, help="Do not record that the memories were given.")
@click.option("--explain", is_flag=True, help="Say on stderr what was taken, what was left out, and why.")
@click.option("--no-sync", is_flag=True, help="Do not catch up with the log first.")
@click.pass_context
def context(
    ctx: click.Context,
    text: str,
    chat: tuple[str, str] | None,
    max_tokens: int,
    counter: Counter,
    form: Form | None,
    as_json: bool,
    limit: int,
    passages: int,
    min_salience: float,
    exclude: tuple[str, ...],
    no_record: bool,
    explain: bool,
    no_sync: bool,
) -> None:
    """Say what an agent should know now, to answer the message TEXT.

    By right: the core memory, facts, memories, passages of conversations, summaries, the chat's newest
    messages. What does not fit into --max-tokens is left out, each entry whole. Every entry has a citation,
    [M1], which the JSON form gives its place in the log. What memory says is data: it cannot end the block
    that it stands in.
    """
    if not text.strip():
        raise click.BadParameter("it is empty", param_hint="TEXT")
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"json and {form}: the output can have one format only", ctx)
    with open_store(ctx) as store:
        given = store.context(
            text,
            chat=chat,
            max_tokens=max_tokens,
            counter=counter,
            form="json" if as_json else form or "text",
            limit=limit,
            passages=passages,
            min_salience=min_salience,
            exclude=exclude,
            record=not no_record,
            explain=explain,
            sync=not no_sync,
        )
    click.echo(given.text.encode(), nl=False)
    for said in _notes(given):
        note(said)
    if explain:
        _explain(given)


def _notes(given: memlog.Context) -> list[str]:
    notes = []
    if given.frame > given.max_tokens:
        notes.append(f"nothing is given: the frame alone has {given.frame} tokens of {given.max_tokens}")
    elif not given.entries:
        notes.append("nothing found")
    if given.form != "json":
        notes += [] if given.synced else ["the read model may be behind the log"]
        notes += silence(given.silent)
    if given.unrecorded is not None:
        notes.append(f"not recorded that the memories were given: {given.unrecorded}")
    return notes


def _explain(given: memlog.Context) -> None:
    """On stderr, since stdout has what fits into the budget and nothing else."""
    if given.form == "json":
        click.echo(msgspec.json.encode({"explain": _explained(given)}), err=True)
        return
    note(
        f"{given.tokens} of {given.max_tokens} tokens ({given.counter}),"
        f" {given.frame} of them around the entries"
    )
    for entry in given.entries:
        note(f"{entry.citation}: {entry.part} {one_line(entry.id)}, {entry.tokens} tokens")
    for left in given.left_out:
        note(f"left out: {left.part} {one_line(left.id)}, {left.tokens} tokens: {one_line(left.why)}")


def _explained(given: memlog.Context) -> dict[str, object]:
    members = ("citation", "part", "id", "tokens")
    return {
        **{name: getattr(given, name) for name in ("tokens", "max_tokens", "frame", "counter")},
        "taken": [{name: getattr(entry, name) for name in members} for entry in given.entries],
        "left_out": given.left_out,
    }

"""memlog context."""

import click
import msgspec
from msgspec.structs import replace

import memlog
from memlog.cli.options.open_store import open_store
from memlog.cli.options.request_options import Given, request_command
from memlog.cli.options.zone import format_in_local_time
from memlog.cli.output.answer import notes_on_omitted_parts
from memlog.cli.output.output import STORED, print_note, put_on_one_line
from memlog.cli.process.confirmation import migrate_notes_or_name_command


@request_command(
    "context",
    joined="text",
    names={"form": "--format"},
    settings={
        "timezone": "timezone",
        "scope": "context_scope",
        "health_tokens": "context_health_tokens",
        "preference_tokens": "context_preference_tokens",
    },
    gets="context",
)
@click.option("--json", "as_json", is_flag=True, help="Short for --format json: one JSON document.")
def context(ctx: click.Context, request: Given, *, as_json: bool) -> None:
    form = ctx.get_parameter_source("form")
    if as_json and request.form != "json" and form is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError(f"json cannot be combined with {request.form}")
    migrate_notes_or_name_command(ctx)
    with open_store(ctx) as store:
        given = store.context(replace(request, form="json") if as_json else request)
    STORED.reset_after_acknowledgement()  # the recorded access needs no acknowledgement
    click.echo(given.text.encode(), nl=False)
    for notice in _context_notes(given):
        print_note(notice)
    if request.explain:
        _print_explanation(given)


def _context_notes(given: memlog.Context) -> list[str]:
    is_explained = given.entries or {"frame", "nothing_relevant"} & given.silent.keys()
    fits_nothing = any(left.why == "no room" for left in given.left_out)
    nothing = f"nothing fits into {given.max_tokens} tokens" if fits_nothing else "nothing found"
    notes = [] if is_explained else [nothing]
    if given.form != "json" or not given.text:
        notes += [] if given.synced else ["the read model may be behind the log"]
        notes += notes_on_omitted_parts(given.silent)
    if given.unrecorded is not None:
        notes.append(f"the context was not recorded: {given.unrecorded}")
    return notes


def _print_explanation(given: memlog.Context) -> None:
    """Explain the context on stderr, so that stdout has only the context itself."""
    if given.form == "json":
        click.echo(msgspec.json.encode({"explain": _explanation_members(given)}), err=True)
        return
    print_note(
        f"{given.tokens} of {given.max_tokens} tokens ({given.counter}),"
        f" {given.frame} of them around the entries"
    )
    print_note(f"scope {given.scope}: {put_on_one_line(given.scope_why)}")
    if (time := given.time) is not None:
        since, until = format_in_local_time(time.since), format_in_local_time(time.until)
        print_note(f"time {put_on_one_line(time.words)}: from {since} to {until}")
    for entry in given.entries:
        cited = f"{entry.citation}: " if entry.citation else ""
        score = _score_text(entry.score)
        print_note(f"{cited}{entry.part} {put_on_one_line(entry.id)}, {entry.tokens} tokens{score}")
    for left in given.left_out:
        tokens = f", {left.tokens} tokens" if left.tokens else ""
        print_note(
            f"left out: {left.part} {put_on_one_line(left.id)}{tokens}: {put_on_one_line(left.why)}"
            f"{_score_text(left.score)}"
        )


def _score_text(score: memlog.EntryScore | None) -> str:
    return "" if score is None else f", {score}"


def _explanation_members(given: memlog.Context) -> dict[str, object]:
    members = ("citation", "part", "id", "tokens", "score")
    return {
        **{
            name: getattr(given, name)
            for name in ("tokens", "max_tokens", "frame", "counter", "scope", "scope_why", "time")
        },
        "taken": [{name: getattr(entry, name) for name in members} for entry in given.entries],
        "left_out": given.left_out,
    }

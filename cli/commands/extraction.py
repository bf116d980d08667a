"""memlog buffer, extract, prompts."""

import sys
from collections.abc import Sequence

import click
from msgspec.structs import replace

import memlog
from memlog.cli.options.request_options import Given, Store, request_command
from memlog.cli.options.settings import Command, Group, Settings, change_settings_file
from memlog.cli.output.answer import Answer, Columns, Done, TextAnswer, list_answer, printing_answer
from memlog.cli.output.output import count_noun, escape_controls, print_note, put_on_one_line
from memlog.cli.process.confirmation import ask_yes_or_no
from memlog.eventlog.log.layout import SETTINGS as SETTINGS_FILE
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.service.engine.create import replace_settings_file
from memlog.service.engine.prompts import prompt_names, read_prompt

EXTRACTIONS: Columns = {
    "chat": "chat",
    "day": "date",
    "messages": "messages",
    "requests": "requests",
    "saved": "saved",
    "merged": "merged",
    "known": "known",
    "below": "below",
    "refused": "refused",
    "tokens": lambda report: report.tokens_in + report.tokens_out,
    "set aside": "set_aside",
    "summary": lambda report: put_on_one_line(report.summary or ""),
}

PLAN: Columns = {name: EXTRACTIONS[name] for name in ("chat", "messages", "requests", "tokens")}


@request_command("extraction.run", names={"unbounded": "--yes"}, arguments=[], gets="store")
def extract(store: Store, given: Given) -> Answer:
    yes = given.unbounded
    is_first = sys.stdin is not None and sys.stdin.isatty() and store.jobs.list()[0].last is None
    if given.dry_run or (is_first and not yes):
        plan = [each for each in store.extraction.run(replace(given, dry_run=True)) if not each.set_aside]
        is_history = sum(each.requests for each in plan) > 1
        if given.dry_run or (is_history and not ask_yes_or_no(f"Send {_describe_plan(plan)}?")):
            print_note(_describe_plan(plan) if given.dry_run else "nothing was sent")
            return list_answer("extractions", plan, PLAN, if_empty="nothing to distil")
        yes = is_history
    return extractions_answer(store.extraction.run(replace(given, unbounded=yes)))


def extractions_answer(reports: "Sequence[memlog.ExtractionReport]") -> Answer:
    """Return the answer for extraction reports, with notes on messages that are still waiting."""
    notes = []
    for report in reports:
        if report.set_aside and report.extraction_id is None:
            notes.append(f"{count_noun(report.messages, 'message')} waiting: {report.set_aside}")
    if whys := [report.set_aside for report in reports if report.set_aside and report.extraction_id]:
        notes += [f"{len(whys)} set aside until tomorrow (UTC), the last: {whys[-1]}; --retry asks again"]
    return list_answer("extractions", reports, EXTRACTIONS, notes=notes, if_empty="nothing to distil")


def _describe_plan(plan: "list[memlog.ExtractionReport]") -> str:
    messages, requests, tokens = (
        sum(getattr(each, name) for each in plan) for name in ("messages", "requests", "tokens_in")
    )
    return f"{messages:,} messages, {requests:,} requests, about {tokens:,} tokens without the answers"


@request_command("extraction.buffer", arguments=[])
def buffer(found: "list[memlog.Buffer]", _: Given) -> Answer:
    columns: Columns = {
        "chat": "chat",
        "messages": lambda each: len(each.messages),
        "since": lambda each: each.messages[0].ts,
        "until": lambda each: each.messages[-1].ts,
    }
    return list_answer("buffers", found, columns, if_empty="every message is distilled")


_PROMPTS = "prompts"
"""The name of the folder for a store's own prompts."""


@click.group(cls=Group)
def prompts() -> None:
    """Show and change the language model's prompts."""


@request_command("extraction.prompt", group=prompts)
def show(found: "memlog.Prompt", _: Given) -> TextAnswer:
    return TextAnswer(found, text=[f"# {found.id}", "", escape_controls(found.text)])


@prompts.command("edit", cls=Command)
@click.argument("name", type=click.Choice(prompt_names()), metavar="NAME")
@printing_answer
@click.pass_context
def edit(ctx: click.Context, name: str) -> Done:
    """Copy a prompt into the folder `extraction.prompts_dir`, and open it in your editor.

    NAME is compress-2, extract-2, merge-2, profile-2 or summarise-1. If that setting is missing, memlog.toml
    sets it to `prompts` in the store. The editor is $VISUAL or $EDITOR; without a terminal, none is opened.
    """
    settings = ctx.ensure_object(Settings)
    own = read_prompt(name)
    folder = settings.value("extraction.prompts_dir") or settings.store / _PROMPTS
    path = folder / f"{own.name}.md"
    if not path.exists():
        replace_settings_file(path, own.text)
    if settings.value("extraction.prompts_dir") is None:
        change_settings_file(settings.store / SETTINGS_FILE, "extraction.prompts_dir", _PROMPTS)
    if sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        click.edit(filename=str(path))
    used = read_prompt(name, folder)
    return Done(
        {"file": escape_invalid_utf8(path), "prompt": used.id},
        f"{escape_invalid_utf8(path)}: prompt {used.id}.",
    )

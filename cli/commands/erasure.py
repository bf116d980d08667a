"""memlog forget, scrub, secrets."""

from collections.abc import Iterator

import click

import memlog
from memlog.cli.options.param_types import TEXT
from memlog.cli.options.request_options import Given, Store, request_command
from memlog.cli.output.answer import Answer, Columns, list_answer, records_answer, table_of_named_values
from memlog.cli.output.output import count_noun
from memlog.cli.process.confirmation import ask_yes_or_no, run_if_confirmed
from memlog.cli.process.stdin import read_stdin_text
from memlog.service.engine.operation import bind_operation


def _line_position(line: "memlog.DoomedLine | memlog.SecretPlace") -> str:
    return f"{line.stream}/{line.segment}:{line.line}"


_FORGOTTEN: Columns = {"position": _line_position, "id": "id", "type": "type", "words": "words"}
_SECRETS: Columns = {"kind": "kind", "position": _line_position, "id": "id"}
_PLACES: Columns = {"file": "file", "offset": "offset"}


@request_command("erasure.forget", gets="store")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget(store: Store, given: Given, *, yes: bool) -> Answer:
    def ask_person(found: "memlog.ForgetReport") -> bool:
        lines = [f"{_line_position(line)}  {line.id}  {line.words}" for line in found.lines]
        return not lines or ask_yes_or_no(f"Forget {count_noun(len(lines), 'line')}?", lines)

    done = run_if_confirmed(bind_operation(store, "erasure.forget"), given, ask_person, is_yes=yes)
    # A person who answers no has not requested a dry run.
    done.dry_run = given.dry_run
    return records_answer(done, done.lines, _FORGOTTEN, notes=[*_notes_of_forget(done)])


def _notes_of_forget(done: "memlog.ForgetReport") -> Iterator[str]:
    if not done.lines:
        yield "nothing to forget" + (": it was forgotten before" if done.already else "")
    elif done.dry_run:
        yield f"{count_noun(len(done.lines), 'line')} would be forgotten"
    elif done.redacted:
        yield f"{count_noun(done.redacted, 'event')} forgotten; memlog scrub overwrites them in the log"
    else:
        yield "nothing was forgotten"
    for position in done.unreachable:
        yield f"{position} is in no stream: remove its file by hand"


@request_command(
    "erasure.scrub",
    adds="It cannot reach backups, snapshots, git's history and other copies, nor blocks that the disk has"
    " remapped or freed.",
    gets="store",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--prove",
    type=TEXT,
    metavar="TEXT",
    help="Overwrite nothing: search every byte of the store for TEXT, unchanged and as JSON may escape it;"
    " - reads it from stdin. Exit 1 if it is found, or a file could not be read.",
)
def scrub(store: Store, given: Given, *, yes: bool, prove: str | None) -> Answer:
    if prove is not None:
        if yes:
            raise click.UsageError("--prove cannot be combined with --yes: it overwrites nothing")
        proof = store.erasure.prove(read_stdin_text() if prove == "-" else prove)
        code = 1 if proof.found or proof.left_out else 0
        return records_answer(proof, proof.found, _PLACES, notes=[*_notes_of_proof(proof)], exit_code=code)

    def ask_person(found: "memlog.ScrubReport") -> bool:
        what = f"{count_noun(found.lines, 'line')} in {count_noun(found.segments, 'segment')}"
        return ask_yes_or_no(f"Overwrite {what} permanently, and build a new read model?")

    done = run_if_confirmed(bind_operation(store, "erasure.scrub"), given, ask_person, is_yes=yes)
    values = {name: getattr(done, name) for name in ("lines", "bytes", "segments", "generation", "vectors")}
    values["result"] = "done" if done.done else "nothing was done"
    return Answer(done, table_of_named_values(values), notes=done.notes)


def _notes_of_proof(proof: "memlog.Proof") -> Iterator[str]:
    read = f"{count_noun(proof.files, 'file')}, {count_noun(proof.bytes, 'byte')}"
    places = count_noun(len(proof.found), "place")
    yield f"found in {places} of {read}" if proof.found else f"not found in {read}"
    for name in proof.git:
        yield (
            f"{name}: git's history was not searched, since its objects are compressed;"
            " docs/copies.md says how to search it and how to begin a new one"
        )
    for name in proof.left_out:
        yield f"not a file, so it was not read: {name}"


@request_command("erasure.secrets")
def secrets(found: "list[memlog.SecretPlace]", _: Given) -> Answer:
    return list_answer("secrets", found, _SECRETS, if_empty="no keys of a known form")

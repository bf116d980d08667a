"""memlog digest, doctor, embed, project, quarantine, seal, stats, status, verify."""

from collections.abc import Iterator, Sequence

import click
from msgspec.structs import asdict, replace

import memlog
from memlog.cli.options.open_store import open_log
from memlog.cli.options.request_options import Given, Store, request_command
from memlog.cli.options.zone import format_in_local_time
from memlog.cli.output.answer import (
    Answer,
    Columns,
    TextAnswer,
    list_answer,
    notes_on_omitted_parts,
    records_answer,
    table_of_named_values,
)
from memlog.cli.output.help_pages import translate_calls, translate_hint
from memlog.cli.output.output import count_noun, print_note, put_on_one_line
from memlog.cli.process.error_handler import LOSS

_SHOWN = 20
"""The maximum number of set-aside requests or texts to list; --json lists all."""


@request_command("maintenance.digest")
def digest(found: "str", given: Given) -> Answer:
    record = {"digest": found, "content": given.content}
    return Answer(record, table_of_named_values(record), text=[found])


@request_command(
    "maintenance.examine", adds="Exit 1 if there is a problem. `verify` reads every byte of the log."
)
def doctor(found: "list[memlog.Finding]", _: Given) -> Answer:
    # Imported here: the other commands do not examine the machine.
    from memlog.service.upkeep.doctor import has_no_problem

    findings = [
        replace(each, finding=translate_calls(each.finding), remedy=translate_hint(each.remedy))
        for each in found
    ]
    columns = {"check": "check", "state": "state", "finding": "finding", "remedy": "remedy"}
    document = {"ok": has_no_problem(findings), "findings": findings}
    return records_answer(document, findings, columns, exit_code=0 if has_no_problem(findings) else 1)


@request_command("maintenance.embed")
def embed(report: "memlog.EmbedReport", _: Given) -> TextAnswer:
    counts = _vector_counts(report.computed, report.cached, report.pending)
    counts += f", {report.withheld} without one" if report.withheld else ""
    text = [f"vectors      {counts}"]
    if report.set_aside:
        text.append(f"set aside    {_name_first_few(report.set_aside)}")
    return TextAnswer(report, text=text, notes=notes_on_omitted_parts(report.silent))


def _name_first_few(names: list[str]) -> str:
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


@request_command("maintenance.project")
def project(report: "memlog.ProjectReport", _: Given) -> Answer:
    values: dict[str, object] = {"rebuilt": report.rebuilt} if report.rebuilt else {}
    values |= {
        "events": f"{report.events} read, {report.rows} in the read model",
        "duplicates": report.duplicates,
        "conflicts": report.conflicts,
        "quarantined": report.quarantined,
        "NUL runs": report.nul_runs,
        "vectors": _vector_counts(report.vectors_computed, report.vectors_cached, report.vectors_pending),
        "seconds": f"{report.seconds:.2f}",
    }
    return Answer(
        report, table_of_named_values(values), notes=[*report.notes, *notes_on_omitted_parts(report.silent)]
    )


def _vector_counts(computed: int, cached: int, pending: int) -> str:
    return f"{computed} computed, {cached} from the cache, {pending} to do"


@request_command("maintenance.quarantine", gets="store")
def quarantine(store: Store, _: Given) -> Answer:
    columns: Columns = {
        "segment": lambda line: f"{line.stream}/{line.segment}",
        "offset": "offset",
        "bytes": "bytes",
        "reason": "reason",
        "explanation": lambda line: translate_calls(store.maintenance.explain(line)),
    }
    lines = store.maintenance.quarantine()
    return list_answer("lines", lines, columns, if_empty="no line is quarantined")


@request_command(
    "maintenance.seal",
    adds="Exit 3 if a sealed segment is missing or shorter, or if bytes that were read from an unsealed one"
    " are missing or changed, until they are restored or the loss is accepted.",
    gets="context",
)
def seal(ctx: click.Context, given: Given) -> TextAnswer:
    # Imported here: the other commands do not seal.
    from memlog.service.upkeep.maintenance import seal_all_segments as seal_log

    done = seal_log(open_log(ctx), accept_loss=given.accept_loss)
    for loss in done.lost:
        print_note(f"{loss.stream}/{loss.why}")
    return TextAnswer(done, text=_seal_lines(done), exit_code=LOSS if done.lost else 0)


def _seal_lines(report: "memlog.SealReport") -> Iterator[str]:
    for each in report.sealed:
        yield put_on_one_line(
            f"{each.stream}/{each.segment}: {each.bytes:,} bytes in {count_noun(each.lines, 'line')}"
        )
    yield from (put_on_one_line(f"{loss.stream}/{loss.why}") for loss in report.accepted)
    yield f"sealed       {len(report.sealed)}"
    if report.accepted:
        yield f"accepted     {len(report.accepted)}"


@request_command("maintenance.stats")
def stats(found: "memlog.Stats", _: Given) -> Answer:
    return Answer(found, table_of_named_values(dict(_stats_rows(found))))


def _stats_rows(found: "memlog.Stats") -> Iterator[tuple[str, object]]:
    for member, value in asdict(found).items():
        if member == "counters":
            yield from value.items()
        elif isinstance(value, dict):
            yield from ((f"{member.replace('_', ' ')}: {name}", count) for name, count in value.items())
        else:
            yield member.replace("_", " "), value


@request_command("maintenance.status")
def status(found: "memlog.Status", _: Given) -> Answer:
    return Answer(
        found, table_of_named_values(status_values(found)), notes=notes_on_omitted_parts(found.silent)
    )


def status_values(found: "memlog.Status") -> dict[str, object]:
    """Return a status as named values, for a table."""
    values = {
        name.replace("_", " "): "none" if value is None else value
        for name, value in asdict(found).items()
        if name not in ("silent", "providers", "set_aside", "vectors_set_aside")
    }
    if found.vectors_set_aside:
        values["vectors set aside"] = _name_first_few(found.vectors_set_aside)
    return values | dict(map(_provider_row, found.providers)) | _set_aside_rows(found.set_aside)


def _set_aside_rows(found: "Sequence[memlog.SetAside]") -> dict[str, object]:
    """Return the number of set-aside requests and a description of the first few, as named values."""
    if not found:
        return {}
    rows: dict[str, object] = {
        f"set aside {number}": f"{each.task} {each.chat or each.event_ids[0]}: {each.why}"
        for number, each in enumerate(found[:_SHOWN], 1)
    }
    return {"set aside": f"{len(found)} until {format_in_local_time(found[0].until)}"} | rows


def _provider_row(state: "memlog.ProviderState") -> tuple[str, str]:
    where = " ".join(filter(None, (state.type, state.model, state.base_url)))
    if not state.failures:
        return state.role, f"{where}: no failure"
    rests = f"; not retried before {state.rests_until}" if state.rests_until else ""
    return (
        state.role,
        f"{where}: {state.failures} failures, the last at {state.failed_at}: {state.error}{rests}",
    )


@request_command(
    "maintenance.verify",
    adds="Exit 1 if the read model differs, a line was changed after it was written, or the cache is damaged;"
    " exit 3 if a seal is broken or missing, or a sealed segment differs from its seal.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Also exit 1 if lines are quarantined, duplicated, in conflict or among NUL bytes.",
)
def verify(found: "memlog.Verification", _: Given, *, strict: bool) -> Answer:
    for name in ("notes", "problems", "tampered"):
        setattr(found, name, [*map(translate_calls, getattr(found, name))])
    unused = f" ({found.unused_vectors} of texts that no passage has)" if found.unused_vectors else ""
    values = {
        "digest": found.digest or "none",
        "replayed": found.replayed or "none",
        "events": found.events,
        "duplicates": found.duplicates,
        "conflicts": found.conflicts,
        "quarantined": sum(found.quarantined.values()),
        **{f"- {reason}": count for reason, count in found.quarantined.items()},
        "NUL runs": len(found.nul_runs),
        "vectors": f"{found.vectors}, {found.missing_vectors} to do, {found.withheld_vectors} withheld,"
        f" {found.cached_vectors}{unused} in the cache",
        "seals": found.seals,
        "result": _verdict(found),
    }
    passed = found.ok and (found.is_spotless or not strict)
    nuls = (
        f"{run.stream}/{run.segment} (byte {run.offset}): {run.bytes} NUL bytes, left by a power cut"
        for run in found.nul_runs
    )
    return Answer(
        document={"ok": found.ok} | asdict(found),
        table=table_of_named_values(values),
        notes=[*found.notes, *found.problems, *found.tampered, *nuls],
        exit_code=LOSS if found.tampered else int(not passed),
    )


def _verdict(found: "memlog.Verification") -> str:
    if found.ok:
        return "well, not compared" if found.digest is None else "equal"
    return "loss or tampering" if found.tampered else "not well"

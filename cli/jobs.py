"""memlog jobs."""

import shutil
import sys
from pathlib import Path
from typing import Any

import click

from memlog.cli.answer import Answer, Columns, TextAnswer, list_answer, printed
from memlog.cli.job_units import UNITS, unit
from memlog.cli.output import asks_for_json, note
from memlog.cli.request_options import Store, request_command
from memlog.cli.settings import Settings
from memlog.cli.standard_options import Command, Group
from memlog.cli.zone import minute
from memlog.service.llm.requests import ListJobRuns, ListJobs, RunJobs


def _steps(of: Any) -> str:  # noqa: ANN401 - a job, a run or a report
    """`decay 4, daily events skipped: no language model is configured`."""
    told = []
    for step in of.steps:
        text = f"{step.name} {step.count if step.outcome == 'done' else step.outcome}"
        told.append(text if step.why is None else f"{text}: {step.why}")
    return ", ".join(told)


_JOBS: Columns = {
    "job": "name",
    "due": "due",
    "next": lambda job: minute(job.next),
    "last": lambda job: minute(job.last),
    "for": "period",
    "steps": _steps,
}
_RUNS: Columns = {"ran": lambda run: minute(run.ts), "job": "job", "for": "period", "steps": _steps}
_REPORTS: Columns = {"job": "job", "for": "period", "steps": _steps}


@click.group(cls=Group)
def jobs() -> None:
    """List and run what memlog does by itself, by day and by week."""


@request_command(ListJobs, group=jobs)
def list_(store: Store, asked: ListJobs) -> Answer:
    return list_answer("jobs", store.jobs.list(asked), _JOBS)


@request_command(RunJobs, group=jobs, arguments=["job"])
def run(store: Store, asked: RunJobs) -> Answer:
    return list_answer("reports", store.jobs.run(asked), _REPORTS, if_empty="nothing is due")


@request_command(ListJobRuns, group=jobs)
def log(store: Store, asked: ListJobRuns) -> Answer:
    return list_answer("runs", store.jobs.log(asked), _RUNS, if_empty="no such run yet")


@jobs.command(cls=Command)
@click.option("--systemd", "host", flag_value="systemd", help="A service and a timer of systemd.")
@click.option("--cron", "host", flag_value="cron", help="A line of a crontab.")
@click.option("--launchd", "host", flag_value="launchd", help="An agent of launchd.")
@printed
@click.pass_context
def schedule(ctx: click.Context, host: str | None) -> TextAnswer:
    """Print the unit that has a host run the jobs of this store, and say where it goes.

    For a store that neither `memlog watch` nor `memlog serve` looks after. The host calls `memlog jobs run`
    every 15 minutes, which does what is due.
    """
    if host is None:
        raise click.UsageError("which host? --systemd, --cron or --launchd")
    program = shutil.which(sys.argv[0]) or "memlog"
    command = [str(Path(program).absolute()), "-q", *ctx.ensure_object(Settings).store_options, "jobs", "run"]
    text = unit(host, command)
    if not asks_for_json(ctx):
        note(f"put this into {UNITS[host]}")
        note("the host starts it without your variables: settings and keys must stand in files")
    return TextAnswer({"host": host, "place": UNITS[host], "unit": text}, text=[text.rstrip("\n")])

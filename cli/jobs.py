"""memlog jobs."""

from typing import Any

import click

from memlog.cli.answer import Answer, Columns, list_answer
from memlog.cli.request_options import Store, request_command
from memlog.cli.standard_options import Group
from memlog.cli.zone import minute
from memlog.service.requests.jobs import ListJobRuns, ListJobs, RunJobs


def _steps(of: Any) -> str:  # noqa: ANN401 - a job, a run or a report
    """`decay 4, daily events skipped: no language model is configured`."""
    return ", ".join(
        f"{step.name} {step.count}" if step.outcome == "done" else f"{step.name} {step.outcome}: {step.why}"
        for step in of.steps
    )


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
    return list_answer("runs", store.jobs.log(asked), _RUNS, if_empty="no job has run yet")

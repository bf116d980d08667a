"""memlog jobs."""

import plistlib
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import memlog
from memlog.cli.options.request_options import Given, OperationCommands, request_command
from memlog.cli.options.settings import Command, Settings
from memlog.cli.options.zone import format_in_local_time
from memlog.cli.output.answer import Answer, Columns, TextAnswer, list_answer, printing_answer
from memlog.cli.output.output import asks_for_json, print_note

EVERY = 15
"""Minutes between calls of `memlog jobs run`, which runs only due jobs."""

UNITS = {
    "systemd": (
        "memlog-jobs.service and memlog-jobs.timer in ~/.config/systemd/user, then run: systemctl --user"
        " enable --now memlog-jobs.timer; loginctl enable-linger"
    ),
    "cron": "the table that crontab -e edits",
    "launchd": (
        "~/Library/LaunchAgents/memlog.jobs.plist, then run: launchctl load"
        " ~/Library/LaunchAgents/memlog.jobs.plist"
    ),
}
"""Where to put each host's configuration, and how to activate it, keyed by host."""


def scheduler_configuration(host: str, command: Sequence[str]) -> str:
    """Return the configuration that makes a host run `command` every 15 minutes."""
    if host == "systemd":
        # https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html#Command%20lines
        started = " ".join(_quote_for_systemd(word) for word in command)
        return (
            "# memlog-jobs.service\n[Unit]\nDescription=memlog runs the jobs that are due\n\n"
            f"[Service]\nType=oneshot\nExecStart={started}\n# Another process runs them.\n"
            "SuccessExitStatus=75\n\n"
            "# memlog-jobs.timer\n[Unit]\nDescription=memlog looks for jobs that are due\n\n"
            f"[Timer]\nOnCalendar=*:0/{EVERY}\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n"
        )
    if host == "cron":
        # To cron, % is a newline.
        return f"*/{EVERY} * * * * {shlex.join(command)}\n".replace("%", "\\%")
    agent = {
        "Label": "memlog.jobs",
        "ProgramArguments": [*command],
        "StartInterval": EVERY * 60,
        "ProcessType": "Background",
    }
    return plistlib.dumps(agent, sort_keys=False).decode()


def _quote_for_systemd(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return escaped if escaped == shlex.quote(word) else f'"{escaped}"'


def _describe_steps(of: Any) -> str:  # noqa: ANN401 - a job, a run or a report
    """Describe steps: `decay 4, daily events skipped: no language model is configured`."""
    told = []
    for step in of.steps:
        text = f"{step.name} {step.count if step.outcome == 'done' else step.outcome}"
        told.append(text if step.why is None else f"{text}: {step.why}")
    return ", ".join(told)


_JOBS: Columns = {
    "job": "name",
    "due": "due",
    "next": lambda job: format_in_local_time(job.next),
    "last": lambda job: format_in_local_time(job.last),
    "for": "period",
    "steps": _describe_steps,
}
_RUNS: Columns = {
    "ran": lambda run: format_in_local_time(run.ts),
    "job": "job",
    "for": "period",
    "steps": _describe_steps,
}
_REPORTS: Columns = {"job": "job", "for": "period", "steps": _describe_steps}


@click.group(cls=OperationCommands, operations="jobs")
def jobs() -> None:
    """List and run memlog's daily and weekly jobs."""


@request_command("jobs.list", group=jobs)
def list_(found: "list[memlog.Job]", _: Given) -> Answer:
    return list_answer("jobs", found, _JOBS)


@request_command("jobs.run", group=jobs)
def run(found: "list[memlog.JobReport]", _: Given) -> Answer:
    return list_answer("reports", found, _REPORTS, if_empty="nothing is due")


@request_command("jobs.log", group=jobs, arguments=[])
def log(found: "list[memlog.JobRun]", _: Given) -> Answer:
    return list_answer("runs", found, _RUNS, if_empty="no such run yet")


@jobs.command(cls=Command)
@click.option("--systemd", "host", flag_value="systemd", help="A service and a timer of systemd.")
@click.option("--cron", "host", flag_value="cron", help="A line of a crontab.")
@click.option("--launchd", "host", flag_value="launchd", help="An agent of launchd.")
@printing_answer
@click.pass_context
def schedule(ctx: click.Context, host: str | None) -> TextAnswer:
    """Print the configuration that makes a host run this store's jobs, and say where to put it.

    Use it for a store without a running `memlog watch` or `memlog serve`. Every 15 minutes, the host calls
    `memlog jobs run`, which runs whatever is due.
    """
    if host is None:
        raise click.UsageError("no host was given: use --systemd, --cron or --launchd")
    program = shutil.which(sys.argv[0]) or "memlog"
    command = [str(Path(program).absolute()), "-q", *ctx.ensure_object(Settings).store_options, "jobs", "run"]
    text = scheduler_configuration(host, command)
    if not asks_for_json(ctx):
        print_note(f"write this to {UNITS[host]}")
        print_note("the host runs memlog without your environment variables: keep settings and keys in files")
    return TextAnswer({"host": host, "place": UNITS[host], "unit": text}, text=[text.rstrip("\n")])

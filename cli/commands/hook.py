"""memlog hook."""

import threading
from pathlib import Path

import click

from memlog.cli.options.open_store import make_store_opener
from memlog.cli.options.param_types import TEXT, Number
from memlog.cli.options.settings import Command, Settings, projects_folder
from memlog.cli.process.stdin import stdin_bytes
from memlog.eventlog import timestamps
from memlog.eventlog.errors import MemlogError

_MOST_BYTES = 1024 * 1024
_LONGEST_LOG = 256 * 1024


@click.command(cls=Command)
@click.argument("host", type=TEXT)
@click.option(
    "--seconds",
    type=Number(0, 3600),
    default=0.3,
    show_default=True,
    help="After how long the answer is empty.",
)
@click.option(
    "--record-id", type=TEXT, help="The id of the recorded context. A retry with it records nothing again."
)
@click.pass_context
def hook(ctx: click.Context, host: str, seconds: float, record_id: str | None) -> None:
    """Answer a hook call from HOST, a coding agent: claude-code or codex; see docs/agents.md.

    Reads the call from stdin as JSON, and prints context for the agent in the agent's own format: when a
    session starts, core memory and the memories that always apply; before a prompt, whatever is relevant to
    it, or nothing. Credentials, and texts that look like keys, are left out. Always exits with 0; problems
    are logged in hooks.log in memlog's state folder. Without a running server, an answer takes longer than
    --seconds.
    """
    answers: list[bytes] = []
    problems: list[str] = []

    def answer() -> None:
        try:
            answers.append(_answer(ctx, host, record_id))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - an agent must not be disturbed
            hint = f" ({error.hint})" if isinstance(error, MemlogError) and error.hint else ""
            problems.append(f"{type(error).__name__}: {error}{hint}")

    worker = threading.Thread(target=answer, daemon=True)
    worker.start()
    worker.join(seconds)
    if not answers:
        log_problem(f"{host}: {problems[0] if problems else f'no answer within {seconds} s'}")
    elif answers[0]:
        click.echo(answers[0], nl=False)


def _answer(ctx: click.Context, host: str, record_id: str | None) -> bytes:
    # Imported here: a problem with an import is logged, too.
    from memlog.service.adapters.hooks import answer_call, read_call
    from memlog.service.projects import DEFAULT, Projects

    call = read_call(host, stdin_bytes().read(_MOST_BYTES))
    settings = ctx.ensure_object(Settings)
    open_store = make_store_opener(ctx)
    known = Projects(projects_folder(), open_store)
    of_person = known.path(DEFAULT)
    named = settings.store if settings.names_store_or_project else None
    of_project = named or known.path(known.project_of_session(host, call.session_id, call.cwd, Path.home()))
    with open_store(of_project) as project:
        if of_project == of_person:
            return answer_call(host, call, project, None, record_id)
        with open_store(of_person) as person:
            return answer_call(host, call, project, person, record_id)


def hooks_log() -> Path:
    """Return the path of the hooks log, which has a line for each problem."""
    # Imported here: most hooks have no problem.
    from memlog.service.adapters.remote_store import servers_folder

    return servers_folder().parent / "hooks.log"


def log_problem(problem: str) -> None:
    """Add a line to the hooks log; do nothing if the log cannot be written."""
    path = hooks_log()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        is_long = path.exists() and path.stat().st_size > _LONGEST_LOG
        with path.open("w" if is_long else "a", encoding="utf-8") as file:
            file.write(f"{timestamps.now()} {' '.join(problem.split())}\n")
    except OSError:
        return  # a full disk must not disturb an agent, either

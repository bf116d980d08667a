"""The command `memlog`: its options and commands, and the one place that handles errors."""

import atexit
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import NoReturn

import click

from memlog.cli.options.settings import (
    HELP_NAMES,
    VERSION_OPTION,
    Group,
    SettingOption,
    Settings,
    misspelt_variables,
)
from memlog.cli.options.zone import ZONE
from memlog.cli.output.output import RUN, STORED, print_note, shows_colours, wants_errors_as_json
from memlog.cli.process import forwarding
from memlog.cli.process.error_handler import (
    EXIT_CODES_HELP,
    Interrupts,
    OutputError,
    exit_code_of,
    print_error,
    replace_streams,
)


class LazyCommands(Group):
    """A group that suggests similar commands for an unknown name without importing any."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See `click.Group`, which only suggests commands that are already imported."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            raise unknown_command_error(name, self.list_commands(ctx), ctx)
        return super().resolve_command(ctx, args)


def unknown_command_error(name: str, known: Iterable[str], ctx: click.Context) -> click.UsageError:
    """Return the error for an unknown command, suggesting similar ones from `known`."""
    from difflib import get_close_matches

    last = name.rpartition(" ")[2]
    nearest = " or ".join(repr(each) for each in get_close_matches(last, list(known)))
    suggestion = f" Did you mean {nearest}?" if nearest else ""
    return click.UsageError(f"No such command {name!r}.{suggestion}", ctx)


PARENT = os.getppid()
"""The parent process's id, read at import, before the parent can have exited."""

_COMMANDS = {
    "Write": {
        "append": "Append events to the log.",
        "forget": "Erase events.",
        "init": "Create a store with its settings file.",
        "scrub": "Overwrite forgotten events in the log.",
    },
    "Read": {
        "ask": "Answer a question from the facts.",
        "context": "Build the memory context for a prompt.",
        "gate": "Decide whether a text is worth a search.",
        "hook": "Answer a hook of a coding agent.",
        "log": "Read the log itself.",
        "query": "Search messages, memories and documents.",
        "session": "Read a conversation.",
        "sessions": "List the current session of each chat.",
        "show": "Show the line of the log behind a hit.",
        "summaries": "List the summaries of conversations.",
        "window": "Show the newest messages of a chat's session.",
    },
    "Memory": {
        "core": "Read and change the core memory.",
        "daily": "Record and list daily events.",
        "buffer": "Show the messages that are not distilled yet.",
        "decay": "Fade memories by one day.",
        "extract": "Have a language model distil messages into memories.",
        "fact": "Set, show and remove facts.",
        "memory": "Save, list and change memories.",
        "prompts": "Show and change the prompts of the language model.",
        "prune": "Archive faded memories.",
    },
    "Documents": {
        "docs": "Index files as documents.",
        "watch": "Keep the read model and the documents up to date.",
        "workspace": "Index the notes in an agent's folder as memories.",
    },
    "Maintain": {
        "completion": "Print the shell completion script.",
        "config": "Show the settings and where each comes from.",
        "digest": "Print a hash over the whole read model.",
        "doctor": "Check the store and the installation, and suggest repairs.",
        "embed": "Compute missing embeddings.",
        "help": "Show the help of a command, or describe every command as JSON.",
        "export": "Export the store for other programs.",
        "import": "Import the data of another program.",
        "jobs": "List and run the daily and weekly jobs of memlog.",
        "mcp": "Serve the tools of the store to an agent, over MCP.",
        "project": "Replay the log into the read model.",
        "projects": "List, show and remove projects.",
        "quarantine": "List the lines that cannot be replayed.",
        "seal": "Close and seal every segment of the log.",
        "secrets": "List keys and passwords in the log.",
        "serve": "Serve every operation over HTTP.",
        "stats": "Count what the store holds.",
        "status": "Show the state of the store, its read model and its model.",
        "verify": "Compare the read model with a replay of the log.",
    },
}
"""The commands by group, each with its line in `memlog --help`."""

_MODULES = {
    "config": ("config", "init"),
    "core": ("core", "daily"),
    "conversations": ("session", "sessions", "show", "summaries", "window"),
    "documents": ("docs", "workspace"),
    "erasure": ("forget", "scrub", "secrets"),
    "extraction": ("buffer", "extract", "prompts"),
    "exchange": ("export", "import"),
    "facts": ("ask", "fact"),
    "help": ("completion", "help"),
    "maintenance": (
        "digest",
        "doctor",
        "embed",
        "project",
        "quarantine",
        "seal",
        "stats",
        "status",
        "verify",
    ),
    "memories": ("decay", "memory", "prune"),
}
"""The commands of each module; all others are in a module of the same name."""


class _Commands(LazyCommands):
    """Commands whose modules are imported on demand, so that `append` starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(name for group in _COMMANDS.values() for name in group)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if not any(cmd_name in group for group in _COMMANDS.values()):
            return None
        home = next((module for module, names in _MODULES.items() if cmd_name in names), cmd_name)
        module = import_module(f"memlog.cli.commands.{home}")
        # `import` is a Python keyword.
        command: click.Command = getattr(module, cmd_name, None) or getattr(module, f"{cmd_name}_")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands by group without importing any."""
        width = max(len(name) for group in _COMMANDS.values() for name in group)
        for heading, group in _COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in group.items()])


@click.group(
    cls=_Commands,
    params=[
        SettingOption("store", "--store"),
        SettingOption("project", "--project"),
        SettingOption("model", "--model"),
        click.Option(
            ["-q", "--quiet"], is_flag=True, help="Print no notes and no progress; errors are still printed."
        ),
        click.Option(["-v", "--verbose"], is_flag=True, help="Print whether a server runs the command."),
        click.Option(["--no-server"], is_flag=True, help="Run the command in this process, not on a server."),
        VERSION_OPTION,
    ],
    epilog=EXIT_CODES_HELP,
    context_settings={"help_option_names": HELP_NAMES},
)
@click.pass_context
def memlog_command(ctx: click.Context, quiet: bool, verbose: bool, no_server: bool) -> None:  # noqa: ARG001 - the entry point has read no_server
    """A memory for AI agents, stored as a folder of JSONL files.

    `append` writes events to the log, `project` replays the log into a searchable read model, `query`
    searches it. The log is the only source of truth: the folders model/ and cache/ can always be deleted.
    """
    settings = ctx.ensure_object(Settings)
    ZONE.name = partial(settings.value, "timezone")
    RUN.is_quiet = quiet
    for variable, meant in misspelt_variables():
        print_note(f"{variable} is not a setting; did you mean {meant}?")
    ctx.color = shows_colours()
    if forwarding.why_not_forwarded == forwarding.NO_SERVER and settings.value("serve.auto", of_store=False):
        _start_server(settings.value("serve.idle_minutes", of_store=False))
    if verbose and RUN.is_forwarded:
        print_note("a server runs this command")
    elif verbose:
        print_note(f"this process runs the command: {forwarding.why_not_forwarded}")


def _start_server(idle_minutes: float) -> None:
    """Start a background server, which stops by itself when idle, unless one was started a moment ago."""
    # Imported here: most users start their servers themselves.
    import subprocess
    import time
    from importlib.util import find_spec

    from memlog.service.adapters.remote_store import servers_folder

    if find_spec("uvicorn") is None:
        print_note("serve.auto needs the extra server: pip install '.[server]' in a checkout of memlog")
        return
    log = servers_folder() / "auto.log"
    with suppress(OSError):
        if log.exists() and time.time() - log.stat().st_mtime < _STARTING:
            return
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with log.open("wb") as errors:
            code = "from memlog.cli.process.program import main; main()"
            words = ["serve", "--no-port", "--idle-minutes", str(idle_minutes)]
            subprocess.Popen(  # noqa: S603 - no argument comes from outside
                [sys.executable, "-P", "-c", code, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd="/",
                start_new_session=True,
                env={name: value for name, value in os.environ.items() if name not in _OF_STORE},
            )


_STARTING = 15.0
"""Seconds after a start in which no other server is started: the first is still starting, or has failed."""

_OF_STORE = ("MEMLOG_STORE", "MEMLOG_PROJECT")
"""Variables that select one store, and so are not passed to the server: it serves all projects, and runs
commands for any store."""


def main() -> NoReturn:
    """Run the program as a process, and raise SystemExit."""
    interrupts = Interrupts(_exit_after_interrupt)
    replace_streams()
    sys.exit(run_command_line(interrupts))


def run_command_line(interrupts: Interrupts | None = None) -> int:
    """Run the command line, print any error, and return the exit code.

    interrupts: reports an interrupt even if a library has turned it into another error.
    """
    code = 0
    error: BaseException | None = None
    RUN.context = None
    ZONE.is_told = False
    try:
        result = memlog_command.main(prog_name="memlog", standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as usage:
        click.echo(usage.format_message(), err=True)
        code = 2
    except OutputError as caught:
        # `memlog query … | head -1` is not an error.
        error = None if caught.is_reader_gone and not STORED.count else caught
    except (Exception, KeyboardInterrupt) as caught:  # noqa: BLE001 - the boundary of the process
        error = caught
    if interrupts is not None and interrupts.has_come:
        error = KeyboardInterrupt()
    if error is not None and _is_hook(sys.argv[1:]):
        # Imported here: few commands are hooks.
        from memlog.cli.commands.hook import log_problem

        log_problem(f"{type(error).__name__}: {error}")
        return 0
    if error is not None:
        if interrupts is not None:
            interrupts.close_pipe()
        print_error(error, as_json=wants_errors_as_json(error, sys.argv[1:]))
        code = exit_code_of(error)
    STORED.print_repeated_warnings()
    return code


def _is_hook(words: list[str]) -> bool:
    """Whether these words call `memlog hook`, whose failures must not disturb an agent."""
    try:
        return words[forwarding.find_forwarded_command(words)] == "hook"
    except forwarding.NotForwarded:
        return False


def end_process(code: int) -> NoReturn:
    """Exit without Python's shutdown.

    The shutdown would wait for threads, such as a watch's, and take 3 ms to free memory that the system frees
    anyway.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, OutputError):
            if stream is not None:
                stream.flush()
    os._exit(code)


def _exit_after_interrupt() -> NoReturn:
    """Exit without waiting for an interrupted command. No acknowledgement is lost this way."""
    end_with_error(KeyboardInterrupt())


def end_with_error(error: BaseException) -> NoReturn:
    """Print an error, and exit at once. An OSError is a failure to write to stdout."""
    if isinstance(error, OSError):
        error = OutputError(error)
    print_error(error, as_json=wants_errors_as_json(error, sys.argv[1:]))
    os._exit(exit_code_of(error))

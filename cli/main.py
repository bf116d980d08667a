"""The command `memlog`: its options, its commands (each imported when called), its one error handler."""

import os
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import click

from memlog.cli.error_handler import EXIT_CODES_HELP, exit_code_of, print_error
from memlog.cli.interrupts import Interrupts
from memlog.cli.lazy_commands import LazyCommands
from memlog.cli.output import note, shows_colours
from memlog.cli.settings import Settings, misspelt_variables, setting_option
from memlog.cli.standard_options import HELP_NAMES, help_option, version_option
from memlog.cli.standard_streams import OutputError, use_own_streams
from memlog.cli.stored_events import STORED

_COMMANDS = {
    "append": "Append events to the log.",
    "ask": "Answer a question from what facts say.",
    "completion": "Print the script that completes commands in a shell.",
    "config": "Show the settings, and where each comes from.",
    "context": "Say what an agent should know now, within a budget of tokens.",
    "core": "Read and change the core memory.",
    "decay": "Let a day pass: fade memories by their categories.",
    "daily": "Record and list daily events.",
    "digest": "Print one number for all that the read model holds.",
    "docs": "Read files into the log as documents.",
    "doctor": "Say what is not as it should be, and what to do.",
    "embed": "Give passages that have no vector one.",
    "fact": "Set, show and remove facts.",
    "forget": "Take events away for ever.",
    "gate": "Say whether a text is worth a look into the memory.",
    "help": "Show the help of a command, or describe all for programs.",
    "init": "Make a store with its settings file.",
    "log": "Read the log itself.",
    "memory": "Save, list and change memories.",
    "project": "Bring the read model up to the log.",
    "projects": "List, show and remove projects.",
    "prune": "Archive memories that have faded.",
    "quarantine": "List the lines that could not be projected.",
    "query": "Search messages and memories.",
    "scrub": "Overwrite in the log what was forgotten.",
    "seal": "Close and seal every segment of the log.",
    "secrets": "List where the log holds keys.",
    "session": "Read a conversation.",
    "sessions": "List the current session of each chat.",
    "show": "Show the line of the log behind a hit.",
    "stats": "Count what stands in the store.",
    "status": "Say what stands in the store and what works here.",
    "summaries": "List what was written of conversations.",
    "verify": "Compare the read model with a replay of the log.",
    "watch": "Keep the read model up to the log, and documents up to files.",
    "window": "Show the newest messages of a chat's session.",
    "workspace": "Have the notes in an agent's folder found as memories.",
}


class _Commands(LazyCommands):
    """Imports `memlog.cli.<command>` when that command is called, so that `append` starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"memlog.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=_Commands,
    epilog=EXIT_CODES_HELP,
    context_settings={"help_option_names": HELP_NAMES},
    add_help_option=False,
)
@setting_option("store", "--store")
@setting_option("project", "--project")
@setting_option("model", "--model")
@version_option
@help_option
@click.pass_context
def memlog_command(ctx: click.Context) -> None:
    """A memory for AI agents that is a folder of JSONL files.

    `append` writes events to the log, `project` replays the log into a searchable read model, `query`
    searches it. The log is the only truth: the folders model/ and cache/ can always be deleted.
    """
    ctx.ensure_object(Settings)
    for variable, meant in misspelt_variables():
        note(f"{variable} is no setting: is {meant} meant?")
    ctx.color = shows_colours()


def main() -> NoReturn:
    """The program `memlog`, in a process of its own."""
    interrupts = Interrupts(_end_interrupted)
    before = set(threading.enumerate())
    use_own_streams()
    code = run(interrupts)
    _end(code, has_threads=not before.issuperset(threading.enumerate()))


def run(interrupts: Interrupts | None = None) -> int:
    """Run the command line and return its exit code. Errors are one line and a hint, never a traceback.

    interrupts: tells whether a library may have turned an interrupt into another error.
    """
    code = 0
    error: BaseException | None = None
    try:
        result = memlog_command.main(prog_name="memlog", standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as usage:
        click.echo(usage.format_message(), err=True)
        code = 2
    except OutputError as caught:
        # `memlog query … | head -1`: the reader has seen enough.
        error = None if caught.is_reader_gone and not STORED.count else caught
    except (Exception, KeyboardInterrupt) as caught:  # noqa: BLE001 - the edge: nothing goes past it
        error = caught
    if interrupts is not None and interrupts.has_come:
        error = KeyboardInterrupt()
    if error is not None:
        if interrupts is not None:
            interrupts.release()
        print_error(error, as_json=_asks_for_json())
        code = exit_code_of(error)
    STORED.print_repeated_warnings()
    return code


def _end(code: int, *, has_threads: bool) -> NoReturn:
    if has_threads:
        # A watch does not wait for the step that a thread of it is at. Python would wait for it, or crash.
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _end_interrupted() -> NoReturn:
    """What ends a command that does not end by itself; what is not flushed was not acknowledged."""
    error = KeyboardInterrupt()
    print_error(error, as_json=_asks_for_json())
    os._exit(exit_code_of(error))


def _asks_for_json() -> bool:
    # Imported here: most runs end without an error.
    from memlog.cli.answer import asks_for_json

    return asks_for_json(memlog_command, sys.argv[1:])

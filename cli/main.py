"""The command `memlog`: its options, its commands (each imported when called), its one error handler."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

import memlog
from memlog.cli.failures import EXIT_CODES_HELP, OUTPUT_CLOSED, exit_code_of, print_error
from memlog.cli.types import TEXT

_COMMANDS = {
    "append": "Append events to the log.",
    "core": "Read and change the core memory.",
    "project": "Bring the read model up to the log.",
    "quarantine": "List the lines that could not be projected.",
    "query": "Search messages and memories.",
    "show": "Show the line of the log behind a hit.",
    "status": "Say what stands in the store and what works here.",
    "verify": "Compare the read model with a replay of the log.",
    "window": "Show the newest messages of a chat's session.",
}


class Place:
    """Where a command works: the store's folder and the model's."""

    def __init__(self, store: Path | None, project: str, model: Path | None) -> None:
        self._store = store
        self._project = project
        self.model = model

    @property
    def store(self) -> Path:
        """--store, else the project's folder below the platform's user data."""
        if self._store is not None:
            return self._store
        # Imported here: most programs name their store.
        from platformdirs import user_data_path

        from memlog.eventlog.streams import encoded_name

        if self._project.strip(".") == "":
            raise click.BadParameter(f"{self._project!r} is no name", param_hint="--project")
        return user_data_path("memlog", appauthor=False) / encoded_name(self._project)


class _Commands(click.Group):
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


@click.group(cls=_Commands, epilog=EXIT_CODES_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    envvar="MEMLOG_STORE",
    show_envvar=True,
    help="The store's folder. Without it, the project's folder below the platform's user data.",
)
@click.option(
    "--project",
    type=TEXT,
    envvar="MEMLOG_PROJECT",
    show_envvar=True,
    default="default",
    show_default=True,
    help="The project whose store is used where no --store is given.",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    envvar="MEMLOG_MODEL",
    show_envvar=True,
    help="A folder with model.onnx and tokenizer.json, instead of the model that memlog ships with.",
)
@click.version_option(memlog.__version__, prog_name="memlog")
@click.pass_context
def memlog_command(ctx: click.Context, store: Path | None, project: str, model: Path | None) -> None:
    """A memory for AI agents that is a folder of JSONL files.

    `append` writes events to the log, `project` replays the log into a searchable read model, `query`
    searches it. The log is the only truth: the folders model/ and cache/ can always be deleted.
    """
    ctx.obj = Place(store, project, model)


def main() -> NoReturn:
    """Run the command line. Errors are one line and a hint on stderr, never a traceback."""
    as_json = "--json" in sys.argv
    try:
        result = memlog_command.main(prog_name="memlog", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except BrokenPipeError:
        # Whoever read the output has seen enough; what Python would still flush has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(OUTPUT_CLOSED)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the edge: nothing goes past it
        print_error(error, as_json=as_json)
        sys.exit(exit_code_of(error))
    sys.exit(result if isinstance(result, int) else 0)

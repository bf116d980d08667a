"""memlog completion."""

import click
from click.shell_completion import get_completion_class

from memlog.cli.main import memlog_command
from memlog.cli.output import json_option, print_json

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
def completion(shell: str, as_json: bool) -> None:
    """Print the script that completes memlog's commands, options and choices in a shell.

    For bash, put `eval "$(memlog completion bash)"` into ~/.bashrc; for zsh, the same with zsh into ~/.zshrc;
    for fish, `memlog completion fish > ~/.config/fish/completions/memlog.fish`.
    """
    script = _script(shell)
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script)


def _script(shell: str) -> str:
    found = get_completion_class(shell)
    if found is None:
        raise TypeError(f"click knows no shell {shell}")
    return found(memlog_command, {}, "memlog", "_MEMLOG_COMPLETE").source()

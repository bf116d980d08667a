"""memlog completion, help."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

import memlog
from memlog.cli.options.param_types import TEXT
from memlog.cli.options.settings import Command
from memlog.cli.output.answer import TextAnswer, printing_answer
from memlog.cli.output.output import asks_for_json
from memlog.cli.process.error_handler import EXIT_CODES
from memlog.cli.process.main import unknown_command_error

_SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command)
@click.argument("command", nargs=-1, type=TEXT)
@printing_answer
@click.pass_context
def help(ctx: click.Context, command: tuple[str, ...]) -> TextAnswer:
    """Show the help of COMMAND, or of memlog.

    With --json, describe the command and all its subcommands: arguments, options, exit codes.
    """
    found = _context_of_command(ctx.find_root(), command)
    if asks_for_json(ctx):
        description = {
            "version": memlog.__version__,
            "commands": [_describe_command(each) for each in _walk_commands(found)],
            "exit_codes": [{"code": code, "means": means} for code, means in EXIT_CODES.items()],
        }
        return TextAnswer(description)
    return TextAnswer(None, text=[found.get_help()])


def _context_of_command(root: click.Context, words: Sequence[str]) -> click.Context:
    context = root
    for word in words:
        below = dict(_subcommands(context))
        if word not in below:
            raise unknown_command_error(" ".join(words), below, context)
        context = below[word]
    return context


def _subcommands(context: click.Context) -> Iterator[tuple[str, click.Context]]:
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if command is not None:
                yield name, click.Context(command, info_name=name, parent=context)


def _walk_commands(context: click.Context) -> Iterator[click.Context]:
    yield context
    for _, each in _subcommands(context):
        yield from _walk_commands(each)


def _describe_command(context: click.Context) -> dict[str, Any]:
    parameters = context.command.get_params(context)
    return {
        "name": context.command_path,
        "help": context.command.help or "",
        "arguments": [
            {"name": each.human_readable_name} | _describe_value(each)
            for each in parameters
            if isinstance(each, click.Argument)
        ],
        "options": [_describe_option(each) for each in parameters if isinstance(each, click.Option)],
    }


def _describe_option(option: click.Option) -> dict[str, Any]:
    value = _describe_value(option)
    default = None if option.is_flag else option.to_info_dict()["default"]
    about = {"default": default, "env": option.envvar, "help": option.help}
    return {"names": [*option.opts, *option.secondary_opts], "is_flag": option.is_flag} | value | about


def _describe_value(parameter: click.Parameter) -> dict[str, Any]:
    kind = parameter.type.to_info_dict()
    return {
        "type": kind["name"],
        "choices": kind.get("choices"),
        "min": kind.get("min"),
        "max": kind.get("max"),
        "required": parameter.required,
        "multiple": parameter.multiple or parameter.nargs != 1,
    }


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(_SHELLS))
@printing_answer
@click.pass_context
def completion(ctx: click.Context, shell: str) -> TextAnswer:
    """Print a script that completes memlog's commands, options and choices in a shell.

    For bash, put `eval "$(memlog completion bash)"` into ~/.bashrc; for zsh, the same with zsh into ~/.zshrc;
    for fish, run `memlog completion fish > ~/.config/fish/completions/memlog.fish`.
    """
    # Imported here: `help` does not complete.
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is None:
        raise TypeError(f"click knows no shell {shell}")
    script = found(ctx.find_root().command, {}, "memlog", "_MEMLOG_COMPLETE").source()
    return TextAnswer({"shell": shell, "script": script}, text=[script])

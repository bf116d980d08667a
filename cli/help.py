"""memlog help: prints `--help` for people, and describes every command as JSON for programs."""

from collections.abc import Iterator, Sequence
from typing import Any

import click

import memlog
from memlog.cli.error_handler import EXIT_CODES
from memlog.cli.lazy_commands import no_such_command
from memlog.cli.output import json_option, print_json
from memlog.cli.param_types import TEXT


@click.command()
@click.argument("command", nargs=-1, type=TEXT)
@json_option
@click.pass_context
def help(ctx: click.Context, command: tuple[str, ...], as_json: bool) -> None:
    """Show the help of a COMMAND, or of memlog.

    With --json, describe it and every command below it: arguments, options, exit codes.
    """
    found = _context_of(ctx.find_root(), command)
    if as_json:
        print_json(_description(found))
    else:
        click.echo(found.get_help())


def _context_of(root: click.Context, words: Sequence[str]) -> click.Context:
    context = root
    for word in words:
        below = dict(_below(context))
        if word not in below:
            raise no_such_command(" ".join(words), below, context)
        context = below[word]
    return context


def _below(context: click.Context) -> Iterator[tuple[str, click.Context]]:
    """The commands of a group, by name."""
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if command is not None:
                yield name, click.Context(command, info_name=name, parent=context)


def _with_all_below(context: click.Context) -> Iterator[click.Context]:
    yield context
    for _, each in _below(context):
        yield from _with_all_below(each)


def _description(context: click.Context) -> dict[str, Any]:
    """Describe the command of `context` and all commands below it, for programs."""
    return {
        "version": memlog.__version__,
        "commands": [_command(each) for each in _with_all_below(context)],
        "exit_codes": [{"code": code, "means": means} for code, means in EXIT_CODES.items()],
    }


def _command(context: click.Context) -> dict[str, Any]:
    parameters = context.command.get_params(context)
    return {
        "name": context.command_path,
        "help": context.command.help or "",
        "arguments": [
            {"name": each.human_readable_name} | _value(each)
            for each in parameters
            if isinstance(each, click.Argument)
        ],
        "options": [_option(each) for each in parameters if isinstance(each, click.Option)],
    }


def _option(option: click.Option) -> dict[str, Any]:
    value = _value(option)
    default = None if option.is_flag else option.to_info_dict()["default"]
    about = {"default": default, "env": option.envvar, "help": option.help}
    return {"names": [*option.opts, *option.secondary_opts], "is_flag": option.is_flag} | value | about


def _value(parameter: click.Parameter) -> dict[str, Any]:
    kind = parameter.type.to_info_dict()
    return {
        "type": kind["name"],
        "choices": kind.get("choices"),
        "min": kind.get("min"),
        "max": kind.get("max"),
        "required": parameter.required,
        "multiple": parameter.multiple or parameter.nargs != 1,
    }

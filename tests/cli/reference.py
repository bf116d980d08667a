"""docs/cli.md: the help of every command, as it prints it."""

from functools import cache

from click.testing import CliRunner

from memlog.cli.process.main import memlog_command
from tests.support import command_tree
from tests.support.command_tree import COMMANDS, called
from tests.support.places import ROOT

PAGE = ROOT / "docs/cli.md"
WIDTH = 100

_HEAD = """\
# The commands

What `--help` prints, of every command: made by `make snapshots`, checked by tests/cli/test_help.py.
What the commands print for programs is in [json-output.md](json-output.md).
"""


@cache
def help_of(path: command_tree.Path) -> str:
    """What `memlog … --help` prints."""
    done = CliRunner().invoke(
        memlog_command, [*path, "--help"], prog_name="memlog", terminal_width=WIDTH, color=False
    )
    assert done.exit_code == 0
    return done.output


def section(path: command_tree.Path) -> str:
    """What docs/cli.md says of one command."""
    return f"\n## {called(path)}\n\n```\n{help_of(path)}```\n"


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(section(path) for path in COMMANDS)

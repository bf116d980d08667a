"""The program `memlog`. Not for import elsewhere: it changes how its process collects garbage."""

import gc

# Nothing that is imported becomes garbage. To look for it took 7 % of an append (60 pairs of processes).
gc.disable()

from typing import NoReturn  # noqa: E402

from memlog.cli.main import main as run_command  # noqa: E402

_MANY = 10_000
"""New objects between two collections; Python has 700, for programs that keep less."""


def main() -> NoReturn:
    """Run the command line, and exit."""
    gc.freeze()
    gc.set_threshold(_MANY)
    gc.enable()
    run_command()

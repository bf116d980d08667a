"""The entry point. Do not import it elsewhere: it configures the garbage collector for the process."""

import gc

# Imports create no garbage, and collecting it took 7 % of an append (60 pairs of processes).
gc.disable()

from typing import NoReturn  # noqa: E402

from memlog.cli.process.main import end_process  # noqa: E402
from memlog.cli.process.main import main as run_command  # noqa: E402

_MANY = 10_000
"""How many new objects trigger a collection. Python's 700 suits programs with fewer objects."""


def main() -> NoReturn:
    """Run the command line and exit."""
    gc.freeze()
    gc.set_threshold(_MANY)
    gc.enable()
    try:
        run_command()
    except SystemExit as ended:
        end_process(int(ended.code or 0))

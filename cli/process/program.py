"""The entry point. Do not import it elsewhere: it configures the garbage collector for the process."""

import gc
import os
import sys

from memlog.cli.process.forwarding import forward_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# Imports create no garbage, and collecting it took 7 % of an append (60 pairs of processes).
gc.disable()

_MANY = 10_000
"""The number of new objects that triggers a garbage collection. Python's default, 700, suits programs with
fewer objects."""


def main() -> "NoReturn":
    """Run the command line, on the server if possible, and exit."""
    failure: BaseException | None = None
    args = sys.argv[1:]
    try:
        if (code := forward_command(args)) is not None:
            os._exit(code)
    except (KeyboardInterrupt, OSError) as error:
        failure = error
    sys.argv[1:] = args
    # Imported here: a forwarded command needs none of it.
    from memlog.cli.process.main import end_process, end_with_error
    from memlog.cli.process.main import main as run_command

    gc.freeze()
    gc.set_threshold(_MANY)
    gc.enable()
    if failure is not None:
        end_with_error(failure)
    try:
        run_command()
    except SystemExit as ended:
        end_process(int(ended.code or 0))

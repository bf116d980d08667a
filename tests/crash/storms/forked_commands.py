"""`memlog …` in a forked child of a process that has imported it: a command that costs no start-up.

What it does from then on is what the installed command does: the same `main`, with a pid, stdin, stdout and
stderr of its own, killed by the same signal. The process that forks must have no thread.
"""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

from memlog.cli.process.main import main

_COMMANDS = ("append", "maintenance", "query")
_MANY_FILES = 1024
_TICK = 0.002


def load_commands() -> None:
    """So that no child pays for it; and no setting of who runs the tests reaches one."""
    for command in _COMMANDS:
        import_module(f"memlog.cli.commands.{command}")
    for name in [name for name in os.environ if name.startswith("MEMLOG_")]:
        del os.environ[name]


class ForkedCommand:
    """As much of `subprocess.Popen` as the storms use."""

    def __init__(self, arguments: Sequence[str | Path], stdin: int, stdout: int, stderr: int) -> None:
        """Run memlog; `arguments[0]` is its name, each of the others a file descriptor for it."""
        self.returncode: int | None = None
        sys.stdout.flush()
        self.pid = os.fork()  # noqa: TID251 - has no threads
        if self.pid == 0:
            _run([str(argument) for argument in arguments], (stdin, stdout, stderr))

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float) -> int:
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("memlog", timeout)
            time.sleep(_TICK)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def close_what_the_parent_has(*but: int) -> None:
    """Of files: what a child kept open would never come to its end for those who read it."""
    # No object of the parent is to be finalised here: its files and folders are not the child's.
    gc.disable()
    for below, above in pairwise([2, *sorted(but), _MANY_FILES]):
        os.closerange(below + 1, above)


def _run(arguments: list[str], files: tuple[int, int, int]) -> NoReturn:
    code = 70
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
        close_what_the_parent_has()
        sys.argv = arguments
        main()
    except SystemExit as ended:
        sys.stdout.flush()
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        os._exit(code)

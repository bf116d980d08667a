"""Searches texts with a regular expression that memlog did not write.

On some texts a pattern such as `(a+)+$` takes for ever, and `re` lets no other thread run meanwhile. So a
process of its own searches, which the system ends where one event takes more than `SECONDS` of CPU time. It
runs this module as a script, without the rest of memlog.
"""

import marshal
import math
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

SECONDS = 5
"""Of CPU time for one event. The largest, 16 MiB, is searched in 0.2 s by patterns without nested repeats."""


class BadPattern(Exception):
    """Why a pattern cannot be used: it is no regular expression, or it takes too long."""


@contextmanager
def searching(pattern: str) -> Iterator[Callable[[Iterable[str]], bool]]:
    """A function that answers whether `pattern` is found in one of some texts.

    Raises:
        BadPattern: it cannot be used.
    """
    # -I -S: the script needs no site packages, and must not find a module in the working directory.
    command = [sys.executable, "-I", "-S", __file__, str(SECONDS)]
    with subprocess.Popen(  # noqa: S603 - our own interpreter and this file
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        requests, answers = child.stdin, child.stdout

        def answer_to(request: str | list[str]) -> object:
            try:
                marshal.dump(request, requests)
                requests.flush()
                return marshal.load(answers)  # noqa: S302 - our own process wrote it
            except (EOFError, BrokenPipeError):
                raise BadPattern(f"it takes more than {SECONDS} s on one event") from None

        try:
            error = answer_to(pattern)
            if isinstance(error, str):
                raise BadPattern(error)
            yield lambda texts: answer_to(list(texts)) is True
        finally:
            child.kill()


def _answer_requests(seconds: int) -> None:
    """Read the pattern, then the texts of an event at a time, and answer each."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    # The parent tells the person what happened.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def answer(value: str | bool | None) -> None:
        marshal.dump(value, answers)
        answers.flush()

    _limit_time(seconds)
    try:
        search = re.compile(marshal.load(requests)).search  # noqa: S302 - our own process wrote it
    except (re.error, OverflowError, RecursionError) as error:
        answer(str(error))
        return
    answer(None)
    while True:
        try:
            texts = marshal.load(requests)  # noqa: S302
        except EOFError:
            return
        _limit_time(seconds)
        answer(any(map(search, texts)))


def _limit_time(seconds: int) -> None:
    """Have the system end this process after so many more seconds of CPU time."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    limit = math.ceil(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit if most < 0 else min(limit, most), most))


if __name__ == "__main__":
    _answer_requests(int(sys.argv[1]))

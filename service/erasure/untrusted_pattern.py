"""Searches texts with a regular expression that memlog did not write.

Some patterns, such as `(a+)+$`, take exponential time on some texts, and `re` lets no other thread run
meanwhile. So a process with limits searches.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager

from memlog.service.bounded_process.client import Child
from memlog.service.bounded_process.protocol import (
    CLOCK_SHARE,
    MEMORY,
    Failed,
    ReaderExited,
    SearchTexts,
    TooLate,
    Verdicts,
    framed,
)

SECONDS = 5
"""Of processor time for one event. The largest, 16 MiB, takes 0.2 s with patterns without nested repeats."""


class BadPattern(Exception):
    """Why a pattern cannot be used: it is no regular expression, or it takes too long."""


@contextmanager
def searching(pattern: str) -> Iterator[Callable[[Iterable[str]], bool]]:
    """A function that answers whether `pattern` matches within one of some texts.

    Raises:
        BadPattern: it cannot be used.
    """
    with closing(Child(MEMORY)) as child:

        def matches(texts: Iterable[str]) -> bool:
            request = framed(SearchTexts(pattern, [*texts], SECONDS))
            try:
                reply, _ = child.ask(request, SECONDS * CLOCK_SHARE, lambda: None)
            except (ReaderExited, TooLate):
                raise BadPattern(f"it takes more than {SECONDS} s on one event") from None
            if isinstance(reply, Failed):
                raise BadPattern(reply.detail or "it takes too much memory")
            return isinstance(reply, Verdicts) and reply.verdicts == [True]

        matches([])  # compiles it
        yield matches

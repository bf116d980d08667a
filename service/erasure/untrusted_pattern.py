"""Searches texts with a regular expression that memlog did not write.

Some patterns, such as `(a+)+$`, take exponential time on some texts, and `re` lets no other thread run
meanwhile. So a process with limits searches.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager

from memlog.service.bounded_process.client import BoundedProcess
from memlog.service.bounded_process.protocol import SearchTexts, Verdicts

SECONDS = 5
"""Of processor time for one event. The largest, 16 MiB, takes 0.2 s with patterns without nested repeats."""


@contextmanager
def searching(pattern: str) -> Iterator[Callable[[Iterable[str]], bool]]:
    """A function that answers whether `pattern` matches within one of some texts.

    Raises:
        RequestFailed: it is no regular expression, or takes too much time or memory.
    """
    with closing(BoundedProcess(on_wait=lambda: None)) as process:

        def matches(texts: Iterable[str]) -> bool:
            found, _ = process.ask(SearchTexts(pattern, [*texts], SECONDS), Verdicts)
            return found.verdicts == [True]

        matches([])  # compiles it
        yield matches

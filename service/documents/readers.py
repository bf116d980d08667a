"""Reads untrusted files with libraries, in a bounded process.

A regular expression, or a parser in C, holds the interpreter's lock, and no exception ends it: a process can
be killed. It serves many files, since it starts in the time that thousands of short ones take.
"""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from memlog.eventlog.forks import SplitByFork
from memlog.service.bounded_process.protocol import Extract, Match, ReaderFailed, TextReply, Verdicts

if TYPE_CHECKING:
    from memlog.service.bounded_process.client import BoundedProcess

_RULES_SECONDS = 2
"""Measured: a batch of paths takes 0.1 s with 1,000 rules."""

_BATCH = 500


class Extracted(NamedTuple):
    """The text of a file, and the line that the library printed about it, or an empty one."""

    text: str
    warning: str


class Readers(SplitByFork):
    """The reader process of a store, started when it is first needed. May be used from several threads.

    seconds: of the processor that one file may take.
    on_wait: called every 0.1 s or sooner during a request; an exception of it ends the request.
    """

    def __init__(self, seconds: int, *, on_wait: Callable[[], None]) -> None:
        super().__init__()
        self.seconds = seconds
        self._on_wait = on_wait
        self.after_fork_in_child()
        self._refused: dict[bytes, str] = {}

    def after_fork_in_child(self) -> None:
        """Leave the process to the parent, whose requests it answers."""
        self._lock = threading.Lock()
        self._made: BoundedProcess | None = None

    def text_of(self, data: bytes, filetype: str) -> Extracted:
        """The text of the bytes of a file; HTML is UTF-8.

        Raises:
            ReaderFailed: the library is not installed, cannot read it or crashes; or it takes too much.
            OSError: the process cannot be started.
        """
        with self._lock:
            reply, warning = self._process().ask(Extract(data, filetype, self.seconds), TextReply)
        return Extracted(reply.text, warning)

    def verdicts(self, rules: bytes, paths: Sequence[bytes]) -> list[bool | None]:
        """For each path whether a .gitignore excludes it; None if no rule matches.

        Raises:
            ReaderFailed: matching takes too long, or the rules are invalid. They are not tried again.
            OSError: the process cannot be started.
        """
        with self._lock:
            if rules in self._refused:
                raise ReaderFailed("limit", self._refused[rules])
            try:
                batches = [paths[at : at + _BATCH] for at in range(0, len(paths), _BATCH)]
                return [verdict for batch in batches for verdict in self._matched(rules, batch)]
            except ReaderFailed as failed:
                self._refused[rules] = str(failed)
                raise

    def close(self) -> None:
        """End the process. It is started again when it is needed."""
        with self._lock:
            if self._made is not None:
                self._made.close()

    def _matched(self, rules: bytes, paths: Sequence[bytes]) -> list[bool | None]:
        reply, _ = self._process().ask(Match(rules, list(paths), _RULES_SECONDS), Verdicts)
        if len(reply.verdicts) != len(paths):
            raise ReaderFailed("damaged", "its reader gave too few verdicts")
        return reply.verdicts

    def _process(self) -> "BoundedProcess":
        if self._made is None:
            # Imported here: most folders need none, and `subprocess` takes time to import.
            from memlog.service.bounded_process.client import BoundedProcess

            self._made = BoundedProcess(self._on_wait)
        return self._made

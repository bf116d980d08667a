"""Reads untrusted files with libraries, in a bounded process.

A regular expression, or a parser in C, holds the interpreter's lock, and no exception ends it: a process can
be killed. It serves many files, since it starts in the time that thousands of short ones take.
"""

import errno
import signal
import threading
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from memlog.service.bounded_process.protocol import (
    CLOCK_SHARE,
    MEMORY,
    Extract,
    Failed,
    Match,
    ReaderExited,
    Reply,
    TextReply,
    TooLate,
    Verdicts,
    framed,
)
from memlog.service.documents.extracts import Damaged, NoReader

if TYPE_CHECKING:
    from memlog.service.bounded_process.client import Child

_RULES_SECONDS = 2
"""Measured: a batch of paths takes 0.1 s with 1,000 rules."""

_BATCH = 500
_WARNING = 200


class PastLimit(Exception):
    """A file exceeded a limit, which the message names."""


class Refused(Exception):
    """The rules of a .gitignore cannot be applied; the message says why."""


class Extracted(NamedTuple):
    """The text of a file, and the line that the library printed about it, or an empty one."""

    text: str
    warning: str


class Readers:
    """The reader process of a store, started when it is first needed. May be used from several threads.

    seconds: of the processor that one file may take.
    on_wait: called every 0.1 s or sooner during a request; an exception of it ends the request.
    """

    def __init__(self, seconds: int, *, on_wait: Callable[[], None]) -> None:
        self.seconds = seconds
        self._on_wait = on_wait
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._refused: dict[bytes, str] = {}

    def text_of(self, data: bytes, filetype: str) -> Extracted:
        """The text of the bytes of a file; HTML is UTF-8.

        Raises:
            NoReader: the library is not installed.
            Damaged: the library cannot read it, or crashes.
            PastLimit: it takes too long, or too much memory, or its text is too long.
            OSError: the process cannot be started.
        """
        request = framed(Extract(data, filetype, self.seconds))
        with self._lock:
            reply, printed = self._asked(lambda _: request, self.seconds)
        match reply:
            case TextReply(text):
                return Extracted(text, _one_line(printed))
            case Failed(why="no_reader"):
                raise NoReader(filetype)
            case Failed(why="too_large"):
                raise PastLimit("its text is too long for an event")
            case Failed(detail=detail):
                raise Damaged(detail)
        raise Damaged("its reader gave no text")

    def verdicts(self, rules: bytes, paths: Sequence[bytes]) -> list[bool | None]:
        """For each path whether a .gitignore excludes it; None if no rule matches.

        Raises:
            Refused: matching takes too long, or the rules are invalid. They are not tried again.
            OSError: the process cannot be started.
        """
        key = sha256(rules).digest()
        with self._lock:
            if key in self._refused:
                raise Refused(self._refused[key])
            try:
                batches = [paths[at : at + _BATCH] for at in range(0, len(paths), _BATCH)]
                return [verdict for batch in batches for verdict in self._matched(key, rules, batch)]
            except (PastLimit, Damaged) as error:
                self._refused[key] = str(error)
                raise Refused(str(error)) from error

    def close(self) -> None:
        """End the process. It is started again when it is needed."""
        with self._lock:
            self._end_child()

    def _matched(self, key: bytes, rules: bytes, paths: Sequence[bytes]) -> list[bool | None]:
        def request(child: "Child") -> bytearray:
            said = None if key in child.known_rules else rules
            child.known_rules.add(key)
            return framed(Match(key, said, list(paths), _RULES_SECONDS))

        reply, _ = self._asked(request, _RULES_SECONDS)
        if isinstance(reply, Verdicts) and len(reply.verdicts) == len(paths):
            return reply.verdicts
        raise Damaged(reply.detail if isinstance(reply, Failed) else "its reader gave no verdicts")

    def _asked(self, request: Callable[["Child"], bytearray], seconds: int) -> tuple[Reply, bytes]:
        """The reply to a request, and what was printed.

        Raises:
            PastLimit, Damaged, OSError: as `text_of`.
        """
        try:
            return self._tried(request, seconds)
        except TooLate as error:
            raise PastLimit(f"it takes more than {seconds} seconds") from error
        except _OutOfMemory as error:
            raise PastLimit(f"it takes more than {MEMORY // 1024**2} MiB of memory") from error
        except ReaderExited as ended:
            if ended.by == signal.SIGXCPU:
                raise PastLimit(f"it takes more than {seconds} seconds") from ended
            if ended.by is None:
                raise OSError(errno.ECHILD, f"its reader ended: {_last_line(ended.printed)}") from ended
            raise Damaged(f"its reader was ended by {signal.Signals(ended.by).name}") from ended

    def _tried(self, request: Callable[["Child"], bytearray], seconds: int) -> tuple[Reply, bytes]:
        """As `_asked`. A used process may lack memory, so a failure in it is tried again in a new one."""
        is_used = self._child is not None and self._child.is_alive() and self._child.answered > 0
        try:
            return self._once(request, seconds)
        except (ReaderExited, _OutOfMemory) as error:
            if not is_used or (isinstance(error, ReaderExited) and error.by == signal.SIGXCPU):
                raise
        return self._once(request, seconds)

    def _once(self, request: Callable[["Child"], bytearray], seconds: int) -> tuple[Reply, bytes]:
        child = self._living_child()
        reply, printed = child.ask(request(child), seconds * CLOCK_SHARE, self._on_wait)
        if isinstance(reply, Failed) and reply.why == "memory":
            self._end_child()
            raise _OutOfMemory
        return reply, printed

    def _living_child(self) -> "Child":
        if self._child is None or not self._child.is_alive():
            # Imported here: most folders need none, and `subprocess` takes time to import.
            from memlog.service.bounded_process.client import Child

            self._end_child()
            self._child = Child(MEMORY)
        return self._child

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.close()
        self._child = None


class _OutOfMemory(Exception):
    """The library asked for more memory than the process may take."""


def _one_line(printed: bytes) -> str:
    """The first line that a library printed, cut, with control characters escaped."""
    lines = [" ".join(line.split()) for line in printed.decode(errors="replace").split("\n")]
    first, *more = [line for line in lines if line] or [""]
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in first[:_WARNING])
    return f"{shown} (and {len(more)} more)" if more else shown


def _last_line(printed: bytes) -> str:
    return _one_line(printed.rstrip().rpartition(b"\n")[2])

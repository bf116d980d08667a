"""Streams of memlog's own: a failure of stdout raises `OutputError`, one of stderr is ignored."""

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class OutputError(Exception):
    """Stdout cannot be written.

    It is no OSError: click ends the process for some of these, and the rest are about the store.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause.strerror or str(cause))
        self.is_reader_gone = cause.errno == errno.EPIPE


@contextmanager
def reader_may_go() -> Iterator[None]:
    """Ignore a reader that goes: the exit code gives the verdict, too, and must be right."""
    try:
        yield
    except OutputError as error:
        if not error.is_reader_gone:
            raise


def use_own_streams() -> None:
    """Replace sys.stdout and sys.stderr, unless a caller in this process has replaced them."""
    try:
        sys.stdout = _text(_stdout(), sys.stdout)
        # None if stderr is closed: Python and click then write nothing.
        if sys.stderr is not None:
            sys.stderr = _text(_Output(_file(sys.stderr.fileno()), is_needed=False), sys.stderr)
    except io.UnsupportedOperation:
        return


class _Output(io.BufferedWriter):
    """Drops all output after the first failure, buffered output too.

    Not the file below it: an interrupt between the system's write and its return would leave written bytes
    in the buffer, to be written again.

    is_needed: whether to raise the first failure.
    """

    def __init__(self, file: io.FileIO, *, is_needed: bool, failure: OSError | None = None) -> None:
        super().__init__(file)
        self._is_needed = is_needed
        self._has_failed = False
        self._failure = failure

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any buffer
        self._try(lambda: super(_Output, self).write(data))
        return memoryview(data).nbytes

    def flush(self) -> None:
        self._try(super().flush)

    def _try(self, work: Callable[[], object]) -> None:
        if self._has_failed:
            return
        try:
            if self._failure is not None:
                raise self._failure
            work()
        except OSError as error:
            self._has_failed = True
            if self._is_needed:
                raise OutputError(error) from error


def _stdout() -> _Output:
    if sys.stdout is not None:
        return _Output(_file(sys.stdout.fileno()), is_needed=True)
    # Stdout is closed. Occupy its descriptor, or the next opened file would get it.
    closed = OSError(errno.EBADF, os.strerror(errno.EBADF))
    return _Output(io.FileIO(os.devnull, "w"), is_needed=True, failure=closed)


def _file(fd: int) -> io.FileIO:
    return io.FileIO(fd, "w", closefd=False)


def _text(output: _Output, before: Any) -> io.TextIOWrapper:  # noqa: ANN401 - a text stream, or None
    """Return a text stream over `output`, as the stream `before` was."""
    return io.TextIOWrapper(
        output,
        encoding=getattr(before, "encoding", "utf-8"),
        # No locale keeps an answer back: what its encoding lacks is printed as an escape.
        errors="backslashreplace",
        line_buffering=getattr(before, "line_buffering", False),
    )

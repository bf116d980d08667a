"""Starts a bounded process, and sends requests to it; see `program`."""

import errno
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import IO, NoReturn, TypeVar

import msgspec

from memlog.query.foreign_tables import TablePage
from memlog.service.bounded_process.protocol import (
    CLOCK_SHARE,
    LENGTH_BYTES,
    MAX_REPLY,
    MEMORY,
    Failed,
    ReaderFailed,
    Request,
    TextReply,
    VectorsReply,
    Verdicts,
    framed,
    length_of,
)

_PROGRAM = "memlog.service.bounded_process.program"
_BLOCK = 64 * 1024
_PRINTED_BYTES = 4096
_LINE_LENGTH = 200
_TICK = 0.1
"""Seconds between two calls of `on_wait`: a caller that has to stop does so within a second."""

Answer = TypeVar("Answer", TextReply, Verdicts, TablePage, VectorsReply)


class BoundedProcess:
    """A process with limits that answers one request after the other; it starts with the first one.

    on_wait: called every 0.1 s or sooner during a request; an exception of it ends the process.
    file_bytes: that a file may have to which it writes; it is given none to write to.
    """

    def __init__(self, on_wait: Callable[[], None], *, file_bytes: int = 0) -> None:
        self._on_wait, self._file_bytes = on_wait, file_bytes
        self._child: subprocess.Popen[bytes] | None = None
        self._has_answered = False

    def ask(self, request: Request, kind: type[Answer]) -> tuple[Answer, str]:
        """The answer to a request, and the line that the library printed meanwhile, or an empty one.

        Raises:
            ReaderFailed: it takes too much, or the library is missing, fails or crashes.
            OSError: the process cannot be started, or has ended itself.
        """
        is_used = self._has_answered and self._is_alive()
        try:
            return self._tried(request, kind)
        except (ReaderFailed, OSError) as error:
            # A used process may lack memory: a new one tries again.
            if not is_used or (isinstance(error, ReaderFailed) and error.is_final):
                raise
        return self._tried(request, kind)

    def close(self) -> None:
        """End the process. It starts again with the next request."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in _pipes(self._child):
                pipe.close()
        self._child, self._has_answered = None, False

    def _tried(self, request: Request, kind: type[Answer]) -> tuple[Answer, str]:
        exchange = _Exchange(self._living_child(), request)
        try:
            data = exchange.run(self._on_wait)
            reply: Answer | Failed = msgspec.msgpack.decode(data, type=kind | Failed)
        except msgspec.DecodeError as error:
            self.close()
            raise ReaderFailed("damaged", "its reader gave no answer") from error
        except BaseException:
            self.close()
            raise
        self._has_answered = True
        if not isinstance(reply, Failed):
            return reply, _one_line(exchange.printed)
        if not reply.is_final:
            self.close()
        raise ReaderFailed(reply.why, reply.detail, is_final=reply.is_final)

    def _living_child(self) -> "subprocess.Popen[bytes]":
        if self._child is None or not self._is_alive():
            self.close()
            # -P: of the current folder, which may be a stranger's, no module is imported.
            self._child = subprocess.Popen(  # noqa: S603 - no argument comes from outside
                [sys.executable, "-P", "-m", _PROGRAM, str(MEMORY), str(self._file_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
            for pipe in _pipes(self._child):
                os.set_blocking(pipe.fileno(), False)
        return self._child

    def _is_alive(self) -> bool:
        return self._child is not None and self._child.poll() is None


class _Exchange:
    """One request and its reply, through pipes none of which is waited for alone.

    printed: the first bytes of stderr.
    """

    def __init__(self, child: "subprocess.Popen[bytes]", request: Request) -> None:
        self._child = child
        self._seconds = request.seconds
        self._in, self._out, self._err = (pipe.fileno() for pipe in _pipes(child))
        self._rest = memoryview(framed(request))
        self._received = bytearray()
        self._selector = selectors.DefaultSelector()
        self.printed = b""
        self._reply: bytes | None = None
        self._is_done = False

    def run(self, on_wait: Callable[[], None]) -> bytes:
        """The reply.

        Raises:
            ReaderFailed: there is no reply in time, or the process crashes.
            OSError: the process has ended itself, or its reply is too long.
        """
        deadline = time.monotonic() + self._seconds * CLOCK_SHARE
        with self._selector as selector:
            selector.register(self._in, selectors.EVENT_WRITE, self._send)
            selector.register(self._out, selectors.EVENT_READ, self._receive)
            selector.register(self._err, selectors.EVENT_READ, self._keep_printed)
            while not self._is_done:
                if time.monotonic() > deadline:
                    raise _too_slow(self._seconds)
                # Text that was printed before a reply is read before the reply.
                for key, _ in sorted(selector.select(_TICK), key=lambda each: each[0].fd != self._err):
                    key.data()
                on_wait()
        if self._reply is None:
            self._fail()
        return self._reply

    def _fail(self) -> NoReturn:
        """Raise the error for a process that has closed its stdout."""
        try:
            status = self._child.wait(_TICK)
        except subprocess.TimeoutExpired:
            status = 0
        if status == -signal.SIGXCPU:
            raise _too_slow(self._seconds)
        if status < 0:
            name = signal.Signals(-status).name
            raise ReaderFailed("damaged", f"its reader was ended by {name}", is_final=False)
        last_line = self.printed.rstrip().rpartition(b"\n")[2]
        raise OSError(errno.ECHILD, f"its reader ended: {_one_line(last_line)}")

    def _send(self) -> None:
        try:
            self._rest = self._rest[os.write(self._in, self._rest) :]
        except BrokenPipeError:
            # The process has ended; `_receive` sees that.
            self._rest = self._rest[:0]
        if not self._rest:
            self._selector.unregister(self._in)

    def _receive(self) -> None:
        data = os.read(self._out, _BLOCK)
        self._received += data
        length = length_of(bytes(self._received[:LENGTH_BYTES]))
        is_whole = len(self._received) == LENGTH_BYTES + length
        if is_whole:
            self._reply = bytes(self._received[LENGTH_BYTES:])
        self._is_done = is_whole or not data or length > MAX_REPLY

    def _keep_printed(self) -> None:
        data = os.read(self._err, _BLOCK)
        if not data:
            self._selector.unregister(self._err)
        self.printed += data[: _PRINTED_BYTES - len(self.printed)]


def _pipes(child: "subprocess.Popen[bytes]") -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None  # noqa: PT018
    return child.stdin, child.stdout, child.stderr


def _too_slow(seconds: int) -> ReaderFailed:
    return ReaderFailed("limit", f"it takes more than {seconds} seconds")


def _one_line(printed: bytes) -> str:
    """The first line that a library printed, cut, with control characters escaped."""
    lines = [" ".join(line.split()) for line in printed.decode(errors="replace").split("\n")]
    first, *more = [line for line in lines if line] or [""]
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in first[:_LINE_LENGTH])
    return f"{shown} (and {len(more)} more)" if more else shown

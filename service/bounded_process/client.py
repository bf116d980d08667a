"""Starts a bounded process, and sends requests to it; see `program`."""

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable
from typing import IO

import msgspec

from memlog.service.bounded_process.protocol import (
    LENGTH_BYTES,
    MAX_REPLY,
    ReaderExited,
    Reply,
    TooLate,
    length_of,
)

_PROGRAM = "memlog.service.bounded_process.program"
_BLOCK = 64 * 1024
_PRINTED_BYTES = 4096
_TICK = 0.1
"""Seconds between two calls of `on_wait`: a caller that is to stop does so within a second."""


class Child:
    """A process that answers one request after the other.

    memory: bytes that it may take.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, memory: int) -> None:
        # -P: of the current folder, which may be a stranger's, no module is imported.
        self._process = subprocess.Popen(  # noqa: S603 - no argument comes from outside
            [sys.executable, "-P", "-m", _PROGRAM, str(memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self._in, self._out, self._err = (_pipe(each) for each in self._pipes())
        self._decoder: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)
        self.answered = 0
        self.known_rules: set[bytes] = set()

    def is_alive(self) -> bool:
        """Whether it takes requests."""
        return self._process.poll() is None

    def ask(self, request: bytearray, seconds: float, on_wait: Callable[[], None]) -> tuple[Reply, bytes]:
        """The reply to a request, and the first bytes printed meanwhile. Without a reply, end the process.

        on_wait: called every 0.1 s or sooner; an exception of it ends the process.

        Raises:
            ReaderExited: a limit of the kernel ended the process, or a crash. TooLate: `seconds` have passed.
        """
        exchange = _Exchange(self._in, self._out, self._err, request)
        try:
            reply = self._decoder.decode(self._replied(exchange, seconds, on_wait))
        except BaseException:
            self.close()
            raise
        self.answered += 1
        return reply, exchange.printed

    def _replied(self, exchange: "_Exchange", seconds: float, on_wait: Callable[[], None]) -> bytes:
        deadline = time.monotonic() + seconds
        with exchange:
            while not exchange.is_done:
                if time.monotonic() > deadline:
                    raise TooLate
                exchange.go_on(_TICK)
                on_wait()
        if exchange.reply is None:
            raise ReaderExited(self._signal(), exchange.printed)
        return exchange.reply

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for pipe in self._pipes():
            pipe.close()

    def _signal(self) -> int | None:
        """The signal that ended a process whose stdout is closed."""
        try:
            status = self._process.wait(_TICK)
        except subprocess.TimeoutExpired:
            return None
        return -status if status < 0 else None

    def _pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        process = self._process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None  # noqa: PT018
        return process.stdin, process.stdout, process.stderr


class _Exchange:
    """One request and its reply, through pipes none of which is waited for alone.

    reply: None until it is complete. printed: the first bytes of stderr.
    """

    def __init__(self, into: int, out: int, err: int, request: bytearray) -> None:
        self._in, self._out, self._err = into, out, err
        self._rest = memoryview(request)
        self._received = bytearray()
        self._selector = selectors.DefaultSelector()
        self.reply: bytes | None = None
        self.printed = b""
        self.is_done = False

    def __enter__(self) -> "_Exchange":
        self._selector.register(self._in, selectors.EVENT_WRITE, self._send)
        self._selector.register(self._out, selectors.EVENT_READ, self._receive)
        self._selector.register(self._err, selectors.EVENT_READ, self._keep_printed)
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    def go_on(self, seconds: float) -> None:
        """Wait until a pipe is ready, and do what can be done."""
        # Text that was printed before a reply is read before the reply.
        ready = sorted(self._selector.select(seconds), key=lambda each: each[0].fd != self._err)
        for key, _ in ready:
            key.data()

    def _send(self) -> None:
        try:
            self._rest = self._rest[os.write(self._in, self._rest) :]
        except BrokenPipeError:
            # Its end is seen where its reply is waited for.
            self._rest = self._rest[:0]
        if not self._rest:
            self._selector.unregister(self._in)

    def _receive(self) -> None:
        data = os.read(self._out, _BLOCK)
        self._received += data
        length = length_of(bytes(self._received[:LENGTH_BYTES]))
        is_whole = len(self._received) == LENGTH_BYTES + length
        if is_whole:
            self.reply = bytes(self._received[LENGTH_BYTES:])
        self.is_done = is_whole or not data or length > MAX_REPLY

    def _keep_printed(self) -> None:
        data = os.read(self._err, _BLOCK)
        if not data:
            self._selector.unregister(self._err)
        self.printed += data[: _PRINTED_BYTES - len(self.printed)]


def _pipe(pipe: IO[bytes]) -> int:
    os.set_blocking(pipe.fileno(), False)
    return pipe.fileno()

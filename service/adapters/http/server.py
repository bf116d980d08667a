"""Runs the application: sockets, signals, and timeouts for incoming requests."""

import asyncio
import select
import signal
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from types import FrameType
from typing import Any, ClassVar

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from memlog.service.adapters.local_sockets import is_process_of_user
from memlog.service.adapters.problems import Problem, ProblemAnswer

_HEADER_SECONDS = 10
_LAST_SECONDS = 3  # for running requests at shutdown; with the watches, the server ends within 5 s

_TICK_SECONDS = 1.0  # for the header `date`

_HEAD_BYTES = 64 * 1024
_WAITING = 256
"""How many connections may wait for a request head. Beyond that, the one that has waited longest is closed,
so that idle connections keep nobody out. Unix sockets and TCP are counted separately."""

_CANDIDATES = 16
"""How many of the longest-waiting connections are examined: the first that has sent nothing is closed, since
others are about to be read."""

_MAX_PIPELINED = 16
"""How many requests a client may pipeline before it reads the answers."""


class _Protocol(HttpToolsProtocol):
    """HTTP with a timeout for request heads and a limit on waiting connections."""

    _head: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _waiting: ClassVar[defaultdict[int, dict["_Protocol", None]]] = defaultdict(dict)
    """The waiting connections by socket family, in the order in which they began to wait."""
    _family = 0

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401
        connected = transport.get_extra_info("socket")
        self._family = connected.family
        if connected.family == socket.AF_UNIX and not is_process_of_user(connected):
            transport.abort()
        super().connection_made(transport)
        self._start_head_timeout()

    def data_received(self, data: bytes) -> None:
        """Process received data, refusing a head that is too long."""
        super().data_received(data)
        if self._head is not None and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_BYTES:
                self.send_400_response(f"the request headers have more than {_HEAD_BYTES:,} bytes")

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # The timeout also covers the rest of an unread body, and a stray byte, which ends uvicorn's own
        # timeout.
        self._start_head_timeout()

    def on_headers_complete(self) -> None:
        self._end_head_timeout()
        if len(self.pipeline) >= _MAX_PIPELINED:
            raise ValueError("too many pipelined requests")  # ends the parser, which has no limit
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head_timeout()
        super().connection_lost(exc)

    def _start_head_timeout(self) -> None:
        self._head = self._head or self.loop.call_later(_HEADER_SECONDS, self.transport.close)
        waiting = self._waiting[self._family]
        waiting[self] = None
        if len(waiting) > _WAITING:
            oldest = [*islice(waiting, _CANDIDATES)]
            closed = next((each for each in oldest if not each._has_unread_data()), oldest[0])
            del waiting[closed]
            closed.transport.close()

    def _has_unread_data(self) -> bool:
        """Whether the socket has data to read."""
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket"), select.POLLIN)
        return bool(poll.poll(0))

    def _end_head_timeout(self) -> None:
        if self._head is not None:
            self._head.cancel()
        self._head, self._head_bytes = None, 0
        self._waiting[self._family].pop(self, None)

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request with a problem, like any other refusal."""
        body = msgspec.json.encode(ProblemAnswer(Problem("bad_request", msg, "send an HTTP/1.1 request")))
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, before_end: Callable[[], None]) -> None:
        super().__init__(config)
        self._before_end = before_end
        self._wake: Callable[[], object] = lambda: None

    async def main_loop(self) -> None:
        """Run until a signal arrives. uvicorn's own version wakes ten times a second: 0.2% of a core."""
        loop, self._woken = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(self._woken.set)
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), _TICK_SECONDS)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """See `uvicorn.Server`; also wake the main loop."""
        super().handle_exit(sig, frame)
        self._wake()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Withdraw the announcement, then shut down."""
        self._before_end()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Shut down on SIGTERM and SIGINT. uvicorn's own version would raise them again afterwards."""
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def serve(application: Any, listening: list[socket.socket], before_end: Callable[[], None]) -> None:  # noqa: ANN401 - of ASGI
    """Serve until SIGTERM or SIGINT.

    before_end: called before the sockets are closed.
    """
    config = uvicorn.Config(
        application,
        http=_Protocol,
        ws="none",
        access_log=False,
        log_level="error",
        server_header=False,
        timeout_graceful_shutdown=_LAST_SECONDS,
    )
    _Server(config, before_end).run(sockets=listening)

"""An MCP server for the one client that started this process, on its stdin and stdout."""

import os
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from memlog.eventlog.errors import MemlogError
from memlog.service.remote_store import RemoteStore
from memlog.service.store import Store

T = TypeVar("T")

_SURROGATES = re.compile(
    r"(\\\\|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2})|\\u[dD][89a-fA-F][\da-fA-F]{2}"
)
"""Escaped backslashes and pairs, and halves of pairs, in JSON."""

_LOOKS = 1.0
"""Seconds between two looks whether the client lives."""

_AWAY = ("server_away", "unauthorized", "forbidden", "misdirected", "no_route", "ending")
"""Errors of a server that is gone, or is another one by now. Each tool may be called twice."""


class OneStore:
    """Runs calls with one store: by the server that serves it now, else here.

    open_store: opens the store. connect: connects to that server; None without one.
    """

    def __init__(self, open_store: Callable[[], Store], connect: Callable[[], RemoteStore | None]) -> None:
        self._open_store, self._connect = open_store, connect
        self._lock = threading.Lock()
        self._store: Store | None = None

    def run(self, _: object, call: Callable[[Any], T]) -> T:
        """What `call` returns for the store."""
        # Looked up for each call: another program may have the port of a server that ended.
        remote = self._connect()
        if remote is not None:
            try:
                return call(remote)
            except MemlogError as error:
                if error.code not in _AWAY:
                    raise
        with self._lock:
            self._store = self._store or self._open_store()
        return call(self._store)

    def close(self) -> None:
        """Close what is open."""
        if self._store is not None:
            self._store.close()


def serve_stdio(server: Server[Any], parent: int) -> None:
    """Serve until the client closes stdin, or is gone. Whatever else is printed goes to stderr.

    parent: the process that started this one.
    """
    anyio.run(_serve, server, parent)


async def _serve(server: Server[Any], parent: int) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_without_parent, parent)
        async with stdio_server(stdin=_whole_lines()) as (reads, writes):  # type: ignore[arg-type]
            await server.run(reads, writes, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _whole_lines() -> AsyncIterator[str]:
    """Yield the lines of stdin, with U+FFFD for half of a surrogate pair, which the SDK does not answer."""
    with os.fdopen(os.dup(sys.stdin.fileno()), encoding="utf-8", errors="replace") as lines:
        async for line in anyio.wrap_file(lines):
            yield _SURROGATES.sub(lambda match: match[1] or r"\ufffd", line)


async def _end_without_parent(parent: int) -> None:
    """End the process once its parent is gone: another process of its may keep stdin open."""
    while os.getppid() == parent:
        await anyio.sleep(_LOOKS)
    # The thread that waits for stdin would keep the interpreter from ending.
    os.kill(os.getpid(), signal.SIGTERM)

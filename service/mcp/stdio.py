"""An MCP server for the one client that started this process, on its stdin and stdout."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from memlog.eventlog.errors import MemlogError
from memlog.service.remote_store import RemoteStore
from memlog.service.store import Store

T = TypeVar("T")


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


def serve_stdio(server: Server[Any]) -> None:
    """Serve until the client closes stdin. Whatever else is printed goes to stderr."""
    anyio.run(_serve, server)


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (reads, writes):
        await server.run(reads, writes, server.create_initialization_options())

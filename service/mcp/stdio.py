"""An MCP server for the one client that started this process, on its stdin and stdout."""

from collections.abc import Callable
from typing import Any, TypeVar

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from memlog.eventlog.errors import LogError
from memlog.service.remote_store import RemoteStore
from memlog.service.store import Store

T = TypeVar("T")


class OneStore:
    """Runs calls with one store: by a server that serves it, else here. Every tool may be called twice.

    open_store: opens the store. connect: connects to the server that runs for it now; None without one.
    """

    def __init__(self, open_store: Callable[[], Store], connect: Callable[[], RemoteStore | None]) -> None:
        self._open_store, self._connect = open_store, connect
        self._opened: Store | RemoteStore | None = None

    def run(self, _: object, call: Callable[[Any], T]) -> T:
        """What `call` returns for the store."""
        if self._opened is None:
            self._opened = self._connect() or self._open_store()
        try:
            return call(self._opened)
        except LogError as error:
            if error.code != "server_away":
                raise
            self._opened = self._connect() or self._open_store()
            return call(self._opened)

    def close(self) -> None:
        """Close what is open."""
        if self._opened is not None:
            self._opened.close()


def serve_stdio(server: Server[Any]) -> None:
    """Serve until the client closes stdin. Whatever else is printed goes to stderr."""
    anyio.run(_serve, server)


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (reads, writes):
        await server.run(reads, writes, server.create_initialization_options())

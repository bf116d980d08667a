"""The MCP server over HTTP: `/mcp` for the project `default`, and one address per project."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from memlog.service.adapters.http.guard import JSON, Call, Refused, read_body
from memlog.service.adapters.mcp.server import Context, create_mcp_server
from memlog.service.projects import DEFAULT, OpenStores

T = TypeVar("T")

_BODY = 1024 * 1024


class McpApplication:
    """Answers MCP requests. The path names the project; without one, it is `default`."""

    def __init__(self, stores: OpenStores, version: str) -> None:
        def run(ctx: Context, call: Callable[[Any], T]) -> T:
            named = {} if ctx.request is None else ctx.request.path_params
            return stores.run(named.get("project", DEFAULT), call)

        # Host and Origin are checked before any route.
        self._sessions = StreamableHTTPSessionManager(
            create_mcp_server(run, version),
            json_response=True,
            stateless=True,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self._sdk = StreamableHTTPASGIApp(self._sessions)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - of ASGI
        """Answer a request, reading its body within the usual limits."""
        try:
            body = await read_body(Call(scope, receive), _BODY, (JSON,))
        except Refused as refused:
            await refused.to_response()(scope, receive, send)
            return
        whole = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_body() -> Any:  # noqa: ANN401
            return whole.pop() if whole else await receive()

        await self._sdk(scope, receive_body, send)

    @asynccontextmanager
    async def lifespan(self, _: object) -> AsyncIterator[None]:
        """Accept requests while the context lasts."""
        async with self._sessions.run():
            yield

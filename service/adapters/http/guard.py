"""Admits or refuses requests by host, origin, token and load. Logs nothing."""

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from memlog.eventlog.errors import MemlogError
from memlog.service.adapters.local_sockets import CHALLENGE
from memlog.service.adapters.problems import Problem, ProblemAnswer, error_to_problem, http_status_of_error

Call = Request
JSON = "application/json"
LINES = "application/x-ndjson"  # an event in each line

_BODY = 1024 * 1024
EVENTS = 64 * 1024 * 1024  # bytes of a body with events; each event has 16 MiB at most
_DIGITS = 12
_SECONDS = 30


class Refused(Exception):
    """A request refused before it reaches an operation, with the status and reason to answer."""

    def __init__(self, status: int, code: str, message: str, hint: str = "", **headers: str) -> None:
        super().__init__(message)
        self.status, self.problem = status, Problem(code, message, hint, retryable=status in (408, 503))
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def to_response(self) -> Response:
        """Return the response to the refused request."""
        return problem_response(self.problem, self.status, **self.headers)


class Budget:
    """A limit on the total bytes of request bodies held at a time. A decoded body takes about five times as
    much.

    Requests that do not fit wait for earlier ones, up to the timeout for a body.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._freed = asyncio.Condition()

    @asynccontextmanager
    async def reserving_room_for_body(self, call: Call) -> AsyncIterator[None]:
        """Reserve room for a request's body while the context lasts."""
        given = call.headers.get("content-length", "")
        most = EVENTS if call.url.path.endswith("/append") else _BODY
        # A chunked body may have the maximum length.
        unknown = most if "transfer-encoding" in call.headers else 0
        size = int(given) if given.isdecimal() and len(given) < _DIGITS else unknown
        size = 0 if call.url.path == "/readyz" else min(size, most)
        try:
            async with asyncio.timeout(_SECONDS), self._freed:
                await self._freed.wait_for(lambda: size <= self._left)
                self._left -= size
        except TimeoutError:
            why = "too many long bodies at once"
            raise Refused(503, "overloaded", why, "try again", retry_after="1", connection="close") from None
        try:
            yield
        finally:
            self._left += size
            async with self._freed:
                self._freed.notify_all()


_IN_FLIGHT = Budget(EVENTS + _BODY)


def answering_errors(
    endpoint: Callable[[Call], Awaitable[Response]],
) -> Callable[[Call], Awaitable[Response]]:
    """Wrap an endpoint so that refused and failed requests also get a response."""

    async def answer(call: Call) -> Response:
        try:
            async with _IN_FLIGHT.reserving_room_for_body(call):
                return await endpoint(call)
        except Refused as refused:
            return refused.to_response()
        except ClientDisconnect:
            return Refused(400, "bad_request", "the client disconnected", "send the whole body").to_response()
        except MemlogError as error:
            again = {"retry-after": "1"} if http_status_of_error(error) == 503 else {}
            return problem_response(error_to_problem(error), http_status_of_error(error), **again)

    return answer


def problem_response(problem: Problem, status: int, **headers: str) -> Response:
    """Return the response that reports a problem."""
    return Response(msgspec.json.encode(ProblemAnswer(problem)), status, headers, media_type=JSON)


async def read_json_object(call: Call) -> dict[str, Any]:
    """Read a body that is a JSON object; an empty body counts as {}.

    Raises:
        Refused: the body is not a JSON object.
    """
    given = decode_json(await read_body(call, _BODY, (JSON,)) or b"{}")
    if not isinstance(given, dict):
        raise Refused(422, "bad_request", "the body is not a JSON object", "send the fields of the request")
    return given


def decode_json(data: bytes) -> Any:  # noqa: ANN401
    """Decode JSON.

    Raises:
        Refused: `data` is not JSON.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(422, "bad_request", f"the body is not JSON: {error}", "send JSON in UTF-8") from error


async def read_body(call: Call, most: int, types: tuple[str, ...]) -> bytes:
    """Read a request's body.

    Raises:
        Refused: the media type is not in `types`, or the body exceeds `most` bytes or takes too long.
    """
    too_large = Refused(413, "too_large", f"the body has more than {most:,} bytes", connection="close")
    if (given := call.headers.get("content-length", "")).isdecimal() and int(given) > most:
        raise too_large
    data = bytearray()
    try:
        async with asyncio.timeout(_SECONDS):
            async for part in call.stream():
                data += part
                if len(data) > most:
                    raise too_large
    except TimeoutError:
        raise Refused(408, "timeout", "the body did not arrive in time", connection="close") from None
    if data and media_type_of(call) not in types:
        raise Refused(415, "bad_type", f"the body is not {' or '.join(types)}", "set its content-type")
    return bytes(data)


def media_type_of(call: Call) -> str:
    """Return the media type of a request's body."""
    return call.headers.get("content-type", "").partition(";")[0].strip().lower()


_OPEN = ("/healthz", "/readyz", CHALLENGE)  # need no token
_MAX_RUNNING = 64  # requests at the same time


class Admission(msgspec.Struct, frozen=True):
    """The rules for admitting requests.

    hosts: the allowed Host headers, including ports; None for any. token: the required token, if any.
    url: the address the server is bound to.
    """

    hosts: Collection[str] | None
    token: str | None
    url: str


class Guard:
    """Passes admitted requests on to the application, and answers the rest itself."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app, self._admission, self._running = app, admission, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if it is admitted; otherwise refuse it."""
        if scope["type"] == "http" and (refused := self._why_refused(scope)):
            await refused.to_response()(scope, receive, send)
            return
        # Requests without a token do not count towards the limit.
        counts = scope.get("path") not in _OPEN
        self._running += counts
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            ending = Refused(503, "ending", "the server is shutting down", "try again", connection="close")
            await ending.to_response()(scope, receive, send)
        finally:
            self._running -= counts

    def _why_refused(self, scope: Scope) -> Refused | None:
        headers, admission = Headers(scope=scope), self._admission
        hosts = headers.getlist("host")
        scheme, _, given = "\n".join(headers.getlist("authorization")).partition(" ")
        is_given = scheme.casefold() == "bearer"
        if len(hosts) != 1 or (admission.hosts is not None and hosts[0] not in admission.hosts):
            return Refused(421, "misdirected", "this server does not answer to that name", "use its address")
        if "\ufffd" in scope["path"]:  # all invalid UTF-8 would map to the same name
            return Refused(422, "bad_request", "the URL is not UTF-8", "percent-encode it as UTF-8")
        # Only a page from this server may send requests, and there are no such pages.
        if any(origin != f"http://{hosts[0]}" for origin in headers.getlist("origin")):
            return Refused(
                403, "forbidden", "a page of another origin sent the request", "send it without a browser"
            )
        if admission.token is None:
            if {*headers.getlist("sec-fetch-site")} - {"none", "same-origin"}:
                return Refused(
                    403, "forbidden", "a page of another site sent the request", "send it without a browser"
                )
        elif scope["path"] not in _OPEN and not (
            is_given and hmac.compare_digest(given.encode("latin-1"), admission.token.encode())
        ):
            hint = "send Authorization: Bearer TOKEN; the server prints its token file at start"
            why = "the token is missing or wrong"
            return Refused(401, "unauthorized", why, hint, www_authenticate="Bearer")
        if self._running >= _MAX_RUNNING:
            return Refused(503, "overloaded", "too many requests at once", "try again", retry_after="1")
        return None

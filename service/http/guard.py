"""Lets in what may ask: the right host and origin, a token, not too many at once. Nothing of it is logged."""

import asyncio
import hmac
from collections.abc import Collection

import msgspec
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from memlog.service.http.bodies import Refused
from memlog.service.local_sockets import CHALLENGE

_OPEN = ("/healthz", "/readyz", CHALLENGE)  # need no token
_MOST = 64  # requests at the same time


class Admission(msgspec.Struct, frozen=True):
    """Who may ask.

    hosts: what the header Host may be, with the port; None for any. token: None for none.
    url: the address that the server is bound to.
    """

    hosts: Collection[str] | None
    token: str | None
    url: str


class Guard:
    """Passes on the requests that an `Admission` lets in, and answers the others."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app, self._admission, self._running = app, admission, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        if scope["type"] == "http" and (refused := self._refused(scope)):
            await refused.answer()(scope, receive, send)
            return
        # Whoever has no token takes no place of those who have.
        counts = scope.get("path") not in _OPEN
        self._running += counts
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            ending = Refused(503, "ending", "the server ends", "try again", connection="close")
            await ending.answer()(scope, receive, send)
        finally:
            self._running -= counts

    def _refused(self, scope: Scope) -> Refused | None:
        headers, admission = Headers(scope=scope), self._admission
        hosts = headers.getlist("host")
        scheme, _, given = "\n".join(headers.getlist("authorization")).partition(" ")
        is_given = scheme.casefold() == "bearer"
        if len(hosts) != 1 or (admission.hosts is not None and hosts[0] not in admission.hosts):
            return Refused(421, "misdirected", "this server does not answer to that name", "use its address")
        if "\ufffd" in scope["path"]:  # what is no UTF-8 would be one name with all that is none
            return Refused(422, "bad_request", "the address is not UTF-8", "escape it as UTF-8")
        # A page in a browser may ask only if this server served it: none does.
        if any(origin != f"http://{hosts[0]}" for origin in headers.getlist("origin")):
            return Refused(403, "forbidden", "a page of another origin asks", "ask without a browser")
        if admission.token is None:
            if {*headers.getlist("sec-fetch-site")} - {"none", "same-origin"}:
                return Refused(403, "forbidden", "a page of another site asks", "ask without a browser")
        elif scope["path"] not in _OPEN and not (
            is_given and hmac.compare_digest(given.encode("latin-1"), admission.token.encode())
        ):
            hint = "send Authorization: Bearer TOKEN; the file of the token is named when the server starts"
            why = "the token is missing or wrong"
            return Refused(401, "unauthorized", why, hint, www_authenticate="Bearer")
        if self._running >= _MOST:
            return Refused(503, "overloaded", "too many requests at once", "try again", retry_after="1")
        return None

"""Lets in what may ask: the right host and origin, a token, not too many at once. Nothing of it is logged."""

import hmac
from collections.abc import Collection

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from memlog.service.http.problems import Refused

OPEN = ("/healthz", "/readyz")
"""Paths that need no token."""


class Admission(msgspec.Struct, frozen=True):
    """Who may ask.

    hosts: what the header Host may be, with the port; None for any. token: None for none.
    most: requests at the same time.
    """

    hosts: Collection[str] | None
    token: str | None
    most: int = 64


class Guard:
    """Passes on the requests that an `Admission` lets in, and answers the others."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app, self._admission, self._running = app, admission, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if refused := self._refused(scope):
            await refused.answer()(scope, receive, send)
            return
        self._running += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running -= 1

    def _refused(self, scope: Scope) -> Refused | None:
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        hosts, admission = headers.get("host", []), self._admission
        if len(hosts) != 1 or (admission.hosts is not None and hosts[0] not in admission.hosts):
            return Refused(421, "misdirected", "this server does not answer to that name", "use its address")
        # A page in a browser may ask only if this server served it: none does.
        if any(origin != f"http://{hosts[0]}" for origin in headers.get("origin", [])):
            return Refused(403, "forbidden", "a page of another origin asks", "ask without a browser")
        if admission.token is None:
            sites = headers.get("sec-fetch-site", [])
            if any(site not in ("none", "same-origin") for site in sites):
                return Refused(403, "forbidden", "a page of another site asks", "ask without a browser")
        elif scope["path"] not in OPEN and not self._has_token(headers.get("authorization", [])):
            hint = "send Authorization: Bearer TOKEN; the file of the token is named when the server starts"
            return Refused(
                401, "unauthorized", "the token is missing or wrong", hint, www_authenticate="Bearer"
            )
        if self._running >= admission.most:
            return Refused(503, "overloaded", "too many requests at once", "try again", retry_after="1")
        return None

    def _has_token(self, given: Collection[str]) -> bool:
        wanted = f"Bearer {self._admission.token}".encode()
        return len(given) == 1 and all(hmac.compare_digest(each.encode("latin-1"), wanted) for each in given)

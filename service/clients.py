"""On whose behalf events are appended: the program that an adapter speaks for."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from memlog.eventlog.envelope import Event

EventLike = Event | dict[str, Any] | bytes

_LONGEST = 200
"""Characters of a client's name."""

_CLIENT: ContextVar[str | None] = ContextVar("client", default=None)


HEADER = "x-memlog-client"
"""The header of HTTP that names the client."""


def client_header() -> dict[str, str]:
    """The header that tells a server for whom this context acts; empty for nobody."""
    client = _CLIENT.get()
    return {} if client is None else {HEADER: quote(client, safe="/ ()")}


@contextmanager
def acting_for(client: str | None) -> Iterator[None]:
    """A context in which events that are appended name a client, such as `claude-code/2.1`."""
    before = _CLIENT.set(client and client[:_LONGEST])
    try:
        yield
    finally:
        _CLIENT.reset(before)


def acting_for_header(value: str | None) -> AbstractContextManager[None]:
    """As `acting_for`, of the client that a header names."""
    return acting_for(None if value is None else unquote(value))


def marked(events: Iterable[EventLike]) -> Iterable[EventLike]:
    """Events with the member `client`; those that name one, and lines, as they are."""
    client = _CLIENT.get()
    return events if client is None else (_marked(each, client) for each in events)


def _marked(event: EventLike, client: str) -> EventLike:
    if isinstance(event, bytes):
        return event
    members = event if isinstance(event, dict) else msgspec.to_builtins(event)
    return {"client": client} | members

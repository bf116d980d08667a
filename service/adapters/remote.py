"""Sends operations to a server: see `memlog serve`."""

from collections.abc import Collection
from functools import cache, cached_property, wraps
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, cast, get_args
from urllib.parse import quote

import httpx2
import msgspec

from memlog.eventlog.codec.encode import event_to_json
from memlog.eventlog.errors import (
    BadInput,
    DatabaseError,
    LogError,
    MemlogError,
    NotFound,
    format_value_for_message,
)
from memlog.eventlog.events import Event
from memlog.eventlog.fields import Chat, list_fields
from memlog.query.request import Request
from memlog.service.adapters.local_sockets import check_server_has_token, is_process_of_user
from memlog.service.adapters.problems import Problem, ProblemAnswer, problem_to_error
from memlog.service.engine.engine import client_header
from memlog.service.engine.operation import Operation, import_group_named, operations_of_group

T = TypeVar("T")

_LONGEST_WAIT = 86_400


class ServerConnection:
    """A connection to a server.

    socket: the Unix socket of a server run by this user; its owner is checked before anything is sent.
    is_proven: whether a server at a TCP address must first prove that it has the token.

    Raises:
        LogError: the server is unreachable; the request may still have been carried out.
        MemlogError: the error returned by the server.
    """

    def __init__(
        self,
        url: str,
        project: str,
        token: str | None,
        seconds: float,
        *,
        socket: str | None = None,
        is_proven: bool = False,
    ) -> None:
        if not isinstance(url, str):
            raise BadInput(
                f"url is {format_value_for_message(url)}", hint="use a URL, for example http://127.0.0.1:5858"
            )
        if not isinstance(token, str | None):
            raise BadInput("the token must be a string", hint="use the line in the server's token file")
        token = None if token is None else token.strip()
        if token is not None and not (token.isascii() and token.isprintable()):
            raise BadInput("the token has invalid characters", hint="use the line in the server's token file")
        if not isinstance(project, str) or not project.isprintable():
            raise BadInput(
                f"project is {format_value_for_message(project)}", hint="use the name of a project"
            )
        if not (isinstance(seconds, int | float) and 0 < seconds <= _LONGEST_WAIT):
            raise BadInput(
                f"seconds is {format_value_for_message(seconds)}",
                hint=f"use a number above 0, at most {_LONGEST_WAIT:,}",
            )
        self._where = f"/v1/projects/{quote(project, safe='')}"
        headers = {"content-type": "application/json"}
        self._headers = headers if token is None else headers | {"authorization": f"Bearer {token}"}
        self._url, self._seconds, self._socket = url, seconds, socket
        self._proves = token if is_proven and socket is None else None

    @cached_property
    def _client(self) -> httpx2.Client:
        # Neither a proxy nor a redirect target may see the token.
        transport = None if self._socket is None else httpx2.HTTPTransport(uds=self._socket, trust_env=False)
        return httpx2.Client(
            base_url=self._url,
            headers=self._headers,
            timeout=self._seconds,
            trust_env=False,
            transport=transport,
        )

    def _check_server(self, event: str, info: dict[str, Any]) -> None:
        """Check the server's identity on a new connection; a callback for httpx's trace events."""
        stream = info.get("return_value")
        if event == "connection.connect_unix_socket.complete" and stream is not None:
            if not is_process_of_user(stream.get_extra_info("socket")):
                raise LogError(
                    f"{self._socket}: the server belongs to another user", code="server_away", retryable=True
                )
        elif event == "connection.connect_tcp.complete" and self._proves is not None and stream is not None:
            check_server_has_token(stream, self._url, self._proves)

    def call(self, name: str, operation: Operation, request: Request) -> Any:  # noqa: ANN401
        """Run an operation on the server and return its decoded answer."""
        try:
            return _decode_answer(operation, self.post(f"{self._where}/{name}", request))
        except NotFound as error:
            if error.code != operation.missing:
                raise
            kinds = get_args(operation.type_of_answer)
            return None if type(None) in kinds else False if Literal[False] in kinds else []

    def post(self, path: str, request: Request) -> bytes:
        """Post a request to `path` and return the answer as JSON."""
        try:
            content = msgspec.json.encode(_to_json_values(request))
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
            raise BadInput(f"the request is not JSON: {error}", hint="use only JSON values") from error
        try:
            given = self._client.post(
                path, content=content, headers=client_header(), extensions={"trace": self._check_server}
            )
        except httpx2.InvalidURL as error:
            raise BadInput(
                f"{self._url}: {error}", hint="use a URL, for example http://127.0.0.1:5858"
            ) from error
        except httpx2.HTTPError as error:
            raise LogError(
                f"{self._url}: {error}",
                hint="start the server or use the URL of another one",
                code="server_away",
                retryable=True,
            ) from error
        if given.is_success:
            return given.content
        raise _error_of_answer(given)

    def is_server_answering(self) -> bool:
        """Whether the server answers."""
        try:
            return self._client.get("/healthz", extensions={"trace": self._check_server}).is_success
        except (httpx2.HTTPError, httpx2.InvalidURL, LogError):
            return False

    def close(self) -> None:
        """Close the connection. The next request reopens it."""
        if (client := vars(self).pop("_client", None)) is not None:
            client.close()


class Connected:
    """A client connected to a server. Use it with `with`, or call `close`."""

    _connection: ServerConnection

    def available(self) -> bool:
        """Whether the server answers."""
        return self._connection.is_server_answering()

    def close(self) -> None:
        """Close the connection. The next call reopens it."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Remote:
    """A group of operations carried out by a server.

    group: the name of the group; "" for the store itself.
    """

    def __init__(self, connection: ServerConnection, group: str) -> None:
        self._connection, self._group = connection, group


def remote_method(operation: T) -> T:
    """Return a `Remote` method that runs `operation` on the server. Type checkers see the original."""
    declared = cast("Operation", operation)

    @wraps(declared)
    def call(self: Remote, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        name = f"{self._group}.{declared.__name__}".lstrip(".")
        return self._connection.call(name, declared, declared.build_request(args, kwargs))

    return cast("T", call)


@cache
def remote_class(group: str) -> type[Remote]:
    """Return the `Remote` class for a group of operations."""
    kind = import_group_named(group)
    methods = {
        name: remote_method(each) for name, each in operations_of_group(group).items() if not each.is_endless
    }
    names = {"__doc__": f"The operations of `{kind.__name__}`.", "__module__": __name__}
    return type(f"Remote{kind.__name__}", (Remote,), methods | names)


def _to_json_values(value: Any) -> Any:  # noqa: ANN401
    """Convert a value to JSON types, leaving out a request's local fields and those at their default."""
    if isinstance(value, Request):
        fields = [field for field in list_fields(type(value)) if not field.is_local]
        given = {field.name: getattr(value, field.name) for field in fields}
        return {f.name: _to_json_values(given[f.name]) for f in fields if given[f.name] != f.default}
    if isinstance(value, bytes):
        return msgspec.json.decode(value)
    if isinstance(value, Chat | Path):
        return str(value)
    if isinstance(value, Event | dict):
        return msgspec.json.decode(event_to_json(value))
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    is_many = not isinstance(value, str) and hasattr(value, "__iter__")
    return [_to_json_values(each) for each in value] if is_many else value


def _decode_answer(operation: Operation, data: bytes) -> Any:  # noqa: ANN401
    kinds: Collection[Any] = operation.types_if_found
    for kind in kinds:
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.ValidationError:
            continue
    raise DatabaseError(
        "unexpected answer from the server", hint="check that the server runs this version of memlog"
    )


def _error_of_answer(given: httpx2.Response) -> MemlogError:
    try:
        problem = msgspec.json.decode(given.content, type=ProblemAnswer).error
    except msgspec.DecodeError:
        problem = Problem("", f"the server answered with HTTP {given.status_code}")
    return problem_to_error(problem, given.status_code)

"""The application: a route for each operation of a store, made from its declaration."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request as Call
from starlette.responses import Response
from starlette.routing import Route

from memlog.service import catalogue
from memlog.service.http.bodies import body_of, decoded, object_of, type_of
from memlog.service.http.guard import Admission, Guard
from memlog.service.http.openapi import openapi
from memlog.service.http.problems import Problem, answer_of, answering, problem_of
from memlog.service.http.seeds import seed_routes
from memlog.service.open_stores import OpenStores
from memlog.service.operations import Operation
from memlog.service.requests import Request, fields_of, given_as_texts
from memlog.service.store import Store

AnyOperation = Operation[Any, Any, Any, Any]
Answer = Callable[[Call], Awaitable[Response]]

_EVENTS = 64 * 1024 * 1024
"""Bytes of a body with events, each of which has 16 MiB at most."""

_LINES = "application/x-ndjson"
_TEXTS = ("text", "question")
"""Fields with words of people, which do not belong into addresses."""


def application(
    stores: OpenStores, admission: Admission, *, root: Path | None, version: str
) -> Callable[..., Any]:
    """The application of a server.

    root: the folder below which operations may read files; None for none.
    """
    served = {
        name: operation
        for name, operation in catalogue.operations().items()
        if not operation.is_endless and (root is not None or not operation.reads_paths)
    }
    described = openapi(((name, each, _has_get(each)) for name, each in served.items()), version)
    document = msgspec.json.encode(described)
    routes = [
        Route("/healthz", _well, methods=["GET"]),
        Route("/readyz", partial(_ready, stores), methods=["GET"]),
        Route("/openapi.json", partial(_document, document), methods=["GET"]),
    ]
    for name, operation in served.items():
        answer = (
            partial(_append, stores) if name == "append" else partial(_answer, stores, name, operation, root)
        )
        methods = ["POST", *(["GET"] if _has_get(operation) else [])]
        routes.append(Route(f"/v1/projects/{{project}}/{name}", answering(answer), methods=methods))
    routes += seed_routes(stores)
    chat = partial(_answer, stores, "pre_route", served["pre_route"], root)
    routes.append(Route("/v1/projects/{project}/chat", answering(chat), methods=["POST"]))
    handlers: Mapping[Any, Any] = {HTTPException: _no_route, Exception: _internal}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), admission)


def _has_get(operation: AnyOperation) -> bool:
    """Whether an operation is read with GET, too: it appends nothing and takes no text."""
    request: type[Request] = operation.request
    return operation.effect == "read" and not any(each.name in _TEXTS for each in fields_of(request))


async def _answer(
    stores: OpenStores, name: str, operation: AnyOperation, root: Path | None, call: Call
) -> Response:
    if call.method == "GET":
        texts = {key: call.query_params.getlist(key) for key in call.query_params}
        given = given_as_texts(operation.request, texts)
    else:
        given = await object_of(call)

    def answered() -> bytes:
        store = stores.store(call.path_params["project"])
        return msgspec.json.encode(catalogue.answer(store, name, given, root=root))

    return await _json(answered)


async def _append(stores: OpenStores, call: Call) -> Response:
    """Events: one, a list, `{"events": […]}`, or a line each, of which each is stored or refused."""
    as_lines = type_of(call) == _LINES
    data = await body_of(call, _EVENTS, (_LINES, "application/json"))

    def answered() -> bytes:
        store = stores.store(call.path_params["project"])
        if as_lines:
            return msgspec.json.Encoder().encode_lines(_acknowledged(store, data))
        given = decoded(data)
        if isinstance(given, dict) and "type" not in given:
            return msgspec.json.encode(catalogue.answer(store, "append", given))
        return msgspec.json.encode(store.append(given))

    return await _json(answered, _LINES if as_lines else "application/json")


def _acknowledged(store: Store, data: bytes) -> list[Any]:
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), start=1)]
    return [
        {"line": number, "id": outcome.id, "error": problem_of(outcome.error)}
        if hasattr(outcome, "error")
        else outcome
        for number, outcome in store.append_lines(lines)
    ]


async def _json(answered: Callable[[], bytes], media_type: str = "application/json") -> Response:
    return Response(await run_in_threadpool(answered), media_type=media_type)


async def _well(_: Call) -> Response:
    return Response(b'{"ok":true}', media_type="application/json")


async def _ready(stores: OpenStores, _: Call) -> Response:
    troubles = await run_in_threadpool(stores.troubles)
    if troubles:
        said = "; ".join(f"{side}: {why}" for side, why in troubles.items())
        return answer_of(Problem("not_ready", said, retryable=True), 503)
    return Response(b'{"ready":true}', media_type="application/json")


async def _document(document: bytes, _: Call) -> Response:
    return Response(document, media_type="application/json")


async def _no_route(_: Call, error: HTTPException) -> Response:
    code = {404: "no_route", 405: "bad_method"}.get(error.status_code, "bad_request")
    return answer_of(Problem(code, error.detail, "see /openapi.json"), error.status_code)


async def _internal(_: Call, error: Exception) -> Response:
    return answer_of(Problem("internal", type(error).__name__, "report it"), 500)

"""The application: a route for each operation of a store, made from its declaration."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request as Call
from starlette.responses import Response
from starlette.routing import Route

from memlog.service import catalogue
from memlog.service.adapters import compat
from memlog.service.adapters.compat import CreateMemory
from memlog.service.adapters.http.guard import (
    EVENTS,
    JSON,
    LINES,
    Admission,
    Guard,
    Refused,
    answer_of,
    answering,
    body_of,
    decoded,
    object_of,
    type_of,
)
from memlog.service.adapters.local_sockets import CHALLENGE, proof_of
from memlog.service.adapters.openapi import has_get, openapi
from memlog.service.adapters.problems import Problem, acknowledged
from memlog.service.engine.engine import HEADER, acting_for_header
from memlog.service.engine.operation import Operation
from memlog.service.engine.requests import given_as_texts
from memlog.service.projects import DEFAULT, OpenStores
from memlog.service.store import Store

_MEMORIES = "/api/sessions/{session:path}/memories"


def seed_routes(stores: OpenStores) -> list[Route]:
    """Return the routes, for an application."""
    one = f"{_MEMORIES}/{{memory}}"
    return [
        *(
            Route(path, answering(partial(_of_project, stores, *what)), methods=["POST"])
            for path, what in compat.ROUTES.items()
        ),
        Route("/v1/projects/{project:path}/chat", answering(partial(_routed, stores)), methods=["POST"]),
        Route(_MEMORIES, answering(partial(_of_session, stores, compat.list_memories, 200)), methods=["GET"]),
        Route(_MEMORIES, answering(partial(_created, stores)), methods=["POST"]),
        Route(one, answering(partial(_of_session, stores, compat.get_memory, 200)), methods=["GET"]),
        Route(one, answering(partial(_of_session, stores, compat.delete_memory, 204)), methods=["DELETE"]),
    ]


async def _of_project(
    stores: OpenStores, kind: type[Any], does: Callable[[Store, Any], Any], call: Call
) -> Response:
    given = await object_of(call)

    def answered() -> Any:  # noqa: ANN401
        request = kind.of(given)
        return stores.run(request.project_id, lambda store: does(store, request))

    return await _answered_as_seed(answered, 200)


async def _routed(stores: OpenStores, call: Call) -> Response:
    given = await object_of(call)
    project = call.path_params["project"]
    return await _answered_as_seed(lambda: stores.run(project, lambda store: compat.route(store, given)), 200)


async def _of_session(stores: OpenStores, does: Callable[..., Any], status: int, call: Call) -> Response:
    named = call.path_params.values()
    return await _answered_as_seed(lambda: stores.run(DEFAULT, lambda store: does(store, *named)), status)


async def _created(stores: OpenStores, call: Call) -> Response:
    given = await object_of(call)
    session = call.path_params["session"]

    def created(store: Store) -> Any:  # noqa: ANN401
        return compat.create_memory(store, session, CreateMemory.of(given))

    return await _answered_as_seed(lambda: stores.run(DEFAULT, created), 201)


async def _answered_as_seed(does: Callable[[], Any], status: int) -> Response:
    found = await run_in_threadpool(does)
    body = b"" if status == 204 else msgspec.json.encode(found)
    return Response(body, status, media_type="application/json" if body else None)


_MCP = ("/mcp", "/v1/projects/{project:path}/mcp")


def application(
    stores: OpenStores,
    admission: Admission,
    *,
    root: Path | None,
    exports: Path | None,
    version: str,
    mcp: Any = None,  # noqa: ANN401
) -> Callable[..., Any]:
    """Return the application of a server.

    root, exports: the folders below which operations may read, and write, files; None for none.
    mcp: an `McpApplication`.
    """
    served = {name: each for name, each in catalogue.operations().items() if not each.is_endless}
    document = msgspec.json.encode(openapi(served, version))
    routes = [
        Route("/healthz", partial(_constant, b'{"ok":true}')),
        Route("/readyz", answering(partial(_ready, stores))),
        Route(CHALLENGE, partial(_challenge, admission)),
        Route("/openapi.json", partial(_constant, document)),
        *seed_routes(stores),
        *(Route(path, mcp, methods=["POST"]) for path in _MCP if mcp),
    ]
    for name, operation in served.items():
        folder = exports if operation.writes_paths else root
        answer = partial(_append if name == "append" else _answer, stores, name, operation, folder)
        methods = ["POST", *(["GET"] if has_get(operation) else [])]
        routes.append(Route(f"/v1/projects/{{project:path}}/{name}", answering(answer), methods=methods))
    handlers: Mapping[Any, Any] = {HTTPException: _no_route, Exception: _internal}
    lifespan = mcp.running if mcp else None
    return Guard(Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan), admission)


async def _answer(
    stores: OpenStores, name: str, operation: Operation[Any, Any, Any, Any], root: Path | None, call: Call
) -> Response:
    if call.method == "GET":
        query = unquote_to_bytes(call.scope["query_string"])
        if query.decode(errors="ignore").encode() != query:
            raise Refused(422, "bad_request", "the query of the address is not UTF-8", "encode it in UTF-8")
        texts = {key: call.query_params.getlist(key) for key in call.query_params}
        given = given_as_texts(operation.request, texts)
    else:
        given = await object_of(call)
    return await _answered(
        stores,
        call,
        lambda store: msgspec.json.encode(catalogue.answer(store, name, given, root=root, exports=root)),
    )


async def _append(stores: OpenStores, name: str, _: object, root: Path | None, call: Call) -> Response:
    """Append events: one, a list, `{"events": […]}`, or one per line; each one is stored or refused."""
    data = await body_of(call, EVENTS, (LINES, JSON))
    if type_of(call) == LINES:
        return await _answered(stores, call, lambda store: acknowledged(store, data, root), LINES)
    given = decoded(data)
    request = given if isinstance(given, dict) and "events" in given else {"events": given}
    return await _answered(
        stores, call, lambda store: msgspec.json.encode(catalogue.answer(store, name, request, root=root))
    )


async def _answered(
    stores: OpenStores, call: Call, answer: Callable[[Store], bytes], media_type: str = JSON
) -> Response:
    with acting_for_header(call.headers.get(HEADER)):
        data = await run_in_threadpool(stores.run, call.path_params["project"], answer)
    return Response(data, media_type=media_type)


async def _constant(data: bytes, _: Call) -> Response:
    return Response(data, media_type=JSON)


async def _challenge(admission: Admission, call: Call) -> Response:
    """Prove to whoever is about to send the token that this server has it."""
    try:
        proof = proof_of(admission.token or "", call.query_params.get("nonce", ""), admission.url)
    except ValueError as error:
        return answer_of(Problem("bad_request", str(error), "see /openapi.json"), 422)
    if admission.token is None:
        return answer_of(Problem("no_route", "this server has no token", "ask without one"), 404)
    return Response(proof, media_type="text/plain")


async def _ready(stores: OpenStores, call: Call) -> Response:
    if troubles := await run_in_threadpool(stores.troubles):
        # It needs no token: why is in `status`, which does.
        message = f"not ready: {', '.join(troubles)}"
        return answer_of(Problem("not_ready", message, "ask the operation status why", retryable=True), 503)
    return await _constant(b'{"ready":true}', call)


async def _no_route(_: Call, error: HTTPException) -> Response:
    code = {404: "no_route", 405: "bad_method"}.get(error.status_code, "bad_request")
    return answer_of(Problem(code, error.detail, "see /openapi.json"), error.status_code)


async def _internal(_: Call, error: Exception) -> Response:
    return answer_of(Problem("internal", type(error).__name__, "report it"), 500)

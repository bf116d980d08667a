"""The ASGI application, with a route for each operation of a store, made from its declaration."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request as Call
from starlette.responses import Response
from starlette.routing import Route

from memlog.service import catalogue
from memlog.service.adapters import compat
from memlog.service.adapters.compat import ROUTES, CreateMemory
from memlog.service.adapters.http import guard
from memlog.service.adapters.http.guard import JSON, Admission
from memlog.service.adapters.local_sockets import CHALLENGE, compute_token_proof
from memlog.service.adapters.problems import Problem, ProblemAnswer, append_and_acknowledge
from memlog.service.catalogue import Operations, answer_schemas
from memlog.service.engine.engine import HEADER, recording_client
from memlog.service.engine.operation import Operation
from memlog.service.engine.requests import (
    Request,
    fields_from_texts,
    json_schema_of_request,
    list_fields,
    read_description_of_request,
)
from memlog.service.projects import DEFAULT, OpenStores
from memlog.service.store import Store

_TEXTS = ("text", "question")
"""Fields that hold people's words, which do not belong in URLs."""

_PROJECT = {"name": "project", "in": "path", "required": True, "schema": {"type": "string"}}
_PROJECT_HEADER = "X-Memlog-Project"

_PROBLEM = {"$ref": "#/components/responses/Problem"}
_PROBLEMS = {"4XX": _PROBLEM, "5XX": _PROBLEM}

_CHAT = "/v1/projects/{project}/pre_route"
_EVENT = {"type": "object", "required": ["type"]}
_MANY = {"type": "array", "items": _EVENT}
_EVENTS = [_EVENT, _MANY, {"type": "object", "required": ["events"], "properties": {"events": _MANY}}]


def has_get_route(operation: Operation) -> bool:
    """Whether an operation also has a GET route: it only reads, writes no files, and takes no free text."""
    is_read = operation.effect == "read" and not operation.writes_paths
    return is_read and not any(each.name in _TEXTS for each in list_fields(operation.request))


def openapi_document(served: Operations, version: str) -> dict[str, Any]:
    """Return the OpenAPI document. served: the operations that have a route."""
    template = "#/components/schemas/{name}"
    answers, schemas = answer_schemas(template)
    (problem,), more = msgspec.json.schema_components([ProblemAnswer], ref_template=template)
    paths: dict[str, Any] = {}
    for name, operation in served.items():
        described = {
            "tags": [name.rpartition(".")[0] or "store"],
            "summary": read_description_of_request(operation.request).partition("\n")[0],
            "description": f"{read_description_of_request(operation.request)}\n\nEffect: {operation.effect}.",
            "responses": {
                "200": {"description": "done", "content": {JSON: {"schema": answers[name]}}},
                **_PROBLEMS,
            },
        }
        schema = json_schema_of_request(operation.request)
        body = {"required": bool(schema["required"]), "content": {JSON: {"schema": schema}}}
        path = paths.setdefault(f"/v1/projects/{{project}}/{name}", {"parameters": [_PROJECT]})
        path["post"] = described | {"operationId": name, "requestBody": body}
        if has_get_route(operation):
            path["get"] = described | {
                "operationId": f"{name}.get",
                "parameters": _query_parameters(operation),
            }
    append = paths["/v1/projects/{project}/append"]["post"]["requestBody"]
    append["content"] = {
        JSON: {"schema": {"anyOf": _EVENTS}},
        "application/x-ndjson": {"schema": _EVENT},
    }
    paths |= _openapi_paths_of_earlier_services(paths)
    for name in ("healthz", "readyz"):
        answer = {"200": {"description": "well"}, "503": _PROBLEM}
        paths[f"/{name}"] = {"get": {"operationId": name, "security": [], "responses": answer}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "memlog", "version": version},
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "schemas": schemas | more,
            "responses": {"Problem": {"description": "refused", "content": {JSON: {"schema": problem}}}},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _openapi_paths_of_earlier_services(paths: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI paths for the routes of two earlier services."""
    some = {"content": {JSON: {"schema": {}}}, "description": "done"}

    def describe_route(
        name: str, status: str = "200", request: type[Request] | None = None
    ) -> dict[str, Any]:
        body = (
            {}
            if request is None
            else {"requestBody": {"content": {JSON: {"schema": json_schema_of_request(request)}}}}
        )
        summary = (
            {} if request is None else {"summary": read_description_of_request(request).partition("\n")[0]}
        )
        responses = {status: some, **_PROBLEMS}
        return {"operationId": name, "tags": ["seeds"], "responses": responses} | summary | body

    session, memory = (
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in ("session", "memory")
    )
    project = {"name": _PROJECT_HEADER, "in": "header", "schema": {"type": "string", "default": DEFAULT}}
    memories = "/api/sessions/{session}/memories"
    chat = paths[_CHAT]["post"] | {"operationId": "chat"}
    return {
        "/v1/projects/{project}/chat": {"parameters": [_PROJECT], "post": chat},
        **{path: {"post": describe_route(path, request=request)} for path, (request, _) in ROUTES.items()},
        memories: {
            "parameters": [project, session],
            "get": describe_route("session.memories"),
            "post": describe_route("session.create_memory", "201", CreateMemory),
        },
        f"{memories}/{{memory}}": {
            "parameters": [project, session, memory],
            "get": describe_route("session.memory"),
            "delete": describe_route("session.delete_memory", "204"),
        },
    }


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    schema = json_schema_of_request(operation.request)
    fields = {field.name: field for field in list_fields(operation.request)}
    return [
        {"name": name, "in": "query", "required": name in schema["required"], "schema": kind}
        for name, kind in schema["properties"].items()
        if not fields[name].struct
    ]


_MEMORIES = "/api/sessions/{session:path}/memories"


def routes_of_earlier_services(stores: OpenStores) -> list[Route]:
    """Return the routes of two earlier services."""
    one = f"{_MEMORIES}/{{memory}}"
    answers: list[tuple[str, str, Callable[[Call], Awaitable[Response]]]] = [
        *(("POST", path, partial(_run_project_route, stores, *of)) for path, of in compat.ROUTES.items()),
        (
            "POST",
            "/v1/projects/{project:path}/chat",
            partial(_run_session_route, stores, compat.pre_route, 200),
        ),
        ("GET", _MEMORIES, partial(_run_session_route, stores, compat.list_memories, 200)),
        ("POST", _MEMORIES, partial(_run_session_route, stores, compat.create_memory, 201)),
        ("GET", one, partial(_run_session_route, stores, compat.get_memory, 200)),
        ("DELETE", one, partial(_run_session_route, stores, compat.delete_memory, 204)),
    ]
    return [Route(path, guard.answering_errors(answer), methods=[method]) for method, path, answer in answers]


async def _run_project_route(
    stores: OpenStores, kind: type[Any], does: Callable[[Store, Any], Any], call: Call
) -> Response:
    request = kind.of(await guard.read_json_object(call), call.url.path)
    return await _answer_as_earlier_service(
        lambda: stores.run(request.project_id, lambda store: does(store, request)), 200
    )


async def _run_session_route(
    stores: OpenStores, does: Callable[..., Any], status: int, call: Call
) -> Response:
    """Run a session route. does: takes the store, the other names in the path, and the body, if any."""
    named = dict(call.path_params)
    project = named.pop("project", None) or unquote(call.headers.get(_PROJECT_HEADER, DEFAULT))
    given = [*named.values(), *([await guard.read_json_object(call)] if call.method == "POST" else [])]
    return await _answer_as_earlier_service(
        lambda: stores.run(project, lambda store: does(store, *given)), status
    )


async def _answer_as_earlier_service(does: Callable[[], Any], status: int) -> Response:
    found = await run_in_threadpool(does)
    body = b"" if status == 204 else msgspec.json.encode(found)
    return Response(body, status, media_type=JSON if body else None)


_MCP = ("/mcp", "/v1/projects/{project:path}/mcp")


def create_application(
    stores: OpenStores,
    admission: Admission,
    *,
    root: Path | None,
    exports: Path | None,
    version: str,
    mcp: Any = None,  # noqa: ANN401
) -> Callable[..., Any]:
    """Return the server's ASGI application.

    root, exports: the folders that operations may read from and write to; None for no access.
    mcp: an `McpApplication`; None for no MCP.
    """
    served = {name: each for name, each in catalogue.operations().items() if not each.is_endless}
    document = msgspec.json.encode(openapi_document(served, version))
    routes = [
        Route("/healthz", partial(_answer_constant, b'{"ok":true}')),
        Route("/readyz", guard.answering_errors(partial(_answer_readiness, stores))),
        Route(CHALLENGE, partial(_answer_challenge, admission)),
        Route("/openapi.json", partial(_answer_constant, document)),
        *routes_of_earlier_services(stores),
        *(Route(path, mcp, methods=["POST"]) for path in _MCP if mcp),
    ]
    for name, operation in served.items():
        folder = exports if operation.writes_paths else root
        answer = partial(
            _append_events if name == "append" else _run_operation, stores, name, operation, folder
        )
        methods = ["POST", *(["GET"] if has_get_route(operation) else [])]
        routes.append(
            Route(f"/v1/projects/{{project:path}}/{name}", guard.answering_errors(answer), methods=methods)
        )
    handlers: Mapping[Any, Any] = {HTTPException: _answer_http_error, Exception: _answer_internal_error}
    lifespan = mcp.lifespan if mcp else None
    return guard.Guard(Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan), admission)


async def _run_operation(
    stores: OpenStores, name: str, operation: Operation, root: Path | None, call: Call
) -> Response:
    if call.method == "GET":
        query = unquote_to_bytes(call.scope["query_string"])
        if query.decode(errors="ignore").encode() != query:
            raise guard.Refused(422, "bad_request", "the query string is not UTF-8", "encode it as UTF-8")
        texts = {key: call.query_params.getlist(key) for key in call.query_params}
        given = fields_from_texts(operation.request, texts)
    else:
        given = await guard.read_json_object(call)
    return await _run_and_answer(stores, call, partial(_call_and_encode, name, given, root))


def _call_and_encode(name: str, given: dict[str, Any], root: Path | None, store: Store) -> bytes:
    return msgspec.json.encode(catalogue.call_operation(store, name, given, root=root, exports=root))


async def _append_events(stores: OpenStores, name: str, _: object, root: Path | None, call: Call) -> Response:
    """Append the events in a body: one event, a list, `{"events": […]}`, or one event per line."""
    data = await guard.read_body(call, guard.EVENTS, (guard.LINES, JSON))
    if guard.media_type_of(call) == guard.LINES:
        return await _run_and_answer(
            stores, call, lambda store: append_and_acknowledge(store, data, root), guard.LINES
        )
    given = guard.decode_json(data)
    request = given if isinstance(given, dict) and "events" in given else {"events": given}
    return await _run_and_answer(stores, call, partial(_call_and_encode, name, request, root))


async def _run_and_answer(
    stores: OpenStores, call: Call, answer: Callable[[Store], bytes], media_type: str = JSON
) -> Response:
    client = call.headers.get(HEADER)
    with recording_client(client and unquote(client)):
        data = await run_in_threadpool(stores.run, call.path_params["project"], answer)
    return Response(data, media_type=media_type)


async def _answer_constant(data: bytes, _: Call) -> Response:
    return Response(data, media_type=JSON)


async def _answer_challenge(admission: Admission, call: Call) -> Response:
    """Prove to a client that this server has the token, before the client sends it."""
    try:
        proof = compute_token_proof(admission.token or "", call.query_params.get("nonce", ""), admission.url)
    except ValueError as error:
        return guard.problem_response(Problem("bad_request", str(error), "see /openapi.json"), 422)
    if admission.token is None:
        return guard.problem_response(
            Problem("no_route", "this server has no token", "connect without one"), 404
        )
    return Response(proof, media_type="text/plain")


async def _answer_readiness(stores: OpenStores, call: Call) -> Response:
    if troubles := await run_in_threadpool(stores.find_problems_of_stores):
        # This route needs no token, so the reasons are only in `status`, which does.
        message = f"not ready: {', '.join(troubles)}"
        return guard.problem_response(
            Problem("not_ready", message, "see the operation status", retryable=True), 503
        )
    return await _answer_constant(b'{"ready":true}', call)


async def _answer_http_error(_: Call, error: HTTPException) -> Response:
    code = {404: "no_route", 405: "bad_method"}.get(error.status_code, "bad_request")
    return guard.problem_response(Problem(code, error.detail, "see /openapi.json"), error.status_code)


async def _answer_internal_error(_: Call, error: Exception) -> Response:
    return guard.problem_response(Problem("internal", type(error).__name__, "report it"), 500)

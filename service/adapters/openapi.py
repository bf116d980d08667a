"""The description of the service: OpenAPI 3.1, made from the declarations of operations."""

from typing import Any

import msgspec

from memlog.service.adapters.compat import ROUTES, CreateMemory
from memlog.service.adapters.problems import ProblemAnswer
from memlog.service.catalogue import Operations, answer_schemas
from memlog.service.engine.operation import Operation
from memlog.service.engine.requests import Request, description_of, fields_of, schema_of

_JSON = "application/json"
_TEXTS = ("text", "question")
"""Fields with words of people, which do not belong into addresses."""

_PROJECT = {"name": "project", "in": "path", "required": True, "schema": {"type": "string"}}


_CHAT = "/v1/projects/{project}/pre_route"
_EVENT = {"type": "object", "required": ["type"]}
_MANY = {"type": "array", "items": _EVENT}
_EVENTS = [_EVENT, _MANY, {"type": "object", "required": ["events"], "properties": {"events": _MANY}}]


def has_get(operation: Operation[Any, Any, Any, Any]) -> bool:
    """Whether an operation is read with GET, too: it appends nothing, writes no file and takes no text."""
    request: type[Request] = operation.request
    is_read = operation.effect == "read" and not operation.writes_paths
    return is_read and not any(each.name in _TEXTS for each in fields_of(request))


def openapi(served: Operations, version: str) -> dict[str, Any]:
    """Return the document.

    served: the operations that have a route.
    """
    template = "#/components/schemas/{name}"
    answers, schemas = answer_schemas(template)
    (problem,), more = msgspec.json.schema_components([ProblemAnswer], ref_template=template)
    paths: dict[str, Any] = {}
    for name, operation in served.items():
        described = {
            "tags": [name.rpartition(".")[0] or "store"],
            "summary": description_of(operation.request).partition("\n")[0],
            "description": f"{description_of(operation.request)}\n\nEffect: {operation.effect}.",
            "responses": {
                "200": {"description": "done", "content": {_JSON: {"schema": answers[name]}}},
                "4XX": {"$ref": "#/components/responses/Problem"},
                "5XX": {"$ref": "#/components/responses/Problem"},
            },
        }
        schema = schema_of(operation.request)
        body = {"required": bool(schema["required"]), "content": {_JSON: {"schema": schema}}}
        path = paths.setdefault(f"/v1/projects/{{project}}/{name}", {"parameters": [_PROJECT]})
        path["post"] = described | {"operationId": name, "requestBody": body}
        if has_get(operation):
            path["get"] = described | {"operationId": f"{name}.get", "parameters": _parameters(operation)}
    append = paths["/v1/projects/{project}/append"]["post"]["requestBody"]
    append["content"] = {_JSON: {"schema": {"anyOf": _EVENTS}}, "application/x-ndjson": {"schema": _EVENT}}
    paths |= _of_seeds(paths)
    for name in ("healthz", "readyz"):
        answer = {"200": {"description": "well"}, "503": {"$ref": "#/components/responses/Problem"}}
        paths[f"/{name}"] = {"get": {"operationId": name, "security": [], "responses": answer}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "memlog", "version": version},
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "schemas": schemas | more,
            "responses": {"Problem": {"description": "refused", "content": {_JSON: {"schema": problem}}}},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _of_seeds(paths: dict[str, Any]) -> dict[str, Any]:
    """Return the routes of two earlier services."""
    some = {"content": {_JSON: {"schema": {}}}, "description": "done"}
    problem = {
        "4XX": {"$ref": "#/components/responses/Problem"},
        "5XX": paths[_CHAT]["post"]["responses"]["5XX"],
    }

    def described(name: str, status: str = "200", request: type[Request] | None = None) -> dict[str, Any]:
        body = (
            {} if request is None else {"requestBody": {"content": {_JSON: {"schema": schema_of(request)}}}}
        )
        summary = {} if request is None else {"summary": description_of(request).partition("\n")[0]}
        return (
            {"operationId": name, "tags": ["seeds"], "responses": {status: some} | problem} | summary | body
        )

    session, memory = (
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in ("session", "memory")
    )
    memories = "/api/sessions/{session}/memories"
    chat = paths[_CHAT]["post"] | {"operationId": "chat"}
    return {
        "/v1/projects/{project}/chat": {"parameters": [_PROJECT], "post": chat},
        **{path: {"post": described(path, request=request)} for path, (request, _) in ROUTES.items()},
        memories: {
            "parameters": [session],
            "get": described("session.memories"),
            "post": described("session.create_memory", "201", CreateMemory),
        },
        f"{memories}/{{memory}}": {
            "parameters": [session, memory],
            "get": described("session.memory"),
            "delete": described("session.delete_memory", "204"),
        },
    }


def _parameters(operation: Operation[Any, Any, Any, Any]) -> list[dict[str, Any]]:
    request: type[Request] = operation.request
    schema, fields = schema_of(request), {field.name: field for field in fields_of(request)}
    return [
        {"name": name, "in": "query", "required": name in schema["required"], "schema": kind}
        for name, kind in schema["properties"].items()
        if not fields[name].struct
    ]

"""The description of the service: OpenAPI 3.1, made from the declarations of operations."""

from typing import Any

import msgspec

from memlog.service.catalogue import Operations, answer_schemas
from memlog.service.operations import Operation
from memlog.service.problems import ProblemAnswer
from memlog.service.requests import Request, description_of, fields_of, schema_of

_JSON = "application/json"
_TEXTS = ("text", "question")
"""Fields with words of people, which do not belong into addresses."""

_PROJECT = {"name": "project", "in": "path", "required": True, "schema": {"type": "string"}}


def has_get(operation: Operation[Any, Any, Any, Any]) -> bool:
    """Whether an operation is read with GET, too: it appends nothing and takes no text."""
    request: type[Request] = operation.request
    return operation.effect == "read" and not any(each.name in _TEXTS for each in fields_of(request))


def openapi(served: Operations, version: str) -> dict[str, Any]:
    """The document.

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


def _parameters(operation: Operation[Any, Any, Any, Any]) -> list[dict[str, Any]]:
    request: type[Request] = operation.request
    schema, fields = schema_of(request), {field.name: field for field in fields_of(request)}
    return [
        {"name": name, "in": "query", "required": name in schema["required"], "schema": kind}
        for name, kind in schema["properties"].items()
        if not fields[name].struct
    ]

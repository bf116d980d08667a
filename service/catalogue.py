"""Looks up a store's operations by name, for adapters and reference pages."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import list_fields
from memlog.query.context.escaping import escape_for_python, escape_invisible
from memlog.query.request import Request
from memlog.service.engine.operation import (
    PLACES,
    Operation,
    call_and_require_answer,
    import_group_named,
    naming_chats_by_folders_of_store,
    operations_of_group,
)
from memlog.service.engine.readable import EVERYTHING, allowing_files_below, resolve_readable
from memlog.service.projects import Projects

GROUPS: dict[str, type] = {name: import_group_named(name) for name in PLACES}
"""The classes of a store's operation groups, keyed by attribute name; the store itself comes first."""


Operations = dict[str, Operation]
"""Operations, keyed by name."""


@cache
def operations() -> Operations:
    """Return all operations of a store, keyed by name, such as `search` or `memories.save`."""
    return _operations_of_groups(GROUPS)


@cache
def project_operations() -> Operations:
    """Return all operations of `Projects`, keyed by name, such as `projects.list`."""
    return _operations_of_groups(["projects"])


def tool_operations() -> Operations:
    """Return the operations that agents may use as tools, keyed by name, such as `tools.memory_search`."""
    return {name: each for name, each in operations().items() if each.for_agents}


def _operations_of_groups(groups: Iterable[str]) -> Operations:
    return {
        f"{group}.{name}".lstrip("."): each
        for group in groups
        for name, each in operations_of_group(group).items()
    }


def call_operation(
    owner: object,
    name: str,
    given: Mapping[str, Any],
    *,
    root: Path | None = EVERYTHING,
    exports: Path | None = EVERYTHING,
) -> Any:  # noqa: ANN401
    """Call the operation `name` with the JSON values of a request, and return the answer.

    owner: a local or remote store, or `Projects`. given: the fields of the request, except local ones.
    root, exports: the folders that must contain all paths to read and to write, respectively; relative paths
        start there. None to allow no paths.

    Raises:
        BadInput: there is no such operation or field. NotFound: what the request names is missing.
        MemlogError: an error of the operation.
    """
    known = project_operations() if isinstance(owner, Projects) else operations()
    if name not in known:
        raise BadInput(f"there is no operation {name!r}", hint=f"use one of: {', '.join(known)}")
    group, _, method = name.rpartition(".")
    target = getattr(owner, group) if group and not isinstance(owner, Projects) else owner
    kind: type[Request] = known[name].request
    of_paths = [each.name for each in list_fields(kind) if each.reads and each.reads.form == "path"]
    with naming_chats_by_folders_of_store(owner):
        request = kind.of(given, name)
    with allowing_files_below(exports if known[name].writes_paths else root):
        below = {field: _resolve_paths(getattr(request, field)) for field in of_paths}
        return call_and_require_answer(
            getattr(target, method), msgspec.structs.replace(request, **below) if below else request
        )


def _resolve_paths(given: Any) -> Any:  # noqa: ANN401 - a path, several, or None
    if isinstance(given, tuple):
        return tuple(map(resolve_readable, given))
    return None if given is None else resolve_readable(given)


def escape_answer(answered: Any) -> Any:  # noqa: ANN401 - an answer, or what is in one
    """Convert an answer to JSON values, with invisible characters escaped as in contexts."""
    value = msgspec.to_builtins(answered)
    if isinstance(value, str):
        return escape_invisible(value, escape_for_python, kept="\n\t")
    if isinstance(value, dict):
        return {escape_answer(key): escape_answer(each) for key, each in value.items()}
    return [escape_answer(each) for each in value] if isinstance(value, list) else value


def answer_schema(name: str) -> dict[str, Any]:
    """Return the JSON schema, with definitions, of an operation whose answer is a single struct."""
    (schema,), components = msgspec.json.schema_components(
        operations()[name].types_if_found, ref_template="#/$defs/{name}"
    )
    described: dict[str, Any] = components.pop(schema["$ref"].rpartition("/")[2])
    return described | ({"$defs": components} if components else {})


def answer_schemas(ref_template: str) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return the answer schemas of all operations, keyed by name, and the schemas that they refer to.

    ref_template: how to refer to a schema, such as `#/components/schemas/{name}`.
    """
    answers, components = {}, {}
    for name, each in (operations() | project_operations()).items():
        # The types are converted one by one, because msgspec accepts no union of untagged structs.
        schemas = []
        for kind in each.types_if_found:
            (schema,), found = msgspec.json.schema_components([kind], ref_template=ref_template)
            schemas.append(schema)
            components.update(found)
        answers[name] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return answers, components

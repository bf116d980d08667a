"""docs/operations.md: every operation of a store: its effect, the fields of its request, and its answer."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from memlog.eventlog.fields import Field
from memlog.query.request import Request
from memlog.service.catalogue import answer_schemas
from memlog.service.engine.operation import Operation
from memlog.service.engine.requests import list_fields, read_description_of_request
from tests.support.sample_calls import ALL, PROJECTS

WITHOUT_COMMAND = {
    "append": "`memlog append` reads lines from stdin, or one event by options",
    "documents.add": "`memlog docs add` takes several paths, as `store.documents.add_all`",
    "erasure.prove": "`memlog scrub --prove` searches",
}
"""Operations whose command has another form."""

_HEAD = """\
# Operations

Every operation of a store: its effect, the fields of its request, and its answer. Made from the declarations
by `make snapshots`, checked by tests/service/test_operations.py. Options of commands are the fields with
dashes: [cli.md](cli.md).

- **read** appends nothing; **append** adds events; **erase** makes events or their bytes disappear;
  **maintain** changes files that the log can give back.
- Where something is missing, Python returns None, False or an empty list; commands and other adapters fail
  with the named code.
"""


def page(commands: Mapping[type[Request], str]) -> str:
    """The whole page.

    commands: the words of the command of each request.
    """
    answers, components = answer_schemas("{name}")
    lines = [line for name in ALL for line in _section(name, commands, answers[name])]
    lines.append("\n## Answers\n\nWhat operations answer, by name.")
    for name, schema in sorted(components.items()):
        lines.extend(_answer(name, schema))
    return _HEAD + "".join(f"{line}\n" for line in lines)


def _section(name: str, commands: Mapping[type[Request], str], answer: dict[str, Any]) -> Iterator[str]:
    operation = ALL[name]
    request = operation.request
    path = commands.get(request)
    yield f"\n## {name}\n"
    command = f"`memlog {path}`" if path else WITHOUT_COMMAND.get(name, "none")
    python = name.replace("projects", "memlog.Projects(FOLDER)") if name in PROJECTS else f"store.{name}"
    yield f"Python `{python}` · command {command} · {_effect(operation)}\n"
    yield read_description_of_request(request).strip()
    fields = [field for field in list_fields(request) if not field.is_local]
    if fields:
        yield "\n| field | values | description |\n| --- | --- | --- |"
    for field in fields:
        yield from _rows(field)
    missing = f"; `{operation.missing}` where it is missing" if operation.missing else ""
    yield f"\nAnswer: {_kind(answer)}{missing}."


def _effect(operation: Operation) -> str:
    marks = {
        "until it is stopped": operation.is_endless,
        "reads files of this machine": operation.reads_paths,
        "offered to agents": operation.for_agents,
    }
    return ", ".join([f"**{operation.effect}**", *(mark for mark, has in marks.items() if has)])


def _answer(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"\n### memlog.{name}\n"
    yield from (line.strip() for line in schema.get("description", "").splitlines())
    members = schema.get("properties", {}).items()
    yield "\n" + "; ".join(f"`{member}` {_kind(kind)}" for member, kind in members)


def _kind(schema: dict[str, Any]) -> str:
    """A JSON schema in words, with links to what it refers to."""
    if "$ref" in schema:
        return f"[{schema['$ref']}](#memlog{schema['$ref'].lower()})"
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    if schema.get("type") == "array":
        return f"a list of {_kind(schema['items'])}" if "items" in schema else "a list"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"an object with values: {_kind(inner)}" if isinstance(inner, dict) else "an object"
    return str(schema.get("type", "any value"))


def _rows(field: Field, prefix: str = "") -> Iterator[str]:
    values = "object" if field.struct else _values(field)
    needed = " Required." if field.default is msgspec.NODEFAULT else ""
    yield f"| `{prefix}{field.name}` | {values} | {field.description}{needed}{_default(field)} |"
    for inner in list_fields(field.struct) if field.struct else ():
        if not inner.is_local:
            yield from _rows(inner, f"{field.name}.")


def _values(field: Field) -> str:
    if field.choices:
        return ", ".join(f"`{choice}`" for choice in field.choices)
    kind = field.reads.form if field.reads and field.reads.form else getattr(field.wire, "__name__", "list")
    least = "" if field.least is None else f", from {field.least:,.15g}"
    most = "" if field.most is None else f" to {field.most:,.15g}"
    return f"{kind}{least}{most}"


def _default(field: Field) -> str:
    if field.struct or field.default in (None, msgspec.NODEFAULT, frozenset(), ()):
        return ""
    return f" Default: `{json.dumps(msgspec.to_builtins(field.default))}`."

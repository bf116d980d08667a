"""docs/operations.md: every operation of a store, with the fields of its request."""

import json
from collections.abc import Iterator, Mapping

import msgspec

from memlog.eventlog.struct_fields import Field
from memlog.query.request import Request
from memlog.service.catalogue import operations
from memlog.service.requests import description_of, fields_of

WITHOUT_COMMAND = {
    "documents.add": "`memlog docs add` takes several paths, as `store.documents.add_all`",
    "documents.get": "`memlog docs show` shows sources, too",
    "erasure.prove": "`memlog scrub --prove` searches",
}
"""Operations that no command has, and why."""

_HEAD = """\
# Operations

Every operation of a store, with the fields of its request: made from the requests by `make snapshots`,
checked by tests/service/test_operations.py. Options of commands are the fields with dashes: [cli.md](cli.md).
"""


def page(commands: Mapping[type[Request], str]) -> str:
    """The whole page.

    commands: the words of the command of each request.
    """
    return _HEAD + "".join(f"{line}\n" for name in operations() for line in _section(name, commands))


def _section(name: str, commands: Mapping[type[Request], str]) -> Iterator[str]:
    request = operations()[name].request
    path = commands.get(request)
    yield f"\n## {name}\n"
    command = f"`memlog {path}`" if path else WITHOUT_COMMAND[name]
    yield f"Python `store.{name}` · command {command} · request `{request.__name__}`\n"
    yield description_of(request).strip()
    fields = [field for field in fields_of(request) if not field.is_local]
    if fields:
        yield "\n| field | values | description |\n| --- | --- | --- |"
    for field in fields:
        yield from _rows(field)


def _rows(field: Field, prefix: str = "") -> Iterator[str]:
    values = "object" if field.struct else _values(field)
    needed = " Required." if field.default is msgspec.NODEFAULT else ""
    yield f"| `{prefix}{field.name}` | {values} | {field.description}{needed}{_default(field)} |"
    for inner in fields_of(field.struct) if field.struct else ():
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

"""The contract of operations: method, command, schema, answer, effect and page agree with the declaration."""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import click
import msgspec
import pytest

import memlog
from memlog import Store
from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Field
from memlog.query.request import Request
from memlog.query.search.request import Search
from memlog.service.catalogue import GROUPS, answer_schemas, call_operation, operations
from memlog.service.engine.operation import NOUNS
from memlog.service.engine.requests import json_schema_of_request, list_fields, read_description_of_request
from tests.cli.operations_page import WITHOUT_COMMAND, page
from tests.support.command_tree import COMMANDS
from tests.support.generated_code import FILES
from tests.support.sample_calls import ALL, BY_OPERATION, BY_RULE, GIVEN, PROJECTS, fits, request_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/operations.md"
PAGES = [ROOT / "README.md", *(page for page in (ROOT / "docs").rglob("*.md") if page != PAGE)]

BLOCK = re.compile(r"^```\w*\n.*?^```", re.MULTILINE | re.DOTALL)

WITHOUT_OPTION = {
    ("projects remove", "lock_timeout"): "the setting of the project's store",
    ("docs add", "kind"): "`workspace add` adds files that are memories",
}

FIELDS_OF_SETTINGS = {
    "context_scope": "scope",
    "context_health_tokens": "health_tokens",
    "context_preference_tokens": "preference_tokens",
    "search_limit": "k",
    "search_mode": "mode",
    "search_fusion": "fusion",
    "search_depth": "depth",
    "archive_threshold": "threshold",
}


def commands() -> dict[type[Request], str]:
    return {operation.request: " ".join(path) for path, operation in BY_OPERATION.items()}


def wire_fields(request: type[Request]) -> Iterator[Field]:
    """The fields that any adapter takes, with those of the requests within."""
    for field in list_fields(request):
        if field.struct:
            yield from wire_fields(field.struct)
        elif not field.is_local:
            yield field


def test_a_command_has_one_operation() -> None:
    with_command = [name for name, each in ALL.items() if each.request in commands()]
    assert len(with_command) == len(commands())
    assert WITHOUT_COMMAND.keys() <= ALL.keys() - {*with_command}


def test_a_command_takes_every_field_and_nothing_of_another_name() -> None:
    for request, path in commands().items():
        taken = {str(parameter.name) for parameter in COMMANDS[tuple(path.split())].params}
        taken = {FIELDS_OF_SETTINGS.get(each, each) for each in taken}
        fields = {field.name for field in wire_fields(request) if (path, field.name) not in WITHOUT_OPTION}
        assert fields - taken == set(), path


def test_a_method_has_the_signature_and_the_documentation_of_its_request() -> None:
    for name, operation in ALL.items():
        fields = {field.name: field for field in list_fields(operation.request)}
        parameters = [*inspect.signature(operation).parameters.values()][1:]
        assert {each.name for each in parameters} <= fields.keys(), name
        assert inspect.signature(operation).return_annotation is not inspect.Signature.empty, name
        assert operation.__doc__ is not None, name
        assert read_description_of_request(operation.request).splitlines()[0] in operation.__doc__, name
        for field in fields.values():
            assert field.description, f"{operation.request.__name__}.{field.name} has no description"
            assert f"{field.name}: {field.description}" in operation.__doc__, name


def test_a_schema_describes_every_field_that_json_can_give() -> None:
    for name, operation in ALL.items():
        schema = json_schema_of_request(operation.request)
        json.dumps(schema)
        fields = [field for field in list_fields(operation.request) if not field.is_local]
        needed = [field.name for field in fields if field.default is msgspec.NODEFAULT]
        assert list(schema["properties"]) == [field.name for field in fields], name
        assert schema["required"] == needed, name
        for field in fields:
            described = schema["properties"][field.name]
            value = described["items"] if field.is_list else described
            assert {"type", "enum"} & value.keys(), (name, field.name, described)
            assert (value.get("minimum"), value.get("maximum")) == (field.least, field.most), (
                name,
                field.name,
            )
            assert value.get("enum", []) == [*field.choices], (name, field.name)


def test_every_default_fits_its_schema() -> None:
    """A JSON body of the defaults makes the same request as no body at all."""
    for name, operation in ALL.items():
        request = operation.request
        needed = {field.name: "x" for field in list_fields(request) if field.default is msgspec.NODEFAULT}
        defaults = {
            field: described["default"]
            for field, described in json_schema_of_request(request)["properties"].items()
            if "default" in described
        }
        try:
            made = request.of(json.loads(json.dumps(needed)))
        except BadInput:
            continue  # an "x" is no chat, no section, no list
        assert request.of(json.loads(json.dumps(needed | defaults))) == made, name


def log_of(store: Store) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (store.path / "log").rglob("*.jsonl")}


@pytest.mark.parametrize("name", ALL)
def test_an_operation_does_and_answers_what_it_declares(name: str, filled: Store, tmp_path: Path) -> None:
    operation, before = ALL[name], log_of(filled)
    owner = memlog.Projects(tmp_path) if name in PROJECTS else filled
    asked = json.loads(json.dumps(request_of(name, tmp_path)))
    given = call_operation(owner, name, asked)
    assert any(fits(given, kind) for kind in operation.types_if_found), (
        f"{given!r} is none of {operation.types_if_found}"
    )
    # A maintenance may write seals, no events.
    assert operation.effect != "read" or log_of(filled) == before
    if operation.missing:
        nothing: dict[str, Any] = {name: "nothing" for name, value in GIVEN.items() if isinstance(value, str)}
        nothing |= {"ids": ["nothing"], "memory_ids": ["nothing"]}
        fields = request_of(name, tmp_path, GIVEN | nothing | {"section": "user"})
        fields |= (
            {"section": "user", "key": "nothing"} if "key" in operation.request.__struct_fields__ else {}
        )
        with pytest.raises(memlog.NotFound) as missing:
            call_operation(owner, name, fields | ({"name": "nothing"} if "name" in fields else {}))
        assert missing.value.code == operation.missing


CANARY = "zqzq8beside"


@pytest.mark.parametrize("name", [name for name in ALL if name != "projects.search"])
def test_an_operation_neither_reads_nor_changes_a_store_beside_its_own(
    name: str, filled: Store, tmp_path: Path
) -> None:
    """Not even one in which things have the same names; but for the search of all stores."""
    said = memlog.Message(channel="x", chat_id="1", id="m1", role="user", content=f"tea {CANARY}")
    with memlog.open(tmp_path / "beside") as beside:
        beside.append(said)
        beside.memories.save(f"likes {CANARY}", memory_id="likes")
        beside.core.set("user", "name", CANARY)
        beside.facts.set("city", CANARY, single=True)
        before = log_of(beside), beside.maintenance.digest()
        owner = memlog.Projects(tmp_path) if name in PROJECTS else filled
        given = call_operation(owner, name, json.loads(json.dumps(request_of(name, tmp_path))))
        assert CANARY.encode() not in msgspec.json.encode(given)
        assert CANARY.encode() not in b"".join(log_of(filled).values())
        assert (log_of(beside), beside.maintenance.digest()) == before


def test_answers_are_public_and_described() -> None:
    answers, components = answer_schemas("{name}")
    assert answers.keys() == ALL.keys()
    assert [name for name in components if name not in memlog.__all__] == []
    assert [name for name, schema in components.items() if not schema.get("description")] == []
    for name, operation in ALL.items():
        says_missing = {type(None), Literal[False]} & {*get_args(operation.type_of_answer)}
        assert operation.missing in NOUNS if says_missing else operation.missing in (None, *NOUNS), name


def test_a_local_field_is_no_part_of_a_mapping() -> None:
    for given in ({"filters": {"own_scope": True}}, {"own_scope": True}, {"progress": None}):
        with pytest.raises(BadInput, match="does not accept"):
            Search.of({"text": "tea", **given})
    with pytest.raises(BadInput, match="does not accept 'stop'"):
        operations()["maintenance.watch"].request.of({"once": True, "stop": None})


def test_an_operation_has_an_example() -> None:
    """In a block of a page that the tests run: of the command, or of the method.

    What a command made by rule shows stands in docs/cli.md.
    """
    blocks = [block for page in PAGES for block in BLOCK.findall(page.read_text())]
    for name, operation in ALL.items():
        path = commands().get(operation.request)
        if path is not None and (*path.split(),) in BY_RULE:
            continue
        patterns = [rf"(store\.)?{re.escape(name)}\("]
        if path is not None:
            patterns.append(rf"^(\$ )?(.*\| )?memlog( -\S+( \S+)?)* {re.escape(path)}\b")
        found = re.compile("|".join(patterns), re.MULTILINE)
        assert any(found.search(block) for block in blocks), name


def test_each_group_is_an_attribute_of_a_store() -> None:
    store = GROUPS[""]
    assert all(hasattr(store, group) for group in GROUPS if group)


@pytest.fixture(scope="module", autouse=True)
def _page(pytestconfig: pytest.Config) -> None:
    """`--snapshot-update` writes the page, and the code that is made from the catalogue."""
    if pytestconfig.getoption("update_snapshots"):
        PAGE.write_text(page(commands()))
        for path, made in FILES.items():
            path.write_text(made())


def test_the_page_of_operations_is_up_to_date() -> None:
    assert PAGE.read_text() == page(commands()), "`make snapshots` writes it anew; read the difference"


def test_what_is_made_from_the_catalogue_is_up_to_date() -> None:
    for path, made in FILES.items():
        assert path.read_text() == made(), f"{path}: `make snapshots` writes it anew"


def test_an_unknown_field_of_a_command_would_be_seen() -> None:
    """What the tests above compare is not empty."""
    assert len(ALL) > 50
    assert (
        sum(len(json_schema_of_request(each.request)["properties"]) for each in operations().values()) > 150
    )
    assert isinstance(COMMANDS[("query",)], click.Command)

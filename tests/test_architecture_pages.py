"""docs/architecture.md and docs/storage/database-schema.md say what the code is."""

import ast
import re

import memlog
from memlog.projector.embedding.models import find_bundled_model
from memlog.projector.lifecycle import Projector
from memlog.projector.schema import read_schema
from tests.support.places import ROOT

ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()
SCHEMA_PAGE = ROOT / "docs/storage/database-schema.md"
SCHEMA = SCHEMA_PAGE.read_text()


_TABLES = re.compile(r"(?<=^```sql\n)-- The read model.*?(?=^```)", re.MULTILINE | re.DOTALL)


def test_the_schema_on_the_page_is_the_one_that_is_executed(pytestconfig):
    """`--snapshot-update` writes it."""
    if pytestconfig.getoption("update_snapshots"):
        SCHEMA_PAGE.write_text(_TABLES.sub(lambda _: read_schema(), SCHEMA))
    assert _TABLES.findall(SCHEMA_PAGE.read_text()) == [read_schema()]
    assert read_schema() == (ROOT / "projector/schema.sql").read_text()


def _rooms() -> str:
    """A row per folder of code, in the order of imports: what it does, and its modules."""
    rows = ["| folder | does | modules |", "| --- | --- | --- |"]
    for layer in ("eventlog", "projector", "query", "service", "cli"):
        for path in sorted((ROOT / layer).rglob("__init__.py")):
            (first, *_) = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")
            names = sorted(each.stem for each in path.parent.glob("*.py") if each != path)
            does = " ".join(first.split()).replace("|", "\\|")
            modules = ", ".join(f"`{each}`" for each in names)
            rows.append(f"| `{path.parent.relative_to(ROOT)}/` | {does} | {modules} |")
    return "\n".join([*rows, ""])


_ROOMS = re.compile(r"(?<=^## Folders\n\n)(?:\|.*\n)*", re.MULTILINE)


def test_the_folders_on_the_page_are_those_of_the_code(pytestconfig):
    """`--snapshot-update` writes them."""
    page = ROOT / "docs/architecture.md"
    if pytestconfig.getoption("update_snapshots"):
        page.write_text(_ROOMS.sub(lambda _: _rooms(), page.read_text()))
    assert _ROOMS.findall(page.read_text()) == [_rooms()]


def test_the_vector_tables_on_the_page_are_those_of_a_store(tmp_path):
    (tmp_path / "log").mkdir()
    with memlog.open(tmp_path) as store:
        store.maintenance.status()
    projector = Projector(tmp_path)
    made = (
        projector.connect_to_live()
        .execute("SELECT sql FROM sqlite_master WHERE sql LIKE '%USING vec0%'")
        .fetchall()
    )
    projector.close()
    assert len(made) == 2
    for (sql,) in made:
        assert f"{sql};\n" in SCHEMA
        assert f"float[{find_bundled_model().dimension}]" in sql


def test_every_module_that_the_page_names_stands():
    named = set(re.findall(r"`((?:eventlog|projector|query|service|cli)/[\w/]*(?:\.\w+)?)`", ARCHITECTURE))
    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_page_names_every_layer_in_the_order_of_imports():
    assert "`cli → service → query → projector → eventlog`" in ARCHITECTURE


def test_a_store_holds_what_the_page_says_and_nothing_else(tmp_path):
    with memlog.open(tmp_path) as store:
        store.append([memlog.MemorySaved(content="tea")])
        store.maintenance.watch(once=True)
        assert store.context("tea").entries
        store.erasure.forget(match="tea")
        store.erasure.scrub()
    rows = set(
        re.findall(r"^\| `([\w.]+)/?` \|", ARCHITECTURE.partition("What is disposable")[2], re.MULTILINE)
    )
    assert {path.name for path in tmp_path.iterdir()} | {"memlog.toml"} == rows

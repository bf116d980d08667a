"""How the folders at the top install, and which may import which."""

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter

import memlog
from tests.support.places import ROOT

FOLDERS = ["eventlog", "projector", "query", "service", "cli"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_folder_with_code_is_a_package_and_so_installs():
    with_code = {path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    assert len(with_code) > len(FOLDERS)
    assert [folder for folder in sorted(with_code) if not (folder / "__init__.py").is_file()] == []
    setuptools = PYPROJECT["tool"]["setuptools"]
    assert setuptools["package-dir"] == {"": ".pkg"}
    assert setuptools["packages"]["find"] == {"where": [".pkg"], "namespaces": False}


def test_every_file_that_the_code_reads_is_installed():
    data = PYPROJECT["tool"]["setuptools"]["package-data"]
    installed = {
        path
        for package, patterns in data.items()
        for pattern in patterns
        for path in ROOT.joinpath(*package.split(".")[1:]).glob(pattern)
    }
    files = {path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()}
    assert {path for path in files - installed if path.suffix not in (".py", ".pyc")} == set()


def test_every_folder_at_the_top_that_has_code_is_known():
    tops = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert tops == {*FOLDERS, "tests"}


def test_the_package_reaches_the_folders_through_links():
    links = {path.name: path.resolve() for path in (ROOT / ".pkg/memlog").iterdir() if path.is_symlink()}
    assert links == {folder: ROOT / folder for folder in FOLDERS}


def module_of(path):
    return "memlog." + ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}


@cache
def nodes() -> dict[str, list[ast.AST]]:
    """Those of each module."""
    return {module: [*ast.walk(ast.parse(path.read_text()))] for module, path in MODULES.items()}


def imported(module):
    """What a module imports, wherever in it: modules by their dotted names, of memlog itself its names."""
    for node in nodes()[module]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports between folders are absolute"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in MODULES or node.module == "memlog" else node.module


FACADE = {f"memlog.{name}" for name in memlog.__all__}


@cache
def imports() -> dict[str, set[str]]:
    return {module: set(imported(module)) for module in MODULES}


def below(name, *packages):
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def test_imports_follow_the_arrow():
    """cli → service → query → projector → eventlog."""
    for module, names in imports().items():
        folder = module.split(".")[1]
        above = [f"memlog.{other}" for other in FOLDERS[FOLDERS.index(folder) + 1 :]]
        assert [name for name in names if below(name, *above)] == [], module
        # It would reach every layer.
        assert folder == "cli" or names & {"memlog", *FACADE} == set(), module


ERRORS_AND_EVENTS = tuple(f"memlog.eventlog.{name}" for name in ("errors", "events", "fields"))
STARTS_FAST = tuple(
    f"memlog.eventlog.{name}"
    for name in (
        *("categories", "codec.decode", "files.locks", "log.layout", "log.quarantine", "log.streams"),
        *("log.writer", "secrets.detection", "settings", "timestamps"),
    )
)
"""What an append and the settings are made of: it starts without a layer above the log (test_starting.py)."""
ADAPTERS = {
    "memlog.cli": ("memlog.service", *ERRORS_AND_EVENTS, *STARTS_FAST, "memlog.eventlog.sections"),
    "memlog.service.adapters.http": ("memlog.service", *ERRORS_AND_EVENTS),
    "memlog.service.adapters.mcp": ("memlog.service", *ERRORS_AND_EVENTS),
    "memlog.service.exchange.formats": (
        *ERRORS_AND_EVENTS,
        "memlog.eventlog.journals",
        "memlog.service.exchange.dialogues",
        "memlog.service.exchange.maps",
        "memlog.service.exchange.transcripts",
    ),
}
"""By package: what it may import of memlog beside itself and, but for importers, the public names."""


ROOMS = ["engine", "memory", "documents", "retrieval", "exchange", "llm", "upkeep", "", "adapters"]
"""The folders of `service`, ground first; "" is the door: the modules that no folder has."""


def test_the_rooms_of_the_service_import_those_before_them():
    assert {path.parent.name for path in (ROOT / "service").glob("*/__init__.py")} == {*ROOMS} - {""}

    def room_of(module):
        name = module.removeprefix("memlog.service.").partition(".")[0]
        return name if name in ROOMS else ""

    for module, names in imports().items():
        if below(module, "memlog.service"):
            above = ROOMS[ROOMS.index(room_of(module)) + 1 :]
            inside = [name for name in names if below(name, "memlog.service")]
            assert [name for name in inside if room_of(name) in above] == [], module


def test_an_adapter_imports_the_service_alone():
    found = {
        (module, name)
        for adapter, allowed in ADAPTERS.items()
        for module, names in imports().items()
        if below(module, adapter)
        for name in names
        if below(name, "memlog") and not below(name, adapter, *allowed)
        if adapter.endswith("formats") or name not in {"memlog", *FACADE}
    }
    assert found == set()


DISTRIBUTIONS_OF_ADAPTERS = {
    ("aiohttp", "fastapi", "flask", "litestar", "starlette", "uvicorn"): ("memlog.service.adapters.http",),
    ("fastmcp", "mcp"): ("memlog.service.adapters.mcp",),
    ("anthropic", "litellm", "ollama", "openai"): (),
    ("asyncpg", "boto3", "psycopg", "pymysql", "redis"): (),
}
"""Web frameworks, MCP, language models, database servers: who alone imports them."""


def test_rules_of_imports_name_modules_that_are_there():
    homes = {home for each in DISTRIBUTIONS_OF_ADAPTERS.values() for home in each}
    named = {*STARTS_FAST, *ADAPTERS, *(name for each in ADAPTERS.values() for name in each)}
    assert (named | homes) - MODULES.keys() == set()


def test_only_an_adapter_imports_what_it_adapts():
    for distributions, homes in DISTRIBUTIONS_OF_ADAPTERS.items():
        for module, names in imports().items():
            if not below(module, *homes):
                assert [name for name in names if below(name, *distributions)] == [], module


def test_no_module_imports_itself_by_way_of_others():
    """Imports within functions count, too."""
    graph = {module: names & MODULES.keys() for module, names in imports().items()}
    assert len(graph["memlog.eventlog.log.writer"]) > 10
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


def test_no_module_is_longer_than_700_lines():
    long = {module for module, path in MODULES.items() if path.read_text().count("\n") > 700}
    assert long == set()


def test_only_the_command_line_reads_the_environment():
    for folder in FOLDERS[:-1]:
        for path in (ROOT / folder).rglob("*.py"):
            # A variable that a library takes its setting from is set, not read.
            text = path.read_text().replace("os.environ.setdefault(", "")
            assert re.search(r"\benviron\b", text) is None, path


def test_no_name_means_two_classes():
    """Nor do names that differ in a leading underscore alone."""
    classes = Counter(
        node.name.lstrip("_")
        for of_module in nodes().values()
        for node in of_module
        if isinstance(node, ast.ClassDef)
    )
    assert len(classes) > 200
    assert {name for name, count in classes.items() if count > 1} == set()


LOADED_BY_NAME = ("memlog.cli.commands", "memlog.service.exchange.formats")
REASONS_FOR_A_SMALL_MODULE = {
    "memlog.cli.process.program": "the entry point, which sets what counts for all imports",
    "memlog.projector.passages.source_code": "a format, like its neighbours",
    "memlog.projector.subjects.contexts": "a subject, like its neighbours",
    "memlog.service.adapters.async_operations": "its types are in a file of their own",
    "memlog.service.adapters.mcp.http": "imports Starlette, which stdin and stdout do without",
    "memlog.service.documents.pdf_text": "the bounded process alone imports it",
}
"""Modules of less than 60 lines that fewer than two others import: why each is one of its own."""


def test_a_small_module_has_two_importers_or_a_reason():
    importers = Counter(name for names in imports().values() for name in names)
    small = {
        module
        for module, path in MODULES.items()
        if path.name != "__init__.py" and path.read_text().count("\n") < 60 and importers[module] < 2
    }
    assert {each for each in small if not below(each, *LOADED_BY_NAME)} == REASONS_FOR_A_SMALL_MODULE.keys()

"""How the folders at the top install, and which may import which."""

import ast
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import memlog

ROOT = Path(__file__).parent.parent
FOLDERS = ["eventlog", "projector", "query", "service", "cli"]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_folder_with_code_is_listed_and_installs_as_a_package_of_memlog():
    with_code = {
        f"memlog.{path.parent.relative_to(ROOT)}".replace("/", ".")
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("__init__.py")
    }
    setuptools = PYPROJECT["tool"]["setuptools"]
    assert set(setuptools["packages"]) == {"memlog", *with_code}
    assert set(setuptools["package-dir"]) == set(setuptools["packages"])


def test_every_folder_at_the_top_that_has_code_is_known():
    tops = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert tops == set(FOLDERS)


def test_type_checkers_reach_the_folders_through_links():
    for folder in FOLDERS:
        link = ROOT / ".pkg" / "memlog" / folder
        assert link.is_symlink()
        assert link.resolve() == ROOT / folder


def imported(path):
    """The names of memlog's folders that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports between folders are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("memlog.") and "." in name)


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_follow_the_arrow(folder):
    """cli → service → query → projector → eventlog."""
    allowed = set(FOLDERS[: FOLDERS.index(folder) + 1])
    for path in (ROOT / folder).rglob("*.py"):
        assert set(imported(path)) & set(FOLDERS) <= allowed, path


def test_no_module_below_the_command_line_imports_itself_by_way_of_others():
    """Imports within functions count, too."""
    modules = {
        "memlog." + ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for folder in FOLDERS[:-1]
        for path in (ROOT / folder).rglob("*.py")
    }
    graph = {
        module: {
            name if (name := f"{node.module}.{alias.name}") in modules else str(node.module)
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for module, path in modules.items()
    }
    assert len(graph["memlog.eventlog.log"]) > 10
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


def test_only_the_command_line_reads_the_environment():
    for folder in FOLDERS[:-1]:
        for path in (ROOT / folder).rglob("*.py"):
            # A variable that a library takes its setting from is set, not read.
            assert "environ" not in path.read_text().replace("os.environ.setdefault(", ""), path


def test_public_names_are_there():
    for name in memlog.__all__:
        assert getattr(memlog, name) is not None
    assert set(memlog.__all__) == {*memlog._HOME, "__version__"}

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


def test_every_folder_with_code_is_a_package_and_so_installs():
    with_code = {path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    assert len(with_code) > len(FOLDERS)
    assert [folder for folder in sorted(with_code) if not (folder / "__init__.py").is_file()] == []
    setuptools = PYPROJECT["tool"]["setuptools"]
    assert setuptools["package-dir"] == {"": ".pkg"}
    assert setuptools["packages"]["find"] == {"where": [".pkg"], "namespaces": False}


def test_no_module_repeats_the_name_of_its_package():
    """`facts/facts.py`, `memories/memory.py`: its name should tell what it does."""
    modules = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert [
        path for path in modules if path.stem.removesuffix("s") == path.parent.name.removesuffix("s")
    ] == []


def test_every_folder_at_the_top_that_has_code_is_known():
    tops = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert tops == set(FOLDERS)


def test_the_package_reaches_the_folders_through_links():
    links = {path.name: path.resolve() for path in (ROOT / ".pkg/memlog").iterdir() if path.is_symlink()}
    assert links == {folder: ROOT / folder for folder in FOLDERS}


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
    assert len(graph["memlog.eventlog.writer"]) > 10
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

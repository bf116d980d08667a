"""What is in the sdist and the wheel, and that it is the wheel which the other tests of this run import.

`make wheel-test` runs it. MEMLOG_DIST names the folder of both, MEMLOG_SOURCE the checkout behind them.
"""

import os
import tarfile
import zipfile
from pathlib import Path

import pytest

import memlog

pytestmark = pytest.mark.wheel

FOLDERS = ("eventlog", "projector", "query", "service", "cli")
DATA = {
    "memlog/py.typed",
    "memlog/__init__.pyi",
    "memlog/projector/schema.sql",
    *(
        "memlog/projector/vocab.txt",
        "memlog/projector/vocab.NOTICE",
        "memlog/projector/text/languages/NOTICE",
    ),
}


@pytest.fixture(scope="module")
def built() -> Path:
    return Path(os.environ["MEMLOG_DIST"])


@pytest.fixture(scope="module")
def modules() -> set[str]:
    """All modules and language files of the checkout, as files of the package."""
    source = Path(os.environ["MEMLOG_SOURCE"])
    found = {
        f"memlog/{path.relative_to(source)}"
        for folder in FOLDERS
        for pattern in ("*.py", "*.toml")
        for path in (source / folder).rglob(pattern)
    }
    assert len(found) > 40
    return {"memlog/__init__.py", *found}


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_holds_every_module_and_its_data_and_nothing_else(wheel, modules):
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == modules | DATA


def test_the_wheel_holds_its_licences_and_its_command(wheel):
    info = f"memlog_store-{memlog.__version__}.dist-info"
    assert b"Apache License" in wheel.read(f"{info}/licenses/LICENSE")
    notices = {f"{info}/licenses/projector/{name}" for name in ("text/languages/NOTICE", "vocab.NOTICE")}
    assert notices <= set(wheel.namelist())
    assert b"memlog = memlog.cli.process.program:main" in wheel.read(f"{info}/entry_points.txt")


def test_the_sdist_holds_every_module_too(built, modules):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {f".pkg/{name}" for name in modules | DATA} <= packed
    assert {"pyproject.toml", "README.md", "LICENSE"} <= packed


def test_it_is_the_wheel_that_is_imported():
    assert "site-packages" in Path(memlog.__file__).parts

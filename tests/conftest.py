"""What all tests share: a store, the fixture logs, and the embedding model, loaded once."""

import ctypes
import multiprocessing.context
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.support.places import FIXTURES, ROOT

# Without it numpy starts threads in each test process that imports it, and they spin while idle.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import memlog
from memlog.projector.embedding.models import OnnxEmbedder, load_embedder
from tests.support.capabilities import give_up_file_capabilities
from tests.support.damaged_stores import make_older as make_older_stores
from tests.support.examples import examples
from tests.support.generated import generate_once
from tests.support.in_memory import memory
from tests.support.month import make as make_month
from tests.support.month_log import MonthLog

# A sync to a disk takes 2 ms, and a test makes ten. What memlog syncs, and when, is tested in tests/crash.
if (folder := memory(room=4 * 1024**3)) is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))

# Texts for people have local times.
os.environ["TZ"] = "UTC"
time.tzset()

# No example has a deadline: on a busy machine any of them may take a second.
settings.register_profile("memlog", deadline=None, max_examples=examples(20))
settings.load_profile("memlog")


@pytest.fixture
def store(tmp_path):
    """A store of its own: settings that say nothing, and no log yet."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "memlog.toml").touch()
    with memlog.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def filled(tmp_path):
    """A store with one thing of each kind, and folders and files beside it, for `sample_calls`."""
    # Imported here: it imports every command.
    from tests.support.sample_calls import filled_store

    with filled_store(tmp_path) as opened:
        yield opened


@pytest.fixture
def memories(store):
    return store.memories


@pytest.fixture
def fixture_store(tmp_path):
    """Copies a log of fixtures/ into a store of its own and returns the store's folder."""

    def copy(name: str) -> Path:
        store = tmp_path / name
        shutil.copytree(FIXTURES / name / "log", store / "log")
        return store

    return copy


@pytest.fixture
def spawning(monkeypatch) -> multiprocessing.context.SpawnContext:
    """Starts Python processes that import the functions of the test module."""
    monkeypatch.syspath_prepend(ROOT)
    return multiprocessing.get_context("spawn")


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory) -> Path:
    """A folder that all processes of a test run share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def month(shared_folder) -> MonthLog:
    """The log of a month. Tests do not change it."""
    return MonthLog(generate_once(shared_folder / "month", make_month))


@pytest.fixture(scope="session")
def older_stores(shared_folder) -> Path:
    """A folder with the damaged and clean stores of an older memlog, by name. Tests do not change them."""
    return generate_once(shared_folder / "older-stores", make_older_stores)


@pytest.fixture(scope="session")
def embedder() -> OnnxEmbedder:
    return load_embedder()


@pytest.fixture(scope="session")
def bound_by_modes() -> dict[str, Any]:
    """Options for `memlog` under which file modes count, for root too.

    Root gives up the capabilities that let it write everywhere. Another uid would do as well, but could not
    read a Python that is installed below root's home folder.
    """
    if os.geteuid() != 0:
        return {}
    if not hasattr(ctypes.CDLL(None), "prctl"):
        pytest.skip("root is bound by no mode here")
    try:
        subprocess.run(["/bin/true"], preexec_fn=give_up_file_capabilities, check=True)
    except subprocess.SubprocessError:
        pytest.skip("root cannot give up what lets it write everywhere")
    return {"preexec_fn": give_up_file_capabilities}

"""What all tests share: a store, the fixture logs, and the embedding model, loaded once."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Without it numpy starts threads in each test process that imports it, and they spin while idle.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import memlog
from memlog.projector.embedding.models import OnnxEmbedder, load_embedder

FIXTURES = Path(__file__).parent.parent / "fixtures"

# No example has a deadline: on a busy machine any of them may take a second.
settings.register_profile("memlog", deadline=None)
settings.load_profile("memlog")


@pytest.fixture
def store(tmp_path):
    """A store of its own: settings that say nothing, and no log yet."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "memlog.toml").touch()
    with memlog.open(tmp_path / "store") as opened:
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


@pytest.fixture(scope="session")
def embedder() -> OnnxEmbedder:
    return load_embedder()


_PR_CAPBSET_DROP = 24
_FILE_CAPABILITIES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


@pytest.fixture
def bound_by_modes() -> dict[str, Any]:
    """Options for `memlog` under which file modes count, for root too.

    Root gives up the capabilities that let it write everywhere. Another uid would do as well, but could not
    read a Python that is installed below root's home folder.
    """
    if os.geteuid() != 0:
        return {}
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        pytest.skip("root is bound by no mode here")

    def give_up() -> None:
        for capability in _FILE_CAPABILITIES:
            if prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
                raise OSError("the capability cannot be given up")

    try:
        subprocess.run(["/bin/true"], preexec_fn=give_up, check=True)
    except subprocess.SubprocessError:
        pytest.skip("root cannot give up what lets it write everywhere")
    return {"preexec_fn": give_up}

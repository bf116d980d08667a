"""What all tests share: the fixture logs, and the embedding model, loaded once."""

import shutil
from pathlib import Path

import pytest

from memlog.projector.embedding import OnnxEmbedder, load_embedder

FIXTURES = Path(__file__).parent.parent / "fixtures"


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

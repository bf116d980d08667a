"""One contract for every provider of vectors, kept by a real server that misbehaves by script."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memlog
from memlog.projector.embedding.models import find_bundled_model, load_embedder
from memlog.service.engine import embedding_models
from tests.support.provider import FAULTS, Provider, in_a_minute

LIMIT = 1.0


def opened(store: Path, provider: Provider, kind: str, **more: object) -> memlog.Store:
    embedding = memlog.EmbeddingProvider(
        type=kind, base_url=provider.url, model="mini", api_key="sk-of-the-test", **{"timeout": 60, **more}
    )
    return memlog.open(store, embedding=embedding)


def said(*contents: str) -> list[memlog.Message]:
    return [memlog.Message(channel="cli", chat_id="1", role="user", content=each) for each in contents]


@pytest.mark.parametrize("kind", ["ollama", "old ollama", "api"])
def test_a_provider_embeds_passages_and_questions(tmp_path: Path, provider: Provider, kind: str) -> None:
    provider.is_old_ollama = kind == "old ollama"
    with opened(tmp_path, provider, kind.split()[-1], batch=2) as store:
        store.append(said("I like green tea", "The dog is ill", "Paris in May"))
        assert store.maintenance.embed().computed == 3
        asked = len(provider.requests)
        found = store.search("a hot drink", mode="vector")
        assert [found.hits[0].content, found.silent] == ["I like green tea", {}]
        assert store.maintenance.status().model == f"{kind.split()[-1]}/mini/384"
        store.append(said("Oolong"))
    # In requests of two; each with the key.
    assert max(len(body.get("input", [])) for _, body, _ in provider.requests) == (0 if kind == "old" else 2)
    assert {headers["authorization"] for *_, headers in provider.requests} == {"Bearer sk-of-the-test"}
    assert not any("Oolong" in text for text in provider.texts()[asked:])  # an append asks nobody


@pytest.mark.parametrize("kind", ["onnx", "ollama", "api"])
def test_embedding_client_has_embed_batch_and_is_available(
    tmp_path: Path, provider: Provider, kind: str
) -> None:
    texts = ("I like green tea", "The dog is ill")
    with memlog.open(tmp_path) if kind == "onnx" else opened(tmp_path, provider, kind) as store:
        assert store.embedder.is_available()
        vectors = store.embedder.embed(texts)
        assert np.allclose(vectors, load_embedder().embed(texts), atol=1e-6)
        assert (store.embedder.embed([]), store.exists) == ([], False)
        with pytest.raises(memlog.BadInput, match="texts is 'tea'"):
            store.embedder.embed("tea")
        provider.always = "500"
        assert store.embedder.is_available() == (kind == "onnx")
        if kind != "onnx":
            with pytest.raises(memlog.EmbeddingError):
                store.embedder.embed(texts)
    with memlog.open(tmp_path, embedding=memlog.EmbeddingProvider(type="none")) as store:
        assert not store.embedder.is_available()


@pytest.mark.parametrize("kind", ["ollama", "api"])
def test_a_read_has_no_provider_reindex_what_is_missing(
    tmp_path: Path, provider: Provider, kind: str
) -> None:
    """Nor waits for one that is slow with passages."""
    provider.poison = {"green tea": "hang"}
    with opened(tmp_path, provider, kind) as store:
        store.append(said("I like green tea", "You like green tea, too"))
        store.memories.save("Anna drinks green tea")
        for read in (store.search, store.context):
            silent = in_a_minute(partial(read, "a hot drink")).silent
            assert silent["pending"] == "3 passages have no vector yet: project the log"
        assert in_a_minute(store.memories.list)
    assert {*provider.texts()} <= {"a hot drink", "dimension"}


@pytest.mark.parametrize("kind", ["ollama", "api"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_provider_that_fails_delays_no_append_and_no_query(
    tmp_path: Path, provider: Provider, kind: str, fault: str
) -> None:
    with opened(tmp_path, provider, kind, timeout=LIMIT, dimension=384) as store:
        provider.always = fault
        store.append(said("I like green tea"))
        found = in_a_minute(lambda: store.search("green tea"))
        assert [hit.content for hit in found.hits] == ["I like green tea"]
        assert "vector" in found.silent
        # The provider rests: no more requests, in this process and in others.
        asked = len(provider.requests)
        assert "vector" in store.search("green tea").silent
    with opened(tmp_path, provider, kind, timeout=LIMIT, dimension=384) as store:
        assert "not retried before" in store.search("green tea").silent["vector"]
        assert len(provider.requests) == asked
        assert "green tea" in store.context("green tea").text
    provider.always = None
    with opened(tmp_path, provider, kind) as store:
        # Whoever asks for it by hand does not wait until the rest is over.
        assert store.maintenance.embed().computed == 1
        assert store.search("green tea").silent == {}


def test_what_is_secret_is_not_sent(tmp_path: Path, provider: Provider) -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    with opened(tmp_path, provider, "api") as store:
        store.append(said(f"the key is {key}", "I like green tea"))
        store.memories.save("the door opens with 4711", category="credential")
        report = store.maintenance.embed()
        assert (report.computed, report.withheld, report.pending) == (1, 2, 0)
        verified = store.maintenance.verify()
        assert (verified.problems, verified.withheld_vectors) == ([], 2)
        assert (store.maintenance.stats().vectors, store.maintenance.stats().vectors_pending) == (1, 0)
        assert "looks like a key" in store.search(f"where is {key}").silent["vector"]
        assert store.search("door").hits[0].content == "the door opens with 4711"
    assert [text for text in provider.texts() if "tea" not in text] == ["dimension", "door"]


def test_the_newest_texts_are_embedded_first(tmp_path: Path, provider: Provider) -> None:
    with opened(tmp_path, provider, "api", batch=2) as store:
        years = ("2021", "2026", "2019", "2024")
        for year in years:
            place = {"channel": "cli", "chat_id": year, "ts": f"{year}-02-24T08:00:00Z"}
            store.append(memlog.Message(role="user", content=f"tea of {year}", **place))
        store.maintenance.embed()
    sent = [text[-4:] for text in provider.texts() if "tea of" in text]
    assert sent == sorted(years, reverse=True)


def test_search_answers_while_another_model_takes_over_and_back(tmp_path: Path, provider: Provider) -> None:
    contents = [f"{what} number {n}" for n in range(20) for what in ("a hot drink", "an ill dog")]
    with memlog.open(tmp_path) as store:
        store.append(said(*contents))
        assert store.maintenance.embed().pending == 0
        digest = store.maintenance.digest()
        bundled = store.maintenance.status().vector_model
    with opened(tmp_path, provider, "ollama") as store:
        # A query computes 16 of 40: the vectors of the old model answer until the last one is there.
        for _ in range(2):
            found = store.search("tea", mode="vector")
            assert found.hits[0].content.startswith("a hot drink")
            assert bundled in found.silent["pending"]
            assert store.maintenance.status().vector_model == bundled
            # A replay does not lose them either.
            assert store.maintenance.project(from_scratch=True, embed=False).vectors_pending == 0
        assert store.maintenance.embed().pending == 0
        assert store.maintenance.status().vector_model == "ollama/mini/384"
        assert store.search("tea", mode="vector").silent == {}
        assert store.maintenance.digest() == digest
    with memlog.open(tmp_path) as store:
        report = store.maintenance.embed()
        assert (report.computed, store.maintenance.status().vector_model) == (0, bundled)
    asked = len(provider.requests)
    with opened(tmp_path, provider, "ollama") as store:
        assert store.maintenance.embed().computed == 0
        assert store.maintenance.status().vector_model == "ollama/mini/384"
    assert len(provider.requests) == asked


def test_without_a_model_here_auto_asks_ollama_and_then_nobody(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_models, "_bundled_embedder", lambda: load_embedder(tmp_path))
    with opened(tmp_path, provider, "auto") as store:
        store.append(said("I like green tea"))
        assert store.maintenance.embed().computed == 1
        assert store.search("a hot drink").hits[0].content == "I like green tea"
        assert store.maintenance.status().model == "ollama/mini/384"
        assert [each.state for each in store.maintenance.examine() if each.check == "model"] == ["ok"]
        provider.always = "500"
        found = store.search("green")
        assert [len(found.hits), "HTTP 500" in found.silent["vector"]] == [1, True]
        (model,) = [each for each in store.maintenance.examine() if each.check == "model"]
        assert (model.state, "HTTP 500" in model.finding) == ("warning", True)


def test_a_text_that_is_too_long_is_embedded_in_halves(tmp_path: Path, provider: Provider) -> None:
    provider.longest = 500
    with opened(tmp_path, provider, "ollama") as store:
        store.append(said("The kettle boils. " * 60, "The dog is ill"))
        assert store.maintenance.embed().computed == 2
        assert store.search("hot water", mode="vector").hits[0].content.startswith("The kettle")
        assert store.maintenance.status().providers[0].failures == 0


def test_a_new_store_asks_a_provider_that_hangs_once(tmp_path: Path, provider: Provider) -> None:
    provider.always = "hang"
    with opened(tmp_path, provider, "ollama", timeout=LIMIT) as store:
        store.append(said("I like green tea"))
        assert "no answer within" in store.search("green tea").silent["vector"]
        assert store.search("green tea").hits
        assert len(provider.requests) == 1
        (model,) = [each for each in store.maintenance.examine() if each.check == "model"]
        assert (model.state, len(provider.requests)) == ("warning", 2)  # the doctor asks all the same


def test_a_program_without_the_provider_leaves_its_vectors(tmp_path: Path, provider: Provider) -> None:
    with opened(tmp_path, provider, "ollama") as store:
        store.append(said("I like green tea"))
        store.maintenance.embed()
    with memlog.open(tmp_path) as store:
        assert "project the log" in store.search("green tea").silent["vector"]
        assert store.maintenance.status().vector_model == "ollama/mini/384"
        assert store.maintenance.embed().pending == 0
        assert store.search("green tea").silent == {}


@pytest.mark.parametrize("given", ["ollama", {"type": "ollama"}, memlog.RerankProvider(base_url="http://x")])
def test_something_else_than_a_provider_is_refused_with_its_name(tmp_path: Path, given: object) -> None:
    with pytest.raises(memlog.BadInput, match="embedding is"):
        memlog.open(tmp_path, embedding=given)


def test_a_key_longer_than_a_passage_is_sent_in_no_part(tmp_path: Path, provider: Provider) -> None:
    body = "\n".join(f"{number:02}" + "MIIEpAIBAAKCAQEAx7aQwErTyUiOp" * 2 for number in range(60))
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
    with opened(tmp_path, provider, "api") as store:
        store.append(said(f"Keep this: {key}", "The dog is ill"))
        report = store.maintenance.embed()
        assert (report.computed, report.pending) == (1, 0)
        assert report.withheld > 1
    assert not any("MIIEp" in text for text in provider.texts())


def test_vectors_that_come_late_do_not_land_among_those_of_another_model(tmp_path: Path) -> None:
    class Late:
        id, dimension, is_remote = "late/384", 384, False

        def embed(self, texts: list[str], kind: str = "passage") -> Any:
            if "a second" in texts:
                with memlog.open(tmp_path) as other:
                    other.maintenance.embed()
                    other.append(said("a third"))
                    other.maintenance.project(embed=False)
            return np.ones((len(texts), 384), dtype=np.float32)

    with memlog.open(tmp_path) as store:
        projector = store._engine.reads.maintenance.projector
        store.append(said("the first"))
        store.maintenance.project()
        projector.embed_passages(Late())
        store.append(said("a second"))
        store.maintenance.project(embed=False)
        projector.embed_passages(Late())
        status = store.maintenance.status()
        assert (status.vectors_pending, status.vector_model) == (1, find_bundled_model().id)


@pytest.mark.parametrize("key", ["sk-of-the-test ", "sk-\nof-the-test"])
def test_no_error_shows_the_key(tmp_path: Path, provider: Provider, key: str) -> None:
    provider.always = "echo"
    embedding = memlog.EmbeddingProvider(
        type="api", base_url=provider.url, model="m", api_key=key, timeout=60
    )
    with memlog.open(tmp_path, embedding=embedding) as store:
        store.append(said("I like green tea"))
        texts = [store.search("tea").silent["vector"], repr(store.maintenance.status()), repr(embedding)]
    texts.append((tmp_path / "cache/providers.json").read_text() if key.endswith(" ") else "")
    assert not any("of-the-test" in text for text in texts)


def test_a_text_that_the_provider_refuses_keeps_no_other_one_waiting(
    tmp_path: Path, provider: Provider
) -> None:
    provider.refused = "filtered"
    with opened(tmp_path, provider, "api") as store:
        store.append(said("I like green tea", "this is filtered " + "and long " * 60, "The dog is ill"))
        report = store.maintenance.embed()
        assert (report.computed, report.withheld, report.pending) == (2, 1, 0)
        assert store.maintenance.verify().ok
        assert store.search("a hot drink", mode="vector").hits[0].content == "I like green tea"
        assert store.maintenance.status().providers[0].failures == 0
        provider.refused = ""
        store.append(said("Oolong"))
        with pytest.raises(memlog.EmbeddingError):
            store.maintenance.embed()
        assert store.maintenance.status().vectors_pending == 1


def test_a_question_is_embedded_once_until_something_is_forgotten(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memlog.service.engine.embedding_models.MOST", 2)

    def asked(question: str = "a hot drink") -> int:
        assert store.search(question, mode="vector").hits
        store.context(question, record=False)
        return provider.texts().count(question)

    with opened(tmp_path, provider, "api") as store:
        store.append(
            [*said("I like green tea"), memlog.MemorySaved(content="The PIN is 4711", memory_id="m")]
        )
        store.maintenance.embed()
        assert [asked(), asked()] == [1, 1]
        store.erasure.forget(memory="m")
        assert [asked(), asked()] == [2, 2]
        store.erasure.scrub()
        assert [asked(), asked()] == [3, 3]
        store.close()
        assert [asked(), asked()] == [4, 4]
        assert [asked("a kettle"), asked("a pot"), asked()] == [1, 1, 5]
        assert store.erasure.prove("a hot drink").found == []

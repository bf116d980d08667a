"""One text that cannot be embedded holds no other one up, and vectors are read in any form."""

import base64
import json
import shutil
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog
from memlog.eventlog import timestamps
from tests.support.provider import HANGS, Provider

TEXTS = [f"word{number} {'poison' if number in (3, 20, 39) else 'tea'}" for number in range(40)]
Body = dict[str, Any]


def opened(store: Path, provider: Provider, kind: str = "api", **more: Any) -> memlog.Store:
    embedding = memlog.EmbeddingProvider(
        type=kind, base_url=provider.url, model="mini", **{"timeout": 60, **more}
    )
    return memlog.open(store, embedding=embedding)


def quick(texts: list[str]) -> list[list[float]]:
    """Vectors that take no time, where a timeout is short."""
    return [[1.0, float(len(text)), *([0.5] * 382)] for text in texts]


def said(*contents: str) -> list[memlog.Message]:
    return [memlog.Message(channel="cli", chat_id="1", role="user", content=each) for each in contents]


def is_poisoned(text: str) -> bool:
    return "poison" in text


def with_poisoned(vector: Any) -> Callable[[Body, Body], Any]:
    """A reply with another vector for each poisoned text."""

    def reply(body: Body, answer: Body) -> Any:
        data = [
            datum | {"embedding": vector(datum["embedding"])} if is_poisoned(text) else datum
            for text, datum in zip(body["input"], answer["data"][::-1], strict=True)
        ]
        return answer | {"data": data}

    return reply


def without_poisoned(body: Body, answer: Body) -> Any:
    places = [place for place, text in enumerate(body["input"]) if not is_poisoned(text)]
    return answer | {"data": [datum for datum in answer["data"] if datum["index"] in places]}


def unnumbered(body: Body, answer: Body) -> Any:
    left = without_poisoned(body, answer)["data"][::-1]
    return answer | {"data": [{"embedding": datum["embedding"]} for datum in left]}


def hanging(body: Body, answer: Body) -> Any:
    return HANGS if any(map(is_poisoned, body["input"])) else answer


def failing(status: int) -> Callable[[Body], tuple[int, Any] | None]:
    words = {"error": {"message": "it failed"}}
    return lambda body: (status, words) if any(map(is_poisoned, body["input"])) else None


FAULTS: dict[str, Any] = {
    "NaN": with_poisoned(lambda vector: [float("nan"), *vector[1:]]),
    "NaN everywhere": with_poisoned(lambda vector: [float("nan")] * len(vector)),
    "null": with_poisoned(lambda _: None),
    "null within": with_poisoned(lambda vector: [None, *vector[1:]]),
    "zeros": with_poisoned(lambda vector: [0.0] * len(vector)),
    "[]": with_poisoned(lambda _: []),
    "too great": with_poisoned(lambda vector: [1e39, *vector[1:]]),
    "another dimension": with_poisoned(lambda vector: vector[:7]),
    "missing": without_poisoned,
    "missing, unnumbered": unnumbered,
    "an error with HTTP 200": lambda body, answer: (
        {"error": "failed"} if any(map(is_poisoned, body["input"])) else answer
    ),
    "hangs": hanging,
    "400": failing(400),
    "413": failing(413),
    "500": failing(500),
    "403": failing(403),
    "424": failing(424),
}


@pytest.mark.parametrize("name", FAULTS)
def test_of_forty_texts_the_three_that_cannot_be_embedded_are_set_aside(
    tmp_path: Path, provider: Provider, name: str
) -> None:
    fault, provider.vectors = FAULTS[name], quick
    if name.isdigit():
        provider.refuse = fault
    else:
        provider.reply = fault
    more = {"timeout": 1.0, "dimension": 384} if name == "hangs" else {}
    with opened(tmp_path, provider, **more) as store:
        store.append(said(*TEXTS))
        report = store.maintenance.embed()
        assert (report.computed, report.withheld, report.pending) == (37, 3, 0)
        assert len(report.set_aside) == 3
        found = store.search("word20 poison", mode="text").hits[0]
        assert found.content == "word20 poison"
        assert f"message {found.id}" in report.set_aside
    with opened(tmp_path, provider, **more) as store:  # as another process, which builds the model anew
        store.append(said("and green tea"))
        store.maintenance.project(from_scratch=True)
        assert store.maintenance.embed().pending == 0
        status = store.maintenance.status()
        assert (len(status.vectors_set_aside), status.providers[0].failures) == (3, 0)
        assert store.maintenance.verify().ok
    alone = Counter(str(body["input"][0]) for _, body, _ in provider.requests if len(body["input"]) == 1)
    assert all(count <= 2 for text, count in alone.items() if is_poisoned(text))
    assert sum(is_poisoned(text) for text in alone) == 3
    # Halved, and not asked one by one.
    assert len(provider.requests) < 40


def test_a_batch_that_takes_too_long_is_halved_and_the_next_ones_are_smaller(
    tmp_path: Path, provider: Provider
) -> None:
    provider.vectors = quick
    provider.reply = lambda body, answer: HANGS if len(body["input"]) > 8 else answer
    with opened(tmp_path, provider, timeout=3.0, dimension=384) as store:
        store.append(said(*TEXTS))
        assert (store.maintenance.embed().computed, store.maintenance.status().vectors_set_aside) == (40, [])
    sizes = [len(body["input"]) for _, body, _ in provider.requests]
    assert sizes == [16, 1, 8, 8, 8, 8, 8]


def test_another_day_asks_again(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    provider.refuse = failing(400)
    with opened(tmp_path, provider) as store:
        store.append(said("poison", "tea"))
        assert len(store.maintenance.embed().set_aside) == 1
        asked = len(provider.requests)
        assert len(store.maintenance.embed().set_aside) == 1
        assert len(provider.requests) == asked
        monkeypatch.setattr(timestamps, "today", lambda: "9998-01-01")
        provider.refuse = lambda _: None
        report = store.maintenance.embed()
        assert (report.computed, report.pending, report.set_aside) == (1, 0, [])


def test_what_is_forgotten_is_not_remembered_as_set_aside(tmp_path: Path, provider: Provider) -> None:
    provider.refuse = failing(400)
    with opened(tmp_path, provider) as store:
        (position, _) = store.append(said("poison", "tea"))
        assert len(store.maintenance.embed().set_aside) == 1
        store.erasure.forget(position.id)
        assert store.maintenance.status().vectors_set_aside == []
        store.append(said("poison"))
        store.maintenance.embed()
    assert sum(body["input"] == ["poison"] for _, body, _ in provider.requests) == 2


def test_a_provider_that_embeds_nothing_is_not_asked_about_each_text(
    tmp_path: Path, provider: Provider
) -> None:
    provider.refuse = lambda _: (400, {"error": {"message": "no such model"}})
    with opened(tmp_path, provider, dimension=384) as store:
        store.append(said(*TEXTS))
        with pytest.raises(memlog.EmbeddingError):
            store.maintenance.embed()
        assert store.maintenance.status().vectors_pending == 40
        assert store.maintenance.status().providers[0].failures == 1
    assert len(provider.requests) == 2  # of the texts, and of the control


def test_what_was_embedded_before_a_provider_fails_is_kept(tmp_path: Path, provider: Provider) -> None:
    provider.refuse = lambda body: (401, {}) if any("word0 " in text for text in body["input"]) else None
    with opened(tmp_path, provider) as store:
        store.append(said(*TEXTS))
        with pytest.raises(memlog.EmbeddingError):
            store.maintenance.embed()
        assert store.maintenance.status().vectors_pending == 8


def test_a_text_that_the_model_refuses_alone_is_set_aside(tmp_path: Path, provider: Provider) -> None:
    provider.refuse = failing(400)
    with opened(tmp_path, provider) as store:
        store.append(said("poison"))
        assert len(store.maintenance.embed().set_aside) == 1
        assert store.search("poison").hits
        assert (
            store.maintenance.status().providers[0].failures == 0
        )  # a question that is refused is no failure


def in_base64(datum: Body) -> Body:
    vector = datum["embedding"]
    return datum | {"embedding": base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()}


FORMS: dict[str, Callable[[list[Body]], Any]] = {
    "no index": lambda data: {"data": [{"embedding": datum["embedding"]} for datum in data]},
    "index as text": lambda data: {"data": [datum | {"index": str(datum["index"])} for datum in data[::-1]]},
    "from 1 on": lambda data: {"data": [datum | {"index": datum["index"] + 1} for datum in data[::-1]]},
    "all of one index": lambda data: {"data": [datum | {"index": 0} for datum in data]},
    "index null": lambda data: {"data": [datum | {"index": None} for datum in data]},
    "base64": lambda data: {"data": [in_base64(datum) for datum in data[::-1]]},
    "JSON in a text": lambda data: {
        "data": [datum | {"embedding": json.dumps(datum["embedding"])} for datum in data]
    },
    "as Ollama": lambda data: {"embeddings": [datum["embedding"] for datum in data]},
    "a list of lists": lambda data: [datum["embedding"] for datum in data],
}


@pytest.mark.parametrize("name", FORMS)
def test_vectors_are_read_in_any_form(tmp_path: Path, provider: Provider, name: str) -> None:
    provider.reply = lambda _, answer: FORMS[name](answer["data"][::-1])
    with opened(tmp_path, provider) as store:
        store.append(said("The dog is ill", "I like green tea", "Paris in May"))
        assert store.maintenance.embed().computed == 3
        assert store.search("a hot drink", mode="vector").hits[0].content == "I like green tea"
        assert store.search("an animal", mode="vector").hits[0].content == "The dog is ill"


def test_what_was_set_aside_is_asked_about_again_where_the_cache_is_lost(
    tmp_path: Path, provider: Provider
) -> None:
    provider.vectors, provider.refuse = quick, failing(400)
    with opened(tmp_path, provider) as store:
        store.append(said(*TEXTS))
        store.maintenance.embed()
    shutil.rmtree(tmp_path / "cache")
    with opened(tmp_path, provider) as store:
        assert len(store.maintenance.embed().set_aside) == 3
        assert len(store.maintenance.status().vectors_set_aside) == 3
        asked = len(provider.requests)
        store.maintenance.embed()
        assert len(provider.requests) == asked

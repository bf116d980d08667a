"""A provider that ranks hits anew, kept to the same contract as one of vectors."""

from pathlib import Path

import pytest

import memlog
from tests.support.provider import FAULTS, Provider, in_a_minute

LIMIT = 1.0
CONTENTS = ("tea tea tea shop", "The tea is hot and green", "We drink tea at noon", "tea and tea")
QUESTION = "tea at what time"


def opened(store: Path, provider: Provider, kind: str = "api", timeout: float = 60) -> memlog.Store:
    rerank = memlog.RerankProvider(type=kind, base_url=provider.url, timeout=timeout, top_n=4)
    return memlog.open(store, rerank=rerank)


@pytest.fixture
def plain(tmp_path: Path) -> list[str]:
    """The hits without a provider."""
    said = {"type": "message", "channel": "cli", "chat_id": "1", "role": "user"}
    with memlog.open(tmp_path) as store:
        store.append([said | {"content": content} for content in CONTENTS])
        return [hit.content for hit in store.search(QUESTION).hits]


@pytest.mark.parametrize("kind", ["api", "tei"])
def test_the_provider_puts_the_best_hits_in_its_order(
    tmp_path: Path, provider: Provider, plain: list[str], kind: str
) -> None:
    provider.order = [*sorted(CONTENTS)]
    with opened(tmp_path, provider, kind) as store:
        found = store.search(QUESTION, k=2)
        assert [hit.content for hit in found.hits] == provider.order[:2] != plain[:2]
        assert found.hits[0].score >= found.hits[1].score
        assert found.silent == {}
        printed = store.context(QUESTION).text
        places = [printed.index(content) for content in provider.order]
        assert places == sorted(places)
    assert sorted(provider.requests[0][1].get("documents") or provider.requests[0][1]["texts"]) == sorted(
        CONTENTS
    )


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in ("wrong dimension", "zeros")])
def test_a_provider_that_fails_leaves_the_order(
    tmp_path: Path, provider: Provider, plain: list[str], fault: str
) -> None:
    provider.always = fault
    with opened(tmp_path, provider, timeout=LIMIT) as store:
        found = in_a_minute(lambda: store.search(QUESTION))
        assert [hit.content for hit in found.hits] == plain
        assert "rerank" in found.silent
        assert "not retried before" in store.search(QUESTION).silent["rerank"]
        assert len(provider.requests) == 1


def test_what_is_secret_is_not_ranked(tmp_path: Path, provider: Provider, plain: list[str]) -> None:
    with opened(tmp_path, provider) as store:
        store.memories.save("tea safe 4711", category="credential")
        store.memories.save("tea key sk-ant-api03-" + "a1B2" * 20)
        assert len(store.search(QUESTION).hits) == 6
        assert "looks like a key" in store.search("tea sk-ant-api03-" + "c3D4" * 20).silent["rerank"]
    assert len(provider.requests) == 1
    assert not [text for text in provider.texts() if "4711" in text or "sk-ant" in text]

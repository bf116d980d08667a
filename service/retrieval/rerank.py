"""Reranks the best hits of a search with a provider's cross-encoder."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from memlog.eventlog.errors import ProviderError
from memlog.eventlog.secrets.outgoing import encode_outgoing
from memlog.eventlog.sections import RerankProvider
from memlog.query.search.hits import Hit
from memlog.query.search.nearest import HAS_KEY
from memlog.service.engine.http_client import Breaker, late_error

_LONGEST = 4000
"""The maximum number of characters of a text to send: rerankers read 512 to a few thousand tokens."""


class _Score(msgspec.Struct):
    index: int
    relevance_score: float


class _RankAnswer(msgspec.Struct):
    results: list[_Score]


class _TeiScore(msgspec.Struct):
    index: int
    score: float


class Reranker:
    """Ranks the hits for one question. All requests for it share the provider's timeout.

    https://docs.cohere.com/reference/rerank,
    https://huggingface.github.io/text-embeddings-inference/#/Text%20Embeddings%20Inference/rerank

    may_be_sent: whether a hit may go to the provider. has_key: whether the question seems to contain a key.
    """

    def __init__(
        self, provider: RerankProvider, store: Path, may_be_sent: Callable[[Hit], bool], *, has_key: bool
    ) -> None:
        self._provider = provider
        self._breaker = Breaker(store, "rerank", provider)
        self._may_be_sent, self._has_key = may_be_sent, has_key
        self._seconds_left = provider.timeout

    def __call__(self, question: str, hits: list[Hit], silent: dict[str, str]) -> list[Hit]:
        """Return `hits` with the first `top_n` reordered by the provider.

        Scores stay in place, in descending order. Hits that may not be sent keep their places; if the
        provider fails, all do.
        """
        places = [place for place, hit in enumerate(hits[: self._provider.top_n]) if self._may_be_sent(hit)]
        if len(places) < 2:
            return hits
        if self._has_key:
            silent["rerank"] = HAS_KEY
            return hits
        try:
            order = self.rank(question, [hits[place].content[:_LONGEST] for place in places])
        except ProviderError as error:
            silent["rerank"] = error.message
            return hits
        scores = [hit.score for hit in hits]
        ranked = list(hits)
        for place, number in zip(places, order, strict=True):
            ranked[place] = hits[places[number]]
        for hit, score in zip(ranked, scores, strict=True):
            hit.score = score
        return ranked

    def rank(self, question: str, texts: list[str], *, though_it_rests: bool = False) -> list[int]:
        """Return the indexes of `texts`, best first. though_it_rests: ask the provider even while it rests.

        Raises:
            ProviderError: the provider fails, or rests.
        """
        if not though_it_rests:
            self._breaker.check_available()
        try:
            scores = self._request_scores_in_time(question, texts)
        except ProviderError as error:
            self._breaker.record_failure(error)
            raise
        self._breaker.record_success()
        return [number for number, _ in sorted(scores, key=lambda scored: -scored[1])]

    def _request_scores_in_time(self, question: str, texts: list[str]) -> list[tuple[int, float]]:
        if self._seconds_left <= 0:
            raise late_error(self._provider.base_url, self._provider.timeout)
        started = time.monotonic()
        scores = self._request_scores(question, texts, self._seconds_left)
        self._seconds_left -= time.monotonic() - started
        if sorted(number for number, _ in scores) != list(range(len(texts))):
            raise ProviderError(f"{self._provider.base_url}: the answer does not rank each text exactly once")
        return scores

    def _request_scores(self, question: str, texts: list[str], seconds: float) -> list[tuple[int, float]]:
        provider = self._provider
        url = (provider.base_url or "").rstrip("/")
        if provider.type == "tei":
            body: dict[str, Any] = {"query": question, "texts": texts, "truncate": True}
            found = self._breaker.make_endpoint(f"{url}/rerank").post_body(
                encode_outgoing(body), list[_TeiScore], seconds
            )
            return [(each.index, each.score) for each in found]
        path = "/rerank" if urlsplit(url).path.strip("/") else "/v1/rerank"
        body = {"query": question, "documents": texts, "top_n": len(texts)}
        if provider.model is not None:
            body["model"] = provider.model
        answer = self._breaker.make_endpoint(url + path).post_body(
            encode_outgoing(body), _RankAnswer, seconds
        )
        return [(each.index, each.relevance_score) for each in answer.results]

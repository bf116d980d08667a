"""Vectors from a provider: Ollama, or what speaks OpenAI's `/v1/embeddings`."""

import math
import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import msgspec

from memlog.eventlog.errors import EmbeddingError, ProviderError
from memlog.eventlog.limits import OLLAMA_MODEL, OLLAMA_URL
from memlog.eventlog.outgoing import outgoing
from memlog.projector.embedding.models import Kind, normalised
from memlog.service.providers.breaker import Breaker
from memlog.service.providers.endpoint import late
from memlog.service.providers.settings import EmbeddingProvider

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vectors = list[list[float]]

Patience = Literal["question", "background", "once", "command"]
"""Who waits: a question, the time of the provider at most; a background job, which comes again; an
examination, which asks once, though the provider rests; a command of a person, which tries again."""

_WAITS = (1.0, 4.0, 15.0)
"""Seconds before a command tries again."""

_LONGEST_WAIT = 60.0

_MOST = 1e30
"""The length of a vector that float32 holds, with a margin."""

_REFUSES_A_TEXT = (400, 413, 422)
_TOO_LONG = re.compile(r"too (?:large|long)|context|exceed|maximum", re.IGNORECASE)
"""How llama.cpp says with a status of 500 that a text is too long; others do so with the statuses above."""

_SHORTEST_PART = 200
"""Characters of a text that is not split further where a provider refuses it."""

_PREFIXES = {
    "nomic-embed-text": ("search_query: ", "search_document: "),
    "multilingual-e5": ("query: ", "passage: "),
    "e5-": ("query: ", "passage: "),
}
"""What these models were trained to find before a question and before a passage, by a part of their names:
https://huggingface.co/nomic-ai/nomic-embed-text-v1.5, https://huggingface.co/intfloat/multilingual-e5-small."""


class _OllamaAnswer(msgspec.Struct):
    embeddings: Vectors


class _OldOllamaAnswer(msgspec.Struct):
    embedding: list[float]


class _Datum(msgspec.Struct):
    index: int
    embedding: list[float]


class _ApiAnswer(msgspec.Struct):
    data: list[_Datum]


def _is_too_long(error: ProviderError, texts: Sequence[str]) -> bool:
    """Whether a provider may take the texts in smaller parts."""
    is_refused = error.status in _REFUSES_A_TEXT or (error.status == 500 and _TOO_LONG.search(error.said))
    return bool(is_refused) and max(map(len, texts)) >= _SHORTEST_PART


def _as_embedding_error(error: ProviderError) -> EmbeddingError:
    failure = EmbeddingError(error.message, hint=error.hint, retryable=error.retryable)
    failure.said = error.said
    return failure


class RemoteEmbedder:
    """Embeds by a provider. https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings,
    https://platform.openai.com/docs/api-reference/embeddings

    A question waits for its requests, of which the first may learn the dimension, one timeout together.
    """

    is_remote = True

    def __init__(self, provider: EmbeddingProvider, breaker: Breaker, patience: Patience) -> None:
        self._provider, self._breaker, self._patience = provider, breaker, patience
        self._until = time.monotonic() + provider.timeout if patience == "question" else None
        kind = "ollama" if provider.type == "auto" else provider.type
        self._name = name = provider.model or OLLAMA_MODEL
        self._dimension = provider.dimension or breaker.record().dimension
        self._prefixes = next((both for part, both in _PREFIXES.items() if part in name.lower()), ("", ""))
        self._label = f"{kind}/{name}{'/prefixed' if any(self._prefixes) else ''}"
        self._asked: Callable[[list[str], float], Vectors] = self._ollama if kind == "ollama" else self._api

    @property
    def dimension(self) -> int:
        """Of its vectors, which the provider is asked for once.

        Raises:
            EmbeddingError: it does not answer.
        """
        if self._dimension is None:
            self.embed(["dimension"], "query")
        assert self._dimension is not None
        return self._dimension

    @property
    def id(self) -> str:
        """Provider, model and dimension: ollama/all-minilm:l6-v2/384."""
        return f"{self._label}/{self.dimension}"

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> "NDArray[np.float32]":
        """See `Embedder.embed`."""
        prefix = self._prefixes[kind == "passage"]
        size = self._provider.batch
        vectors: list[NDArray[np.float32]] = []
        refused: dict[str, EmbeddingError] = {}
        for start in range(0, len(texts), size):
            vectors += self._embedded(texts[start : start + size], prefix, refused)
        if refused:
            raise self._refusal(refused, texts)
        return normalised(vectors)

    def _refusal(self, refused: dict[str, EmbeddingError], texts: Sequence[str]) -> EmbeddingError:
        error = next(iter(refused.values()))
        if len(refused) < len(set(texts)):
            error.refused = frozenset(refused)
        else:  # a provider that refuses all texts is asked for something that it does not have
            self._breaker.failed(ProviderError(error.message, hint=error.hint))
        return error

    def _embedded(
        self, texts: Sequence[str], prefix: str, refused: dict[str, EmbeddingError]
    ) -> "list[NDArray[np.float32]]":
        """A vector for each text. One that the provider finds too long has the mean of its halves; one that
        it refuses all the same is noted."""
        import numpy as np

        try:
            answered = self._answered([prefix + text for text in texts])
            return [np.array(vector, dtype=np.float32) for vector in answered]
        except ProviderError as error:
            if len(texts) > 1 and error.status in _REFUSES_A_TEXT:
                return [vector for text in texts for vector in self._embedded([text], prefix, refused)]
            if not _is_too_long(error, texts):
                if error.status not in _REFUSES_A_TEXT:
                    raise _as_embedding_error(error) from error
                refused[texts[0]] = _as_embedding_error(error)
                return []
        if len(texts) > 1:
            return [vector for text in texts for vector in self._embedded([text], prefix, refused)]
        middle = len(texts[0]) // 2
        parts: dict[str, EmbeddingError] = {}
        halves = [
            vector
            for half in (texts[0][:middle], texts[0][middle:])
            for vector in self._embedded([half], prefix, parts)
        ]
        if parts:
            refused[texts[0]] = next(iter(parts.values()))
            return []
        return [np.mean(halves, axis=0)]

    def _answered(self, texts: list[str]) -> Vectors:
        if self._patience in ("question", "background"):
            self._breaker.check()
        waits = iter(_WAITS if self._patience == "command" else ())
        while True:
            try:
                vectors = self._asked(texts, self._seconds())
                self._check(texts, vectors)
            except ProviderError as error:
                wait, asked_for = next(waits, None), error.retry_after or 0.0
                is_worth_it = error.is_away or error.status in (429, 503)
                if wait is None or not is_worth_it or asked_for > _LONGEST_WAIT:
                    if error.status not in _REFUSES_A_TEXT and not _is_too_long(error, texts):
                        self._breaker.failed(error)
                    raise
                time.sleep(max(wait, asked_for))
            else:
                self._breaker.worked(self._dimension)
                return vectors

    def _seconds(self) -> float:
        """What is left for a request."""
        if self._until is None:
            return self._provider.timeout
        left = self._until - time.monotonic()
        if left <= 0:
            raise late(f"{self._url}: no answer within {self._provider.timeout:.3g} s")
        return left

    def _check(self, texts: list[str], vectors: Vectors) -> None:
        if len(vectors) != len(texts):
            raise ProviderError(f"{self._url}: {len(vectors)} vectors for {len(texts)} texts")
        for vector in vectors:
            # A number that overflows float32, or zeros alone, would have no direction.
            if not 0 < math.hypot(*vector) < _MOST:
                raise ProviderError(f"{self._url}: a vector that is not finite, or of length 0")
            self._dimension = self._dimension or len(vector)
            if len(vector) != self._dimension:
                raise ProviderError(
                    f"{self._url}: a vector of dimension {len(vector)} instead of {self._dimension}",
                    hint="set embedding.dimension to what the model has",
                )

    @property
    def _url(self) -> str:
        return (self._provider.base_url or OLLAMA_URL).rstrip("/")

    def _post(self, path: str, body: dict[str, Any], into: type[Any], seconds: float) -> Any:  # noqa: ANN401
        return self._breaker.endpoint(self._url + path).post(outgoing(body), into, seconds)

    def _ollama(self, texts: list[str], seconds: float) -> Vectors:
        # Cut short, a text would not be found by its end; it is embedded in halves instead.
        body = {"model": self._name, "input": texts, "truncate": False}
        started = time.monotonic()
        try:
            answer: _OllamaAnswer = self._post("/api/embed", body, _OllamaAnswer, seconds)
        except ProviderError as error:
            # Before 0.3.4 there was only the other path, which takes one text.
            if error.status != 404 or "not found, try" in error.said:
                raise
            vectors = []
            for text in texts:
                left = max(0.1, seconds - (time.monotonic() - started))
                body = {"model": self._name, "prompt": text}
                vectors.append(self._post("/api/embeddings", body, _OldOllamaAnswer, left).embedding)
            return vectors
        return answer.embeddings

    def _api(self, texts: list[str], seconds: float) -> Vectors:
        path = "/embeddings" if urlsplit(self._url).path.strip("/") else "/v1/embeddings"
        body = {"model": self._name, "input": texts, "encoding_format": "float"}
        answer: _ApiAnswer = self._post(path, body, _ApiAnswer, seconds)
        data = sorted(answer.data, key=lambda datum: datum.index)
        if [datum.index for datum in data] != list(range(len(data))):
            raise ProviderError(f"{self._url}: the vectors are not numbered from 0 on")
        return [datum.embedding for datum in data]

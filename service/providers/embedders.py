"""Vectors from a provider: Ollama, or what speaks OpenAI's `/v1/embeddings`."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from memlog.eventlog.errors import EmbeddingError, ProviderError
from memlog.eventlog.limits import OLLAMA_MODEL, OLLAMA_URL
from memlog.eventlog.outgoing import outgoing
from memlog.projector.embedding.models import Kind, normalised
from memlog.service.providers.breaker import Breaker
from memlog.service.providers.embedding_run import CONTROL, EmbeddingRun
from memlog.service.providers.endpoint import late
from memlog.service.providers.parameters import send_in_known_forms
from memlog.service.providers.prefixes import mark_of, prefixes_of
from memlog.service.providers.settings import EmbeddingProvider
from memlog.service.providers.vector_answers import Vector, read_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Patience = Literal["question", "background", "once", "command"]
"""Who waits: a question, the time of the provider at most; a background job, which comes again; an
examination, which asks once, though the provider rests; a command of a person, which tries again."""

_WAITS = (1.0, 4.0, 15.0)
"""Seconds before a command tries again."""

_LONGEST_WAIT = 60.0


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
        self._batch = provider.batch
        self._prefixes = prefixes_of(provider, name)
        self._label = f"{kind}/{name}{mark_of(self._prefixes)}"
        self._asked: Callable[[list[str], float], list[Vector | None]] = (
            self._ollama if kind == "ollama" else self._api
        )

    @property
    def dimension(self) -> int:
        """Of its vectors, which the provider is asked for once.

        Raises:
            EmbeddingError: it does not answer.
        """
        if self._dimension is None:
            self.embed([CONTROL], "query")
        assert self._dimension is not None
        return self._dimension

    @property
    def id(self) -> str:
        """Provider, model and dimension: ollama/all-minilm:l6-v2/384."""
        return f"{self._label}/{self.dimension}"

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> "NDArray[np.float32]":
        """See `Embedder.embed`."""
        prefix = self._prefixes.passage if kind == "passage" else self._prefixes.query
        is_brief = self._patience in ("question", "once")
        run = EmbeddingRun(partial(self._answered, prefix=prefix), most=self._batch, is_brief=is_brief)
        wanted = list(dict.fromkeys(texts))
        try:
            while wanted:
                batch, wanted = wanted[: run.most], wanted[run.most :]
                run.take(batch)
                self._batch = run.most
        except ProviderError as error:
            self._breaker.failed(error)
            raise self._failure(error, run, is_of_texts=False) from error
        if run.refused:
            raise self._failure(next(iter(run.refused.values())), run, is_of_texts=True)
        return normalised([run.found[text] for text in texts])

    def _failure(self, error: ProviderError, run: EmbeddingRun, *, is_of_texts: bool) -> EmbeddingError:
        failure = EmbeddingError(error.message, hint=error.hint, retryable=error.retryable)
        failure.said = error.said
        failure.refused, failure.is_of_texts = frozenset(run.refused), is_of_texts
        if run.found:
            rows = normalised([*run.found.values()])
            failure.embedded = {text: row.tobytes() for text, row in zip(run.found, rows, strict=True)}
        return failure

    def _answered(self, texts: list[str], *, is_part: bool, prefix: str) -> Sequence[Vector | ProviderError]:
        if self._patience in ("question", "background"):
            self._breaker.check()
        waits = iter(_WAITS if self._patience == "command" else ())
        while True:
            try:
                answers = self._asked([prefix + text for text in texts], self._seconds())
            except ProviderError as error:
                wait, asked_for = next(waits, None), error.retry_after or 0.0
                is_worth_it = (error.is_away and not is_part) or error.status in (429, 503)
                if wait is None or not is_worth_it or asked_for > _LONGEST_WAIT:
                    raise
                time.sleep(max(wait, asked_for))
            else:
                checked = [self._checked(vector) for vector in answers]
                if any(not isinstance(each, ProviderError) for each in checked):
                    self._breaker.worked(self._dimension)
                return checked

    def _seconds(self) -> float:
        if self._until is None:
            return self._provider.timeout
        left = self._until - time.monotonic()
        if left <= 0:
            raise late(f"{self._url}: no answer within {self._provider.timeout:.3g} s")
        return left

    def _checked(self, vector: Vector | None) -> Vector | ProviderError:
        if vector is None:
            return self._unusable("a vector is missing, not finite, or of length 0")
        self._dimension = self._dimension or len(vector)
        if len(vector) != self._dimension:
            return self._unusable(
                f"a vector of dimension {len(vector)} instead of {self._dimension}",
                hint="set embedding.dimension to what the model has",
            )
        return vector

    def _unusable(self, why: str, hint: str = "") -> ProviderError:
        error = ProviderError(f"{self._url}: {why}", hint=hint)
        error.is_of_answer = True
        return error

    @property
    def _url(self) -> str:
        return (self._provider.base_url or OLLAMA_URL).rstrip("/")

    def _post(self, path: str, body: dict[str, Any], seconds: float) -> list[Vector | None]:
        texts = body.get("input", [""])
        vectors = read_vectors(
            self._breaker.endpoint(self._url + path).ask(outgoing(body), seconds), len(texts)
        )
        if vectors is None:
            raise self._unusable(f"the answer has no {len(texts)} vectors")
        return vectors

    def _ollama(self, texts: list[str], seconds: float) -> list[Vector | None]:
        # Cut short, a text would not be found by its end; it is embedded in halves instead.
        body = {"model": self._name, "input": texts, "truncate": False}
        started = time.monotonic()
        try:
            return self._post("/api/embed", body, seconds)
        except ProviderError as error:
            # Before 0.3.4 there was only the other path, which takes one text.
            if error.status != 404 or "not found, try" in error.said:
                raise
            vectors = []
            for text in texts:
                left = max(0.1, seconds - (time.monotonic() - started))
                vectors += self._post("/api/embeddings", {"model": self._name, "prompt": text}, left)
            return vectors

    def _api(self, texts: list[str], seconds: float) -> list[Vector | None]:
        path = "/embeddings" if urlsplit(self._url).path.strip("/") else "/v1/embeddings"
        body = {"model": self._name, "input": texts, "encoding_format": "float"}
        forms = {"encoding_format": self._provider.encoding_format}
        return send_in_known_forms(self._breaker, body, forms, lambda sent: self._post(path, sent, seconds))

"""A store's embedding model, and a cache of the vectors of recent questions."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from memlog.eventlog.errors import EmbeddingError
from memlog.eventlog.fields import Checked
from memlog.eventlog.files.forks import SplitByFork, keep_alive
from memlog.projector.embedding.models import (
    MULTILINGUAL_PACKAGE,
    Embedder,
    Kind,
    Model,
    Models,
    bundled_model,
    load_embedder,
)
from memlog.projector.sqlite import why_no_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memlog.eventlog.settings import EmbeddingProvider
    from memlog.service.engine.http_client import Breaker
    from memlog.service.engine.multilingual import MultilingualEmbedder
    from memlog.service.engine.provider_embedders import RetryPolicy


@cache
def has_multilingual() -> bool:
    """Whether the extra `multilingual` is installed."""
    return find_spec(MULTILINGUAL_PACKAGE) is not None


class EmbeddingModel(ABC):
    """Where a store's embeddings come from. Thread-safe."""

    def embedder(self, patience: "RetryPolicy" = "background") -> Embedder:
        """Return the loaded model.

        patience: who waits for the provider, if any; see `RetryPolicy`.

        Raises:
            EmbeddingError: no model works.
        """
        reason = why_no_vectors()
        if reason is not None:
            raise EmbeddingError(reason)
        return self._embedder(patience)

    @abstractmethod
    def _embedder(self, patience: "RetryPolicy") -> Embedder: ...

    def embedder_or_why(
        self, patience: "RetryPolicy" = "background"
    ) -> tuple[Embedder | None, dict[str, str]]:
        """Return (loaded model, {}), or None and the reason under `vector`."""
        try:
            return self.embedder(patience), {}
        except EmbeddingError as error:
            return None, {"vector": error.message}

    def question_embedder_for(self, model_id: str) -> Embedder | None:
        """Return an embedder for questions to vectors of an older model that have not been replaced yet.

        Return None unless the older model is the bundled one.
        """
        known = bundled_model()
        if known is None or known.id != model_id or why_no_vectors() is not None:
            return None
        return LocalModel(None).embedder_or_why()[0]

    @property
    def multilingual(self) -> "MultilingualEmbedder | None":
        """The multilingual model used beside this one; None if it is not installed or not wanted."""
        return None

    def models_or_why(self, patience: "RetryPolicy" = "background") -> tuple[Models, dict[str, str]]:
        """Return both models and, if the first one does not work, the reason under `vector`."""
        first, silent = self.embedder_or_why(patience)
        return Models(first, None if why_no_vectors() is not None else self.multilingual), silent

    def all_known(self) -> list[Model]:
        """Return the id and dimension of each model that are known without loading it."""
        return [each for each in (self.known(), self.multilingual) if each is not None]

    @property
    def providers(self) -> "list[Breaker]":
        """The circuit breakers of the providers that this model may use."""
        return []

    @abstractmethod
    def known(self) -> Model | None:
        """Return the id and dimension of the model, without loading it if possible; None if unknown."""


class LocalModel(EmbeddingModel, SplitByFork):
    """The model in a folder, or the bundled model if `folder` is None. Thread-safe."""

    def __init__(self, folder: Path | None) -> None:
        super().__init__()
        self._folder = folder
        self._loaded: Embedder | None = None
        self._failure: EmbeddingError | None = None

    def after_fork_in_child(self) -> None:
        """Discard the loaded model, because its compute threads do not exist in the child process."""
        global _loading
        _loading = threading.Lock()
        if self._loaded is not None:
            keep_alive(self._loaded)
        if _bundled_embedder.cache_info().currsize:
            keep_alive(_bundled_embedder())
        self._loaded = None
        _bundled_embedder.cache_clear()

    @property
    def multilingual(self) -> "MultilingualEmbedder | None":
        """See `EmbeddingModel.multilingual`. None if a folder is given: its model embeds all texts."""
        if self._folder is not None or not has_multilingual():
            return None
        # Imported here: most stores have no such model.
        from memlog.service.engine.multilingual import multilingual_embedder

        return multilingual_embedder()

    def _embedder(self, patience: "RetryPolicy") -> Embedder:  # noqa: ARG002 - it waits for nobody
        if self._failure is not None:
            raise self._failure
        if self._loaded is None:
            try:
                with _loading:
                    self._loaded = self._loaded or (
                        load_embedder(self._folder) if self._folder else _bundled_embedder()
                    )
            except EmbeddingError as error:
                self._failure = error
                raise
        return self._loaded

    def known(self) -> Model | None:
        """See `EmbeddingModel.known`."""
        if self._loaded is None and self._folder is None:
            return bundled_model()
        return self.embedder_or_why()[0]


class RemoteModel(EmbeddingModel):
    """A provider's model, for one store."""

    def __init__(self, provider: "EmbeddingProvider", store: Path) -> None:
        self.provider = provider
        self._store = store

    @cached_property
    def breaker(self) -> "Breaker":
        """The circuit breaker of the provider."""
        # Imported here: most stores have no provider.
        from memlog.service.engine.http_client import Breaker

        return Breaker(self._store, "embedding", self.provider)

    @property
    def providers(self) -> "list[Breaker]":
        """See `EmbeddingModel.providers`."""
        return [self.breaker]

    def _embedder(self, patience: "RetryPolicy") -> Embedder:
        # Imported here: most stores have no provider.
        from memlog.service.engine.provider_embedders import RemoteEmbedder

        embedder = RemoteEmbedder(self.provider, self.breaker, patience)
        _ = embedder.id  # asks the provider for the dimension if it is unknown
        return embedder

    def known(self) -> Model | None:
        """See `EmbeddingModel.known`. Sends no request: returns None while the dimension is unknown."""
        is_known = self.provider.dimension or self.breaker.record().dimension
        return self.embedder_or_why()[0] if is_known else None


NO_MODEL = "no model is to be used: embedding.type is none"


class NoModel(EmbeddingModel):
    """Used if the settings turn embeddings off: searches use full text only."""

    def embedder_or_why(
        self,
        patience: "RetryPolicy" = "background",  # noqa: ARG002
    ) -> tuple[Embedder | None, dict[str, str]]:
        """Return None without a reason, since the settings ask for no model."""
        return None, {}

    def _embedder(self, patience: "RetryPolicy") -> Embedder:  # noqa: ARG002
        raise EmbeddingError(NO_MODEL)

    def question_embedder_for(self, model_id: str) -> None:
        """Return None, since there is no model."""

    def known(self) -> None:
        """Return None."""


class FirstThatWorks(EmbeddingModel):
    """The first of several models that works. If none does, the error names all reasons."""

    def __init__(self, *models: EmbeddingModel) -> None:
        self._models = models

    @property
    def providers(self) -> "list[Breaker]":
        """See `EmbeddingModel.providers`."""
        return [each for model in self._models for each in model.providers]

    @property
    def multilingual(self) -> "MultilingualEmbedder | None":
        """See `EmbeddingModel.multilingual`."""
        return next((each.multilingual for each in self._models if each.multilingual is not None), None)

    def _embedder(self, patience: "RetryPolicy") -> Embedder:
        reasons = []
        for model in self._models:
            try:
                return model.embedder(patience)
            except EmbeddingError as error:
                reasons.append(error.message)
        raise EmbeddingError("; ".join(reasons))

    def known(self) -> Model | None:
        """See `EmbeddingModel.known`."""
        return next((known for model in self._models if (known := model.known()) is not None), None)


def model_of(provider: "EmbeddingProvider | None", store: Path) -> EmbeddingModel:
    """Return the model chosen in a store's settings: the bundled one if `provider` is None."""
    if provider is None:
        return LocalModel(None)
    if provider.type == "none":
        return NoModel()
    if provider.type == "onnx":
        return LocalModel(Path(provider.model).absolute() if provider.model else None)
    remote = RemoteModel(provider, store)
    return FirstThatWorks(LocalModel(None), remote) if provider.type == "auto" else remote


class _GivenTexts(Checked, frozen=True):
    texts: Annotated[list[str], "The texts."]


class StoreEmbedder:
    """Embeds texts of a program with a store's model or provider: `store.embedder`. Thread-safe.

    It touches neither the log nor the read model.
    """

    def __init__(self, model: EmbeddingModel) -> None:
        self._model = model

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector of length 1 for each text, as for a passage, by the model that `status` names.

        A provider has one `timeout` for all texts together.

        Raises:
            BadInput: `texts` is not a list of texts.
            EmbeddingError: no model works, or the provider fails; or a text contains what looks like a key,
                and a provider would embed it: then none is sent.
        """
        given = _GivenTexts(texts).texts  # type: ignore[arg-type] # it converts any sequence
        if not given:
            return []
        embedder = self._model.embedder("question")
        if embedder.is_remote:
            _check_sendable(given)
        vectors: list[list[float]] = embedder.embed(given).tolist()
        return vectors

    def is_available(self) -> bool:
        """Whether the model works; a provider is asked once, even if it rests."""
        try:
            embedder = self._model.embedder("once")
            if embedder.is_remote:
                embedder.embed(["Does it answer?"], "query")
        except EmbeddingError:
            return False
        return True


def _check_sendable(texts: Sequence[str]) -> None:
    # Imported here: most programs embed no texts of their own.
    from memlog.eventlog.secrets.outgoing import SentText, which_hold_keys

    holding = which_hold_keys([SentText(text) for text in texts])
    if any(holding):
        message = f"text {holding.index(True) + 1} contains what looks like a key, so none is sent"
        raise EmbeddingError(message, hint="leave it out, or embed it with a model of this machine")


_loading = threading.Lock()
"""Held while a model is loaded, so that concurrent threads share one."""


@cache
def _bundled_embedder() -> Embedder:
    """Return the bundled embedder, shared by all stores of a process.

    It takes 0.2 s to load, and 260 MB of memory.
    """
    return load_embedder()


MOST = 256
"""How many questions are cached: 400 kB of vectors with the bundled model."""


class QuestionVectors:
    """A cache of the vectors of questions, by model and text. Thread-safe."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop all vectors, including those of questions that are still being embedded."""
        self.cached = lru_cache(MOST)(_embed_question)
        """Returns the vector of a question as a read-only array of one row."""

    def wrap(self, embedder: Embedder) -> Embedder:
        """Wrap an embedder so that it embeds each question once."""
        return _CachingEmbedder(embedder, self)


class _ModelKey:
    """A cache key: embedders with the same id are equal."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ModelKey) and self.embedder.id == other.embedder.id

    def __hash__(self) -> int:
        return hash(self.embedder.id)


def _embed_question(model: _ModelKey, question: str) -> "NDArray[np.float32]":
    vector = model.embedder.embed([question], "query")
    vector.flags.writeable = False  # shared by all callers
    return vector


class _CachingEmbedder:
    """See `QuestionVectors.wrap`."""

    def __init__(self, embedder: Embedder, known: QuestionVectors) -> None:
        self._embedder, self._known = embedder, known
        self.id, self.dimension, self.is_remote = embedder.id, embedder.dimension, embedder.is_remote

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> "NDArray[np.float32]":
        """See `Embedder.embed`."""
        if kind == "query" and len(texts) == 1:
            return self._known.cached(_ModelKey(self._embedder), texts[0])
        return self._embedder.embed(texts, kind)

"""A store's embedding model, and a cache of recent questions' vectors."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from memlog.eventlog.errors import BadInput, EmbeddingError
from memlog.eventlog.fields import Checked, read_argument, to_path
from memlog.eventlog.files.forks import SplitByFork, keep_object_alive
from memlog.projector.embedding.models import (
    MULTILINGUAL_PACKAGE,
    Embedder,
    Kind,
    Model,
    Models,
    find_bundled_model,
    load_embedder,
)
from memlog.projector.sqlite import why_no_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memlog.eventlog.sections import EmbeddingProvider
    from memlog.service.engine.http_client import Breaker
    from memlog.service.engine.multilingual import MultilingualEmbedder
    from memlog.service.engine.provider_embedders import RetryPolicy


@cache
def has_multilingual_extra() -> bool:
    """Whether the `multilingual` extra is installed."""
    return find_spec(MULTILINGUAL_PACKAGE) is not None


class LocalModel(SplitByFork):
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
        if _is_shared_by_forks:
            return
        if self._loaded is not None:
            keep_object_alive(self._loaded)
        if _bundled_embedder.cache_info().currsize:
            keep_object_alive(_bundled_embedder())
        self._loaded = None
        _bundled_embedder.cache_clear()

    @property
    def multilingual(self) -> "MultilingualEmbedder | None":
        """See `EmbeddingModel.multilingual`. None if a folder is given: its model embeds all texts."""
        if self._folder is not None or not has_multilingual_extra():
            return None
        # Imported here: most stores have no such model.
        from memlog.service.engine.multilingual import multilingual_embedder

        return multilingual_embedder()

    def load_embedder(self, _: "RetryPolicy" = "background") -> Embedder:
        """See `EmbeddingModel.embedder`."""
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

    def find_known_model(self) -> Model | None:
        """See `EmbeddingModel.find_known_model`."""
        if self._loaded is None and self._folder is None:
            return find_bundled_model()
        return EmbeddingModel(self).load_embedder_or_why()[0]


class RemoteModel:
    """A provider's model, for one store."""

    multilingual = None

    def __init__(self, provider: "EmbeddingProvider", store: Path) -> None:
        self.provider = provider
        self._store = store

    @cached_property
    def breaker(self) -> "Breaker":
        """The circuit breaker of the provider."""
        # Imported here: most stores have no provider.
        from memlog.service.engine.http_client import Breaker

        return Breaker(self._store, "embedding", self.provider)

    def load_embedder(self, patience: "RetryPolicy") -> Embedder:
        """See `EmbeddingModel.embedder`."""
        # Imported here: most stores have no provider.
        from memlog.service.engine.provider_embedders import RemoteEmbedder

        embedder = RemoteEmbedder(self.provider, self.breaker, patience)
        _ = embedder.id  # asks the provider for the dimension if it is unknown
        return embedder

    def find_known_model(self) -> Model | None:
        """See `EmbeddingModel.find_known_model`. Sends no request: None while the dimension is unknown."""
        is_known = self.provider.dimension or self.breaker.read_record().dimension
        return EmbeddingModel(self).load_embedder_or_why()[0] if is_known else None


NO_MODEL = "no model is to be used: embedding.type is none"


class EmbeddingModel:
    """The source of a store's embeddings: the first of several models that works. Thread-safe.

    If none works, the error names all reasons. Without any model, searches use full text only.
    """

    def __init__(self, *models: LocalModel | RemoteModel) -> None:
        self._models = models

    @property
    def is_turned_off(self) -> bool:
        """Whether the settings turn embeddings off."""
        return not self._models

    def load_embedder(self, patience: "RetryPolicy" = "background") -> Embedder:
        """Return the loaded model.

        patience: who waits for the provider, if any; see `RetryPolicy`.

        Raises:
            EmbeddingError: no model works.
        """
        reason = why_no_vectors() or (NO_MODEL if self.is_turned_off else None)
        if reason is not None:
            raise EmbeddingError(reason)
        reasons = []
        for model in self._models:
            try:
                return model.load_embedder(patience)
            except EmbeddingError as error:
                if len(self._models) == 1:
                    raise
                reasons.append(error.message)
        raise EmbeddingError("; ".join(reasons))

    def load_embedder_or_why(
        self, patience: "RetryPolicy" = "background"
    ) -> tuple[Embedder | None, dict[str, str]]:
        """Return (loaded model, {}), or None and, if a model is wanted, the reason under `vector`."""
        try:
            return self.load_embedder(patience), {}
        except EmbeddingError as error:
            return None, {} if self.is_turned_off else {"vector": error.message}

    def question_embedder_for(self, model_id: str) -> Embedder | None:
        """Return an embedder for searching vectors of an older model that have not been replaced yet.

        Return None unless the older model is the bundled one, and the settings ask for a model.
        """
        known = find_bundled_model()
        if self.is_turned_off or known is None or known.id != model_id or why_no_vectors() is not None:
            return None
        return EmbeddingModel(LocalModel(None)).load_embedder_or_why()[0]

    @property
    def multilingual(self) -> "MultilingualEmbedder | None":
        """The multilingual model used in addition to this one; None if it is not installed or not wanted."""
        return next(filter(None, (model.multilingual for model in self._models)), None)

    def load_models_or_why(self, patience: "RetryPolicy" = "background") -> tuple[Models, dict[str, str]]:
        """Return both models and, if the first one does not work, the reason under `vector`."""
        first, silent = self.load_embedder_or_why(patience)
        return Models(first, None if why_no_vectors() is not None else self.multilingual), silent

    def list_known_models(self) -> list[Model]:
        """Return the id and dimension of each model, if known without loading it."""
        return [each for each in (self.find_known_model(), self.multilingual) if each is not None]

    @property
    def breakers_of_providers(self) -> "list[Breaker]":
        """The circuit breakers of the providers that this model may use."""
        return [model.breaker for model in self._models if isinstance(model, RemoteModel)]

    def find_known_model(self) -> Model | None:
        """Return the id and dimension of the model, without loading it if possible; None if unknown."""
        return next(filter(None, (model.find_known_model() for model in self._models)), None)


def choose_model(
    folder: str | Path | None, provider: "EmbeddingProvider | None", store: Path
) -> EmbeddingModel:
    """Return the model in a folder or of a provider; if neither is given, the bundled one."""
    if folder is not None:
        if provider is not None:
            raise BadInput("model cannot be combined with embedding", hint="omit one of them")
        return EmbeddingModel(LocalModel(read_argument("model", to_path, folder).absolute()))
    if provider is None:
        return EmbeddingModel(LocalModel(None))
    if provider.type == "none":
        return EmbeddingModel()
    if provider.type == "onnx":
        return EmbeddingModel(LocalModel(Path(provider.model).absolute() if provider.model else None))
    remote = RemoteModel(provider, store)
    return EmbeddingModel(LocalModel(None), remote) if provider.type == "auto" else EmbeddingModel(remote)


class _GivenTexts(Checked, frozen=True):
    texts: Annotated[list[str], "The texts."]


class StoreEmbedder:
    """Embeds a program's own texts with a store's model or provider: `store.embedder`. Thread-safe.

    It touches neither the log nor the read model.
    """

    def __init__(self, model: EmbeddingModel) -> None:
        self._model = model

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a unit vector for each text, embedded as a passage by the model that `status` names.

        A provider has one `timeout` for all texts together.

        Raises:
            BadInput: `texts` is not a list of texts.
            EmbeddingError: no model works, or the provider fails; or a text for the provider seems to contain
                a key: then no text is sent.
        """
        given = _GivenTexts(texts).texts  # type: ignore[arg-type] # it converts any sequence
        if not given:
            return []
        embedder = self._model.load_embedder("question")
        if embedder.is_remote:
            _check_texts_hold_no_key(given)
        vectors: list[list[float]] = embedder.embed(given).tolist()
        return vectors

    def is_available(self) -> bool:
        """Whether the model works; a provider gets one request, even if it rests."""
        try:
            embedder = self._model.load_embedder("once")
            if embedder.is_remote:
                embedder.embed(["Does it answer?"], "query")
        except EmbeddingError:
            return False
        return True


def _check_texts_hold_no_key(texts: Sequence[str]) -> None:
    # Imported here: most programs embed no texts of their own.
    from memlog.eventlog.secrets.outgoing import TextToCheck, tell_which_parts_hold_keys

    holding = tell_which_parts_hold_keys([TextToCheck(text) for text in texts])
    if any(holding):
        message = f"text {holding.index(True) + 1} contains what looks like a key, so none is sent"
        raise EmbeddingError(message, hint="leave it out, or embed it with a model of this machine")


_loading = threading.Lock()
"""Held while a model is loaded, so that concurrent threads share one."""


_is_shared_by_forks = False
"""Whether the bundled model is loaded with one thread, the caller's, so that it also works after a fork."""


def load_model_for_forks() -> None:
    """Load the bundled model, if it works, so that forked children share it. The process has one thread."""
    global _is_shared_by_forks
    _is_shared_by_forks = True
    with suppress(EmbeddingError):
        _bundled_embedder()


@cache
def _bundled_embedder() -> Embedder:
    """Return the bundled embedder, shared by all stores of a process.

    It takes 0.2 s to load, and 260 MB of memory.
    """
    return load_embedder(threads=1 if _is_shared_by_forks else None)


MOST = 256
"""How many questions are cached: 400 kB of vectors with the bundled model."""


class QuestionVectors:
    """A cache of question vectors, keyed by model and text. Thread-safe."""

    def __init__(self) -> None:
        self.drop_all_vectors()

    def drop_all_vectors(self) -> None:
        """Drop all vectors, including those of questions that are still being embedded."""
        self.cached = lru_cache(MOST)(_CachingEmbedder.embed_question)
        """Returns a question's vector as a read-only array with one row."""

    def wrap_embedder(self, embedder: Embedder) -> Embedder:
        """Wrap an embedder so that it embeds each question once."""
        return _CachingEmbedder(embedder, self)


class _CachingEmbedder:
    """See `QuestionVectors.wrap_embedder`. Also a cache key: embedders with the same id are equal."""

    def __init__(self, embedder: Embedder, known: QuestionVectors) -> None:
        self._embedder, self._known = embedder, known
        self.id, self.dimension, self.is_remote = embedder.id, embedder.dimension, embedder.is_remote

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _CachingEmbedder) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def embed_question(self, question: str) -> "NDArray[np.float32]":
        """Embed a question without looking it up in the cache."""
        vector = self._embedder.embed([question], "query")
        vector.flags.writeable = False  # shared by all callers
        return vector

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> "NDArray[np.float32]":
        """See `Embedder.embed`."""
        if kind == "query" and len(texts) == 1:
            return self._known.cached(self, texts[0])
        return self._embedder.embed(texts, kind)

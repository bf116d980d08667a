"""Loads the embedding model once, or tells why none works here."""

import threading
from functools import cache
from pathlib import Path

from memlog.eventlog.errors import EmbeddingError
from memlog.eventlog.forks import SplitByFork, keep_for_ever
from memlog.projector.embedding.models import Embedder, Model, bundled_model, load_embedder
from memlog.projector.sqlite import why_no_vectors


class LocalModel(SplitByFork):
    """The model of a folder, or the one that memlog ships with (None). Threads may share it."""

    def __init__(self, folder: Path | None) -> None:
        super().__init__()
        self._folder = folder
        self._embedder: Embedder | None = None
        self._failure: EmbeddingError | None = None

    def after_fork_in_child(self) -> None:
        """Load it again when it is needed: a child has none of the threads that compute."""
        global _loading
        _loading = threading.Lock()
        if self._embedder is not None:
            keep_for_ever(self._embedder)
        if _bundled_embedder.cache_info().currsize:
            keep_for_ever(_bundled_embedder())
        self._embedder = None
        _bundled_embedder.cache_clear()

    def embedder(self) -> Embedder:
        """The loaded model.

        Raises:
            EmbeddingError: none works here.
        """
        reason = why_no_vectors()
        if reason is not None:
            raise EmbeddingError(reason)
        if self._failure is not None:
            raise self._failure
        if self._embedder is None:
            try:
                with _loading:
                    self._embedder = self._embedder or (
                        load_embedder(self._folder) if self._folder else _bundled_embedder()
                    )
            except EmbeddingError as error:
                self._failure = error
                raise
        return self._embedder

    def embedder_or_why(self) -> tuple[Embedder | None, dict[str, str]]:
        """The loaded model; or None, and the reason under `vector`."""
        try:
            return self.embedder(), {}
        except EmbeddingError as error:
            return None, {"vector": error.message}

    def known(self) -> Model | None:
        """The id and dimension of the model, without loading it if possible."""
        if self._embedder is None and self._folder is None:
            return bundled_model()
        return self.embedder_or_why()[0]


_loading = threading.Lock()
"""Held while a model is loaded: threads that ask at the same time get one."""


@cache
def _bundled_embedder() -> Embedder:
    """One for all stores of a process: each takes 0.2 s to load and 260 MB."""
    return load_embedder()

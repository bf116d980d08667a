"""The vectors of the questions that were asked last. They are in memory alone."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from memlog.projector.embedding.models import Embedder, Kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 256
"""Questions: with the bundled model, 400 kB of vectors."""


class QuestionVectors:
    """Remembers the vectors of questions, by model and text. Threads may share it."""

    def __init__(self) -> None:
        self.empty()

    def empty(self) -> None:
        """Remember nothing of what was asked, nor of what is being embedded now."""
        self._embedded = lru_cache(MOST)(_embedded)

    def of(self, embedder: Embedder) -> Embedder:
        """Return the embedder, which embeds a question once."""
        return _Remembering(embedder, self)

    def vector(self, embedder: Embedder, question: str) -> "NDArray[np.float32]":
        """Return the vector of a question, as the row of an array that cannot be written."""
        return self._embedded(_ById(embedder), question)


class _ById:
    """An embedder that equals each other one of the same id."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.embedder.id == other.embedder.id

    def __hash__(self) -> int:
        return hash(self.embedder.id)


def _embedded(model: _ById, question: str) -> "NDArray[np.float32]":
    vector = model.embedder.embed([question], "query")
    vector.flags.writeable = False  # all who ask get the same array
    return vector


class _Remembering:
    """See `QuestionVectors.of`."""

    def __init__(self, embedder: Embedder, known: QuestionVectors) -> None:
        self._embedder, self._known = embedder, known
        self.id, self.dimension, self.is_remote = embedder.id, embedder.dimension, embedder.is_remote

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> "NDArray[np.float32]":
        """See `Embedder.embed`."""
        if kind == "query" and len(texts) == 1:
            return self._known.vector(self._embedder, texts[0])
        return self._embedder.embed(texts, kind)

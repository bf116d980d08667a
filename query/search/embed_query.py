"""The vector of a query, if it can be compared with those of the read model."""

from memlog.eventlog.errors import EmbeddingError
from memlog.projector.embedding.models import Embedder, can_read
from memlog.projector.passages import vectors
from memlog.projector.sqlite import Connection, why_no_vectors

_EMBEDDED_CHARACTERS = 4000
"""Of a query: more takes the model seconds and adds no meaning."""


def embed_query(text: str, db: Connection, embedder: Embedder, silent: dict[str, str]) -> bytes | None:
    """The query's vector as float32; None, with the reason in `silent`, if there is nothing to compare."""
    reason = _why_not_comparable(text, db, embedder)
    if reason is None:
        if len(text) > _EMBEDDED_CHARACTERS:
            silent["vector"] = f"only the question's first {_EMBEDDED_CHARACTERS:,} characters were compared"
        try:
            return bytes(embedder.embed([text[:_EMBEDDED_CHARACTERS]])[0].tobytes())
        except EmbeddingError as error:
            reason = error.message
    silent["vector"] = reason
    return None


def _why_not_comparable(text: str, db: Connection, embedder: Embedder) -> str | None:
    reason = why_no_vectors()
    if reason is None and vectors.model_of(db) is None:
        reason = "no vectors yet: memlog project"
    reason = reason or vectors.why_unlike(db, embedder)
    if reason is None and not can_read(embedder, text):
        reason = "the model reads English, and the question is in another script"
    return reason

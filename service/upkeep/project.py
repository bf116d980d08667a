"""Brings the read model up to date with the log, with progress reports: rows and text, then vectors."""

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from memlog.eventlog.errors import EmbeddingError
from memlog.projector.catchup import Progress
from memlog.projector.embedding.fill import Embedded, list_names_of_texts_set_aside
from memlog.projector.embedding.models import NO_MODELS, Embedder, Kind
from memlog.projector.passages import index
from memlog.projector.sqlite import count_rows
from memlog.service.engine.read_model import ReadModel, note_that_chats_are_separated

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ProjectReport(msgspec.Struct, kw_only=True):
    """The result of a projection.

    events, duplicates, conflicts, quarantined: the number of lines read now, for each outcome.
    nul_runs: runs of NUL bytes around them, left by a power cut.
    rows: events in the read model.
    vectors_computed, vectors_cached, vectors_pending: passages, by the state of their vectors.
    rebuilt: why everything was read from scratch; None after a catch-up.
    notes: messages about streams with a rewritten history, losses, and files that are not segments.
    silent: the parts that did not work, and why.
    """

    events: int
    rows: int
    duplicates: int
    conflicts: int
    quarantined: int
    nul_runs: int
    vectors_computed: int
    vectors_cached: int
    vectors_pending: int
    rebuilt: str | None
    notes: list[str]
    silent: dict[str, str]
    seconds: float


class EmbedReport(msgspec.Struct, kw_only=True):
    """The outcome for the passages that had no vector.

    computed, cached: how many got a new vector, or one from the cache. pending: how many still have none.
    withheld: how many never get one, because they may not be sent to a provider or a model refuses them.
    set_aside: names of texts that could not be embedded today. Full-text search finds them, and they are
    retried another day. silent: why the multilingual model embedded nothing.
    """

    computed: int
    cached: int
    withheld: int = 0
    pending: int
    set_aside: list[str] = []
    silent: dict[str, str] = {}


class _ReleasingEmbedder:
    """An embedder that releases the read model's mutex while it computes."""

    def __init__(self, embedder: Embedder, mutex: threading.RLock) -> None:
        self.id, self.dimension = embedder.id, embedder.dimension
        self.is_remote = embedder.is_remote
        self._embedder = embedder
        self._mutex = mutex

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> "NDArray[np.float32]":
        """See `Embedder.embed`."""
        self._mutex.release()
        try:
            return self._embedder.embed(texts, kind)
        finally:
            self._mutex.acquire()


def project_log(
    read_model: ReadModel, progress: Progress | None, *, from_scratch: bool = False, embed: bool = True
) -> ProjectReport:
    """Catch up with the log or rebuild, then embed; see `Maintenance.project`."""
    return read_model.run_with_repair(lambda: _project_log(read_model, progress, from_scratch, embed))


def _project_log(
    read_model: ReadModel, progress: Progress | None, from_scratch: bool, embed: bool
) -> ProjectReport:
    started = time.monotonic()
    read_model.check_writable()
    projector = read_model.projector
    models, silent = read_model.model.load_models_or_why("command") if embed else (NO_MODELS, {})
    if from_scratch:
        done = projector.rebuild_generation("asked for", progress=progress)
    else:
        done = projector.catch_up(progress=progress)
    embedded = Embedded()
    for name, embedder in models.available_models_by_name():
        try:
            embedded += projector.embed_passages(
                _ReleasingEmbedder(embedder, read_model.mutex), progress=progress
            )
        except EmbeddingError as error:
            silent[name] = error.message
    db = projector.connect_to_live()
    return ProjectReport(
        events=done.read.events,
        rows=count_rows(db, "events"),
        duplicates=done.read.duplicates,
        conflicts=done.read.conflicts,
        quarantined=done.read.quarantined,
        nul_runs=done.read.nul_runs,
        vectors_computed=embedded.computed,
        vectors_cached=embedded.cached + done.vectors_cached,
        vectors_pending=index.count_pending_passages_of_all_sets(db),
        rebuilt=done.rebuilt,
        notes=[*done.read.notes, *note_that_chats_are_separated(done, projector, read_model.people)],
        silent=silent,
        seconds=round(time.monotonic() - started, 3),
    )


def embed_pending_passages(read_model: ReadModel, progress: Progress | None, batch: int) -> EmbedReport:
    """Embed the pending passages; see `Maintenance.embed`."""
    models, _ = read_model.model.load_models_or_why("command")
    if not models.available_models:
        read_model.model.load_embedder("command")  # raises why
    read_model.check_writable()
    caught_up = read_model.pass_on_notes(read_model.projector.catch_up(progress=progress))
    done, projector = Embedded(), read_model.projector
    silent: dict[str, str] = {}
    for name, model in models.available_models_by_name():
        embedder = _ReleasingEmbedder(model, read_model.mutex)
        try:
            done += projector.embed_passages(embedder, batch=batch, progress=progress)
        except EmbeddingError as error:
            if name != "multilingual":
                raise
            silent[name] = error.message
    db = read_model.projector.connect_to_live()
    return EmbedReport(
        computed=done.computed,
        cached=done.cached + caught_up.vectors_cached,
        withheld=done.withheld,
        pending=index.count_pending_passages_of_all_sets(db),
        set_aside=list_names_of_texts_set_aside(db, read_model.path),
        silent=silent,
    )

"""The state of a store, and what works here."""

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.streams import shown
from memlog.projector import catchup, projection_id
from memlog.projector.embedding.set_aside import names_set_aside
from memlog.projector.passages import index, vectors
from memlog.projector.sqlite import count_rows, described, vec_version, wrapped
from memlog.query.conflicts import MOST_OPEN, open_conflicts
from memlog.query.jobs import why_clock_is_doubted
from memlog.query.set_aside import SetAside, failures_of_today
from memlog.service.maintenance.model_findings import why_multilingual, why_not_multilingual
from memlog.service.memories.fading import PRUNED
from memlog.service.providers.breaker import Breaker, ProviderState
from memlog.service.providers.settings import LanguageModelProvider
from memlog.service.read_model import ReadModel, name_pending
from memlog.service.searches import providers_of


class Status(msgspec.Struct, kw_only=True):
    """The state of a store, and what works here.

    generation: the file of the read model; None without one.
    unread_bytes: of the log, behind the read model.
    nul_runs: runs of NUL bytes around lines, left by a power cut.
    plain_texts: events that are too long for their form to be looked at; their words are searched.
    vector_model: the model that the read model's vectors are of; None where it has no room for any.
    sqlite: the binding and its version, the first here that loads extensions where one does.
    sqlite_vec: the version of the extension; None where it does not work.
    model, dimension: of the embedding model that works here; None where none does. multilingual_model: of the
        extra `multilingual`; None where it is not installed, or does not work.
    vectors_set_aside: what a model could not embed today: words find it, and another day asks again.
    providers: who is asked for vectors and ranks, and how they do.
    set_aside: what the language model is not asked about again before tomorrow, in UTC.
    memory_conflicts: that wait for a person; memory_conflicts_queued: more of them, which wait behind these.
    silent: what would not take part in a search, or in a job, and why: `vector`, `multilingual`, `pending`,
        `prune`.
    """

    store: str
    generation: str | None
    projection_id: str
    unread_bytes: int
    events: int
    messages: int
    memories: int
    streams: int
    quarantined: int
    nul_runs: int
    plain_texts: int
    duplicates: int
    conflicts: int
    memory_conflicts: int
    memory_conflicts_queued: int
    vectors_pending: int
    vectors_set_aside: list[str]
    vector_model: str | None
    sqlite: str
    sqlite_vec: str | None
    model: str | None
    dimension: int | None
    multilingual_model: str | None
    providers: list[ProviderState]
    set_aside: list[SetAside]
    silent: dict[str, str]


def status_of(language_model: LanguageModelProvider | None, read_model: ReadModel) -> Status:
    """Read the state, without catching up."""
    projector = read_model.projector
    (embedder, multilingual), silent = read_model.model.models_or_why()
    if multilingual is not None and (problem := why_not_multilingual(multilingual)):
        multilingual, silent["multilingual"] = None, problem.message
    db, _ = read_model.latest(sync=False)
    current = projector.generations.current()
    with wrapped("the read model"):
        if embedder is not None or multilingual is not None:
            name_pending(db, silent)
        if (missing := why_multilingual(db, read_model.model)) is not None:
            silent["multilingual"] = missing
        if embedder is not None and (reason := vectors.why_unlike(db, embedder)):
            silent["vector"] = reason
        if doubt := why_clock_is_doubted(db, timestamps.now(), PRUNED):
            silent["prune"] = doubt
        unsettled = open_conflicts(db)
        providers, set_aside = [*providers_of(read_model)], []
        if language_model is not None:
            providers.append(Breaker(read_model.path, "language_model", language_model).state())
            set_aside = failures_of_today(db, language_model.place, language_model.name).set_aside()
        return Status(
            store=shown(read_model.path),
            generation=current.name if current else None,
            projection_id=projection_id.projection_id(projector.sizes),
            unread_bytes=catchup.unread_bytes(db, projector.log),
            events=count_rows(db, "events"),
            messages=count_rows(db, "messages WHERE type <> 'session_break'"),
            memories=count_rows(db, "memories"),
            streams=count_rows(db, "(SELECT DISTINCT stream FROM checkpoints)"),
            quarantined=count_rows(db, "quarantine"),
            nul_runs=count_rows(db, "nul_runs"),
            plain_texts=count_rows(db, "plain_texts"),
            duplicates=count_rows(db, "duplicates"),
            conflicts=count_rows(db, "conflicts"),
            memory_conflicts=min(unsettled, MOST_OPEN),
            memory_conflicts_queued=max(unsettled - MOST_OPEN, 0),
            vectors_pending=index.count_all_pending(db),
            vectors_set_aside=names_set_aside(db, read_model.path),
            vector_model=vectors.model_of(db),
            sqlite=described(),
            sqlite_vec=vec_version(db),
            model=embedder.id if embedder else None,
            dimension=embedder.dimension if embedder else None,
            multilingual_model=multilingual.id if multilingual else None,
            providers=providers,
            set_aside=set_aside,
            silent=silent,
        )

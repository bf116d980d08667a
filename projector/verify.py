"""Compares a read model with a replay of its log, and with a count of its lines."""

from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

import msgspec

from memlog.eventlog.quarantine import DAMAGE
from memlog.eventlog.streams import shown
from memlog.eventlog.verify import Lines, count_lines
from memlog.projector import checkpoints
from memlog.projector.catchup import Bounds, Progress, build, rewritten_streams
from memlog.projector.digest import digest, fulltext_digest
from memlog.projector.passages import index, vectors
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.passages.fulltext import TABLES
from memlog.projector.sqlite import (
    Connection,
    connect,
    count_rows,
    error_types,
    is_busy,
    transaction,
    why_no_vectors,
    wrapped,
)

Scratch = Callable[[], AbstractContextManager[Connection]]
"""Makes an empty database for a replay, which is gone at the end of the context."""

_MOST_STREAMS = 5
_REMEDY = ": memlog project --from-scratch builds another"


class NulRun(msgspec.Struct):
    """NUL bytes around a line, left by a power cut: where the first stands, and how many there are."""

    stream: str
    segment: str
    offset: int
    bytes: int


class Verification(msgspec.Struct, kw_only=True):
    """What was found. `problems` and `tampered` are empty where all is well; what `quarantined`,
    `duplicates`, `conflicts`, `nul_runs` and `torn_seals` tell may stand in a healthy log, and nothing may
    ever remove it.

    digest, replayed: of the read model and of a replay of its log; None where there is none to compare.
    damaged: quarantined lines whose bytes are not those that memlog wrote.
    vectors: how many stand; missing_vectors: how many passages still wait for one.
    cached_vectors: how many the cache has. unused_vectors: of how many texts that no passage has, such as
        what a document said before; a scrub leaves none.
    seals: how many segments have one. torn_seals: fragments of seals that killed writers left.
    accepted_losses: how often a person has accepted a loss.
    tampered: what is wrong with seals, or with the segments that they speak of.
    notes: what was not compared, and why.
    """

    digest: str | None
    replayed: str | None
    events: int
    duplicates: int
    conflicts: int
    quarantined: dict[str, int]
    nul_runs: list[NulRun]
    damaged: int
    vectors: int
    missing_vectors: int
    cached_vectors: int = 0
    unused_vectors: int = 0
    seals: int = 0
    torn_seals: int = 0
    accepted_losses: int = 0
    problems: list[str]
    tampered: list[str] = []
    notes: list[str] = []

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.problems and not self.tampered

    @property
    def is_spotless(self) -> bool:
        """Whether nothing at all is odd (`--strict`)."""
        odd = self.duplicates or self.conflicts or self.quarantined or self.nul_runs or self.torn_seals
        return self.ok and not odd


NOT_COMPARED = Verification(
    digest=None,
    replayed=None,
    events=0,
    duplicates=0,
    conflicts=0,
    quarantined={},
    nul_runs=[],
    damaged=0,
    vectors=0,
    missing_vectors=0,
    problems=[],
)
"""Where there is no read model to compare."""


def verify(
    db: Connection,
    log: Path,
    sizes: ChunkSizes,
    *,
    read_only: bool = False,
    scratch: Scratch = lambda: closing(connect(None, "bulk")),
    progress: Progress | None = None,
) -> Verification:
    """Replay `log` as far as the read model in `db` has come, and compare. Not where the log was rewritten
    since: what was read of it stands nowhere, and the next read replays what stands there now.

    read_only: leave out FTS5's own check, which writes nothing but is put as an INSERT; the comparison of all
        words with a replay's finds more.
    scratch: makes the database of the replay; in memory unless given.

    Raises:
        DatabaseError: the read model cannot be read.
    """
    with wrapped("the read model"), transaction(db, "DEFERRED"):
        rewritten = rewritten_streams(db, log)
        if rewritten:
            found = msgspec.structs.replace(NOT_COMPARED, problems=[], notes=[_rewritten(rewritten)])
        else:
            found = _compared(db, log, sizes, scratch, progress)
        found.problems += _vector_problems(db)
        found.problems += _file_problems(db)
    if not read_only:
        _check_fulltext(db, found)
    return found


def _rewritten(streams: list[str]) -> str:
    listed = ", ".join(map(shown, streams[:_MOST_STREAMS])) + (", …" if len(streams) > _MOST_STREAMS else "")
    return (
        f"the log was rewritten after the last read: {listed}; the next read or memlog project replays it:"
        " the read model was not compared"
    )


def _compared(
    db: Connection, log: Path, sizes: ChunkSizes, scratch: Scratch, progress: Progress | None
) -> Verification:
    """What the read model is beside a replay of the log, as far as it has come."""
    found = _described(db)
    fulltext = fulltext_digest(db)
    bounds = {place: checkpoint.offset for place, checkpoint in checkpoints.load_all(db).items()}
    found.replayed, replayed_fulltext = _replayed(scratch, log, sizes, bounds, progress)
    if found.digest != found.replayed:
        found.problems.append(f"the read model is unlike a replay of its log{_REMEDY}")
    if fulltext != replayed_fulltext:
        found.problems.append(f"the full text is unlike a replay of its log{_REMEDY}")
    found.problems += _count_problems(found, count_lines(log, bounds))
    return found


def _count_problems(found: Verification, lines: Lines) -> list[str]:
    """Where the read model has other numbers than the log, counted without it."""
    pairs = {
        "events": (found.events, lines.events),
        "duplicates": (found.duplicates, lines.duplicates),
        "conflicts": (found.conflicts, lines.conflicts),
        "quarantined lines": (sum(found.quarantined.values()), lines.quarantined.total()),
    }
    return [
        f"the read model has {here} {what}, the log {there}"
        for what, (here, there) in pairs.items()
        if here != there
    ]


def _file_problems(db: Connection) -> list[str]:
    """What SQLite's own check finds in its pages and indexes."""
    found = [str(row[0]) for row in db.execute("PRAGMA integrity_check(3)")]
    return [] if found == ["ok"] else [f"the read model's file: {'; '.join(found)}"]


_NUL_RUNS = "SELECT stream, segment, offset, length FROM nul_runs ORDER BY stream, segment, offset"


def _described(db: Connection) -> Verification:
    quarantined = dict(db.execute("SELECT reason, count(*) FROM quarantine GROUP BY reason ORDER BY reason"))
    return Verification(
        digest=digest(db),
        replayed="",
        events=count_rows(db, "events"),
        duplicates=count_rows(db, "duplicates"),
        conflicts=count_rows(db, "conflicts"),
        quarantined=quarantined,
        nul_runs=[NulRun(*row) for row in db.execute(_NUL_RUNS)],
        damaged=sum(quarantined.get(reason, 0) for reason in DAMAGE),
        vectors=_count_vectors(db),
        missing_vectors=index.count_pending(db),
        problems=[],
    )


def _replayed(
    scratch: Scratch, log: Path, sizes: ChunkSizes, bounds: Bounds, progress: Progress | None
) -> tuple[str, str]:
    """The digests of rows and full text of a fresh replay."""
    with scratch() as db, wrapped("the replay"):
        build(db, log, sizes, bounds=bounds, progress=progress)
        return digest(db), fulltext_digest(db)


def _count_vectors(db: Connection) -> int:
    if vectors.model_of(db) is None or why_no_vectors() is not None:
        return 0
    return sum(count_rows(db, shelf.vectors) for shelf in index.SHELVES)


def _vector_problems(db: Connection) -> list[str]:
    if vectors.model_of(db) is None or why_no_vectors() is not None:
        return []
    problems = []
    for shelf in index.SHELVES:
        counted = count_rows(db, shelf.vectors) + count_rows(db, shelf.queue)
        if counted != count_rows(db, shelf.chunks):
            problems.append(f"{shelf.chunks}: passages and vectors do not match in number")
        probe = db.execute(f"SELECT rowid, embedding FROM {shelf.vectors} LIMIT 1").fetchone()
        if probe and not _finds(db, shelf.vectors, probe[1]):
            problems.append(f"{shelf.vectors}: a vector does not find itself")
    return problems


def _finds(db: Connection, table: str, vector: bytes) -> bool:
    nearest = db.execute(
        f"SELECT distance FROM {table} WHERE embedding MATCH ? AND k = 1", (vector,)
    ).fetchone()
    return nearest is not None and abs(nearest[0]) <= 1e-3


def _check_fulltext(db: Connection, found: Verification) -> None:
    """Add what FTS5's own check finds."""
    for table in TABLES:
        try:
            db.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        except error_types() as error:
            problem = f"{table}: {error}"
            if is_busy(error):
                found.notes.append(f"{problem}: FTS5 did not check it")
            else:
                found.problems.append(problem)

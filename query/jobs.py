"""Runs of jobs."""

from collections.abc import Iterable

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.extraction import JobStep
from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query.event_index import LinePosition
from memlog.query.rows import POSITION, record


class JobRun(msgspec.Struct, kw_only=True):
    """A run of a job.

    period: the local day for which it was due. ts: when it ended.
    """

    id: str
    job: str
    period: str
    ts: str
    steps: list[JobStep]
    position: LinePosition


def job_runs(
    db: Connection, *, job: str | None = None, period: str | None = None, limit: int | None = None
) -> list[JobRun]:
    """The runs of all jobs, or of one, for all periods or one, the newest first."""
    rows = db.execute(
        f"SELECT r.steps, r.id, r.job, r.period, r.ts, {POSITION} FROM job_runs r"
        " JOIN events e USING (stream, id) WHERE (?1 IS NULL OR r.job = ?1)"
        " AND (?3 IS NULL OR r.period = ?3)"
        " ORDER BY r.ts DESC, r.period DESC, e.day DESC, e.number DESC, e.writer, e.offset DESC LIMIT ?2",
        (job, -1 if limit is None else limit, period),
    )
    return [record(JobRun, row, steps=msgspec.json.decode(steps, type=list[JobStep])) for steps, *row in rows]


def is_job_due(db: Connection, job: str, period: str, ts: str) -> bool:
    """Whether a job has not run for a period. Nothing was missed at a time before anything happened."""
    ran = db.execute("SELECT 1 FROM job_runs WHERE (job, period) = (?, ?)", (job, period)).fetchone()
    return (
        ran is None and db.execute("SELECT 1 FROM events WHERE ts < ? LIMIT 1", (ts,)).fetchone() is not None
    )


def skipped_steps(db: Connection, job: str, period: str) -> list[str]:
    """Return the steps that the last run for a period left out: they are due as soon as they can be done."""
    runs = job_runs(db, job=job, period=period, limit=1)
    return [step.name for run in runs for step in run.steps if step.outcome == "skipped"]


def last_extraction(db: Connection) -> str | None:
    """When messages were distilled last; None if never."""
    rows = db.execute("SELECT max(ts) FROM closed_extractions WHERE type = 'memories_extracted'")
    (last,) = rows.fetchone()
    return None if last is None else str(last)


def last_summary(db: Connection) -> str | None:
    """When a language model summarised a conversation last; None if never."""
    (last,) = db.execute("SELECT max(created_at) FROM summaries WHERE is_distilled").fetchone()
    return None if last is None else str(last)


_AHEAD = 60
"""Days. A store that nobody has written to for so long may be one whose clock is wrong: what a job archives
by it stays archived, and what it keeps can be pruned next week."""

_ANY_OF = """
SELECT 1 FROM memories WHERE category IN (SELECT value FROM json_each(?)) AND archived_at IS NULL LIMIT 1
"""

_DAY = 24 * 60 * 60 * 1000

_BY_OTHERS = """
SELECT max(at) FROM (
    SELECT max(coalesce(at, ts)) AS at FROM events WHERE type IN (
        'message', 'session_break', 'memory_accessed', 'context_given', 'memory_deleted', 'fact_stored',
        'fact_removed', 'source_registered', 'source_removed'
    )
    UNION ALL
    SELECT max(coalesce(e.at, e.ts)) FROM memory_events t
    JOIN events e ON (e.stream, e.id) = (t.stream, t.event_id) AND e.type = 'memory_saved'
    WHERE t.extraction_id IS NULL
    UNION ALL
    SELECT max(coalesce(e.at, e.ts)) FROM core_values c
    JOIN events e ON (e.stream, e.id) = (c.stream, c.event_id) WHERE NOT c.is_profile
    UNION ALL
    SELECT max(coalesce(e.at, e.ts)) FROM daily_events d
    JOIN events e USING (stream, id) WHERE d.chat_id IS NULL
)
"""


def why_clock_is_doubted(db: Connection, now: str, categories: Iterable[str]) -> str | None:
    """Return why jobs do not prune at this time, if the clock is far ahead of what others than jobs wrote.

    categories: those that jobs prune; without a memory of one there is no doubt.
    """
    if db.execute(_ANY_OF, (as_list([*categories]),)).fetchone() is None:
        return None
    (newest,) = db.execute(_BY_OTHERS).fetchone()
    if newest is None or now <= timestamps.shifted(newest, _AHEAD * _DAY):
        return None
    return (
        f"the clock says {now[:10]}, and nobody but jobs has appended since {newest[:10]}: jobs prune nothing"
        " until somebody does, or prunes by hand"
    )

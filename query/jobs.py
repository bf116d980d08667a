"""Runs of jobs."""

import msgspec

from memlog.eventlog.extraction import JobStep
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


def job_runs(db: Connection, *, job: str | None = None, limit: int | None = None) -> list[JobRun]:
    """The runs of all jobs, or of one, the newest first."""
    rows = db.execute(
        f"SELECT r.steps, r.id, r.job, r.period, r.ts, {POSITION} FROM job_runs r"
        " JOIN events e USING (stream, id) WHERE ?1 IS NULL OR r.job = ?1"
        " ORDER BY r.ts DESC, r.period DESC, e.day DESC, e.number DESC, e.writer, e.offset DESC LIMIT ?2",
        (job, -1 if limit is None else limit),
    )
    return [record(JobRun, row, steps=msgspec.json.decode(steps, type=list[JobStep])) for steps, *row in rows]


def is_job_due(db: Connection, job: str, period: str, ts: str) -> bool:
    """Whether a job has not run for a period. Nothing was missed at a time before anything happened."""
    ran = db.execute("SELECT 1 FROM job_runs WHERE (job, period) = (?, ?)", (job, period)).fetchone()
    return (
        ran is None and db.execute("SELECT 1 FROM events WHERE ts < ? LIMIT 1", (ts,)).fetchone() is not None
    )


def last_extraction(db: Connection) -> str | None:
    """When messages were distilled last; None if never."""
    rows = db.execute("SELECT max(ts) FROM closed_extractions WHERE type = 'memories_extracted'")
    (last,) = rows.fetchone()
    return None if last is None else str(last)


def last_summary(db: Connection) -> str | None:
    """When a language model summarised a conversation last; None if never."""
    (last,) = db.execute("SELECT max(created_at) FROM summaries WHERE is_distilled").fetchone()
    return None if last is None else str(last)

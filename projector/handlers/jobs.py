"""Runs of jobs."""

from collections.abc import Sequence
from typing import cast

from memlog.eventlog.events import JobCompleted
from memlog.projector.handlers.accepted import Placed, as_json
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.rows import insert
from memlog.projector.sqlite import Connection


def add_runs(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Note which jobs have run."""
    rows = []
    for placed in events:
        said = cast(JobCompleted, placed.event)
        rows.append((placed.stream, placed.id, said.job, said.period, as_json(said.steps), placed.ts))
    insert(db, "job_runs", "stream, id, job, period, steps, ts", rows)

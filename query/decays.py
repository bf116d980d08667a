"""Decays of salience."""

import msgspec

from memlog.eventlog.categories import rate_of
from memlog.eventlog.errors import BadInput
from memlog.projector.sqlite import Connection
from memlog.query.event_index import LinePosition
from memlog.query.rows import POSITION, record

_STREAM = "memory"


class Decay(msgspec.Struct, frozen=True):
    """A `salience_decayed` event; rates: factors from 0 to 1 by category."""

    event_id: str
    ts: str
    rates: dict[str, float]
    position: LinePosition


def decay_of(db: Connection, event_id: str) -> Decay | None:
    """The decay with this id; None if no event has the id.

    Raises:
        BadInput: the id was forgotten, or is another event's.
    """
    row = db.execute(
        f"SELECT d.id, e.ts, d.rates, {POSITION} FROM decays d"
        " JOIN events e ON e.stream = d.stream AND e.id = d.id WHERE d.stream = ? AND d.id = ?",
        (_STREAM, event_id),
    ).fetchone()
    if row is not None:
        return record(Decay, row)
    other = db.execute(
        "SELECT 1 FROM events WHERE stream = ?1 AND id = ?2"
        " UNION ALL SELECT 1 FROM redactions WHERE stream = ?1 AND target_id = ?2",
        (_STREAM, event_id),
    ).fetchone()
    if other is not None:
        raise BadInput(
            f"{event_id} cannot decay anything: it was forgotten, or another event has this id",
            hint="a decay of another day has another id",
        )
    return None


def memories_changed(db: Connection, decay: Decay) -> int:
    """The number of memories, including archived ones, whose salience this decay lowered."""
    counts = db.execute(
        "SELECT m.category, count(*) FROM memories m JOIN decays d ON d.stream = ? AND d.id = ?"
        " WHERE m.salience_set > 0 AND m.salience_precedence < d.precedence"
        " AND NOT EXISTS (SELECT 1 FROM best_in_contexts b WHERE b.memory_id = m.memory_id AND b.day = ?)"
        " GROUP BY m.category",
        (_STREAM, decay.event_id, decay.ts[:10]),
    )
    return sum(count for category, count in counts if rate_of(decay.rates, category) < 1)

"""What was said around a message: its neighbours count for it, so that "Yes, last May." is found by what was
asked before.

It is added up when a question is asked, from the scores of the neighbours, and nothing is stored for it: a
message that arrives late is a neighbour of others at once. On LoCoMo that finds as much as a full-text column
with the neighbours' text, which would be five times the index (docs/search.md).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from memlog.projector.sqlite import Connection
from memlog.query.filters import Filters
from memlog.query.window import ORDER

SPAN = 2
"""Turns on each side that are looked at."""


class Neighbour(NamedTuple):
    """A message around others; is_wanted: whether the filters leave it in."""

    key: tuple[str, str]
    ts: str
    is_wanted: bool


@dataclass(frozen=True)
class Context:
    """Messages and those around them, by message number.

    after, before: the message that follows, or precedes, in the same session.
    """

    messages: dict[int, Neighbour]
    after: dict[int, int]
    before: dict[int, int]

    def spread(self, scores: Mapping[int, float], weights: Iterable[float]) -> dict[int, float]:
        """Each message's score, and those of its neighbours.

        weights: of the neighbour one turn away, two turns away, and so on.
        """
        spread = {number: score for number, score in scores.items() if number in self.messages}
        for links in (self.after, self.before):
            for number, score in scores.items():
                reached: int | None = number
                for weight in weights:
                    reached = links.get(reached) if reached is not None else None
                    if reached is None:
                        break
                    spread[reached] = spread.get(reached, 0.0) + weight * score
        return spread


def context_of(db: Connection, numbers: Iterable[int], filters: Filters) -> Context:
    """The messages of these numbers, and up to two on each side of them within their sessions."""
    condition = filters.of_messages()
    if condition is None:
        return Context({}, {}, {})
    rows = db.execute(
        f"{_NEAR} SELECT centre_no, m.message_no, m.type, m.stream, m.id, m.created_at, ({condition[0]})"
        " FROM near JOIN messages m ON m.message_no = near.message_no"
        " ORDER BY centre_no, m.created_at, m.segment_no, m.offset, m.stream",
        [json.dumps(list(numbers)), *condition[1]],
    ).fetchall()
    context = Context({}, {}, {})
    previous: tuple[int, int] | None = None
    for centre, number, kind, stream, event_id, ts, is_wanted in rows:
        if kind == _BREAK:
            previous = None
            continue
        if previous is not None and previous[0] == centre:
            context.after[previous[1]] = number
            context.before[number] = previous[1]
        previous = centre, number
        context.messages[number] = Neighbour((stream, event_id), ts, bool(is_wanted))
    return context


_BREAK = "session_break"


def _beside(sign: str, direction: str) -> str:
    """The messages on one side of each centre."""
    columns = ", ".join(f"x.{column}" for column in ORDER)
    order = ", ".join(f"x.{column} {direction}" for column in ORDER)
    return (
        "SELECT c.message_no, n.message_no FROM centre c CROSS JOIN messages n ON n.message_no IN"
        " (SELECT x.message_no FROM messages x WHERE x.channel = c.channel AND x.chat_id = c.chat_id"
        f" AND ({columns}) {sign} ({columns.replace('x.', 'c.')}) ORDER BY {order} LIMIT {SPAN})"
    )


_NEAR = (
    "WITH centre AS (SELECT * FROM messages WHERE message_no IN (SELECT value FROM json_each(?))),"
    " near (centre_no, message_no) AS (SELECT message_no, message_no FROM centre"
    f" UNION ALL {_beside('<', 'DESC')} UNION ALL {_beside('>', 'ASC')})"
)

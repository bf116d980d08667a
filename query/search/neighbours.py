"""Neighbours of messages: their scores count for a message, so that the question before it finds "Yes, last
May.".

Each search adds the scores up; nothing is stored, so a late message is a neighbour of others at once. On
LoCoMo this finds as much as a full-text column with the neighbours' text, which would be five times the index
(docs/search.md).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import msgspec

from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query.event_index import Key
from memlog.query.filters import Filters
from memlog.query.search.priors import LIKELIHOOD, SearchedMessage
from memlog.query.window import ORDER

SPAN = 2
"""Turns on each side that are neighbours."""


class Neighbourhood(msgspec.Struct, frozen=True, dict=True):
    """Messages and their neighbours, by message number.

    line: the numbers in order, with a gap where a session ends or the next message is no neighbour.
    """

    messages: dict[int, SearchedMessage]
    line: list[int | None]

    @cached_property
    def places(self) -> dict[int, int]:
        """The place of each message on the line."""
        return {number: place for place, number in enumerate(self.line) if number is not None}

    def behind(self, key: Key) -> Key | None:
        """The next message of the session behind one; None without, or if it is not known."""
        for number, message in self.messages.items():
            if message.key == key and (place := self.places.get(number)) is not None:
                following = self.line[place + 1] if place + 1 < len(self.line) else None
                return None if following is None else self.messages[following].key
        return None

    def by_number(self, values: Iterable[float]) -> Iterator[tuple[int, float]]:
        """The messages with their values, which are given by place on the line."""
        return (
            (number, value) for number, value in zip(self.line, values, strict=True) if number is not None
        )

    def spread(self, scores: Iterable[tuple[int, float]], weights: Sequence[float]) -> list[float]:
        """The score of each place on the line, with the weighted scores of its neighbours.

        scores: by place. weights: of neighbours one turn away, two turns away.
        """
        spread = [0.0] * len(self.line)
        for place, score in scores:
            spread[place] += score
            for turns, weight in enumerate(weights, start=1):
                spread[place - turns] += weight * score
                spread[place + turns] += weight * score
        return spread


NO_NEIGHBOURS = Neighbourhood({}, [])


def neighbourhood_of(
    db: Connection, numbers: Iterable[int], filters: Filters, *, alone: bool
) -> Neighbourhood:
    """The messages with these numbers, and unless `alone` up to two on each side within their sessions."""
    condition = filters.of_messages()
    chosen = as_list(list(numbers))
    if condition is None or chosen == "[]":
        return Neighbourhood({}, [])
    # Messages and breaks in order; a window that reaches beyond its chat has nulls at that end.
    with_nulls = [] if alone else db.execute(_WINDOWS, (chosen,)).fetchall()
    windows: list[list[int]] = [[number for number in row if number is not None] for row in with_nulls]
    around = {number for window in windows for number in window}
    rows = db.execute(
        f"SELECT message_no, type = 'session_break', stream, id, created_at, {LIKELIHOOD.format('content')},"
        f" name, ({condition[0]}) FROM messages m WHERE message_no IN (SELECT value FROM json_each(?))",
        [*condition[1], as_list(sorted(around)) if windows else chosen],
    ).fetchall()
    messages = {
        number: SearchedMessage((stream, event_id), ts, speaker, likelihood, bool(is_wanted))
        for number, is_break, stream, event_id, ts, likelihood, speaker, is_wanted in rows
        if not is_break
    }
    pairs = (pair for window in windows for pair in pairwise(window))
    following = {number: behind for number, behind in pairs if number in messages and behind in messages}
    return Neighbourhood(messages, _line(messages, following))


def _line(messages: Iterable[int], following: dict[int, int]) -> list[int | None]:
    """The numbers in order, with gaps that no score crosses.

    following: the next message of each, unless a session break is between them.
    """
    gap = [None] * SPAN
    line: list[int | None] = [*gap]
    behind_others = set(following.values())
    for number in messages:
        if number in behind_others:
            continue
        line.append(number)
        # pop: in a damaged index a message may follow itself.
        while number := following.pop(number, 0):
            line.append(number)
        line += gap
    return line


def _beside(turns: int) -> str:
    """The number of the message `turns` after one; before it if negative."""
    sign, direction = (">", "ASC") if turns > 0 else ("<", "DESC")
    columns, own = (", ".join(f"{table}.{column}" for column in ORDER) for table in "nm")
    order = ", ".join(f"n.{column} {direction}" for column in ORDER)
    return (
        "(SELECT n.message_no FROM messages n WHERE n.channel = m.channel AND n.chat_id = m.chat_id"
        f" AND ({columns}) {sign} ({own}) ORDER BY {order} LIMIT 1 OFFSET {abs(turns) - 1})"
    )


_WINDOWS = (
    f"SELECT {', '.join(_beside(turns) if turns else 'message_no' for turns in range(-SPAN, SPAN + 1))}"
    " FROM messages m WHERE message_no IN (SELECT value FROM json_each(?))"
)

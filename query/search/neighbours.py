"""What was said around a message: its neighbours count for it, so that "Yes, last May." is found by what was
asked before.

It is added up when a question is asked, from the scores of the neighbours, and nothing is stored for it: a
message that arrives late is a neighbour of others at once. On LoCoMo that finds as much as a full-text column
with the neighbours' text, which would be five times the index (docs/search.md).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import msgspec

from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query.filters import Filters
from memlog.query.search.priors import LIKELIHOOD
from memlog.query.window import ORDER

SPAN = 2
"""Turns on each side that are looked at."""


class SearchedMessage(NamedTuple):
    """A message that a search looks at: one that was found, or one beside it.

    likelihood: as `priors.LIKELIHOOD` has it. is_wanted: whether the filters leave it in.
    """

    key: tuple[str, str]
    ts: str
    speaker: str | None
    likelihood: float
    is_wanted: bool


class Neighbourhood(msgspec.Struct, frozen=True, dict=True):
    """Messages and those around them, by message number.

    line: the numbers in their order, with a gap where a session ends or what follows is not looked at.
    """

    messages: dict[int, SearchedMessage]
    line: list[int | None]

    @cached_property
    def places(self) -> dict[int, int]:
        """Where on the line each message stands."""
        return {number: place for place, number in enumerate(self.line) if number is not None}

    def by_number(self, values: Iterable[float]) -> Iterator[tuple[int, float]]:
        """Each message with its value of those by place on the line."""
        return (
            (number, value) for number, value in zip(self.line, values, strict=True) if number is not None
        )

    def spread(self, scores: Iterable[tuple[int, float]], weights: Sequence[float]) -> list[float]:
        """By place on the line, the score that stands there, and those of its neighbours.

        scores: by place. weights: of the neighbour one turn away, and two turns away.
        """
        spread = [0.0] * len(self.line)
        for place, score in scores:
            spread[place] += score
            for turns, weight in enumerate(weights, start=1):
                spread[place - turns] += weight * score
                spread[place + turns] += weight * score
        return spread


def neighbourhood_of(
    db: Connection, numbers: Iterable[int], filters: Filters, *, alone: bool
) -> Neighbourhood:
    """The messages of these numbers, and up to two on each side of them within their sessions.

    alone: without those on each side.
    """
    condition = filters.of_messages()
    found = as_list(list(numbers))
    if condition is None or found == "[]":
        return Neighbourhood({}, [])
    windows: list[tuple[int | None, ...]] = [] if alone else db.execute(_WINDOWS, (found,)).fetchall()
    around = {number for window in windows for number in window if number is not None}
    rows = db.execute(
        f"SELECT message_no, type = 'session_break', stream, id, created_at, {LIKELIHOOD.format('content')},"
        f" name, ({condition[0]}) FROM messages m WHERE message_no IN (SELECT value FROM json_each(?))",
        [*condition[1], as_list(sorted(around)) if windows else found],
    ).fetchall()
    messages = {
        number: SearchedMessage((stream, event_id), ts, speaker, likelihood, bool(is_wanted))
        for number, is_break, stream, event_id, ts, likelihood, speaker, is_wanted in rows
        if not is_break
    }
    return Neighbourhood(messages, _line(messages, _followers(windows, messages)))


def _followers(
    windows: Iterable[Sequence[int | None]], messages: Mapping[int, SearchedMessage]
) -> dict[int, int]:
    """The message after each, where no session break is between them.

    windows: messages and breaks in their order; None where a chat has no more.
    """
    pairs = (pair for window in windows for pair in pairwise(window))
    return {
        number: following
        for number, following in pairs
        if number is not None and following is not None and number in messages and following in messages
    }


def _line(messages: Iterable[int], following: dict[int, int]) -> list[int | None]:
    """Gaps are as wide as scores reach, so that none comes over."""
    gap = [None] * SPAN
    line: list[int | None] = [*gap]
    behind_others = set(following.values())
    for number in messages:
        if number in behind_others:
            continue
        line.append(number)
        # Taken out, since in a damaged index a message may stand behind itself.
        while number := following.pop(number, 0):
            line.append(number)
        line += gap
    return line


def _beside(turns: int) -> str:
    """The number of the message so many turns after one; before it where they are negative."""
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

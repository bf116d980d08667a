"""Filters of a search. They apply inside both sides, before the cut."""

import json
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["message", "memory"]
Sql = tuple[str, list[Any]]
"""A condition and its values."""


@dataclass(frozen=True)
class Filters:
    """What hits must be. A kind that lacks what is asked for is left out: a memory has no role, a message
    no category.

    kinds: None for all.
    chat: (channel, chat_id).
    since, until: since <= ts < until, as the log writes times.
    exclude: ids of events or memories.
    """

    kinds: frozenset[Kind] | None = None
    chat: tuple[str, str] | None = None
    role: str | None = None
    category: str | None = None
    since: str | None = None
    until: str | None = None
    exclude: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_empty(self) -> bool:
        """Whether everything may be a hit."""
        return self == Filters()

    def of_messages(self) -> Sql | None:
        """On `messages m`; None where no message can be a hit."""
        if self.category is not None or not self._wants("message"):
            return None
        given: list[Sql] = [("m.type <> ?", ["session_break"])]
        if self.chat is not None:
            given.append(("m.channel = ? AND m.chat_id = ?", [*self.chat]))
        if self.role is not None:
            given.append(("m.role = ?", [self.role]))
        if self.exclude:
            given.append(("m.id NOT IN (SELECT value FROM json_each(?))", [json.dumps(sorted(self.exclude))]))
        return _all(given + self._times("m.created_at"))

    def of_memories(self) -> Sql | None:
        """On `memories y`; None where no memory can be a hit."""
        if self.role is not None or not self._wants("memory"):
            return None
        given: list[Sql] = []
        if self.chat is not None:
            given.append(("y.chat_id = ?", [":".join(self.chat)]))
        if self.category is not None:
            given.append(("y.category = ?", [self.category]))
        if self.exclude:
            ids = json.dumps(sorted(self.exclude))
            given.append(("y.memory_id NOT IN (SELECT value FROM json_each(?))", [ids]))
            given.append(("y.event_id NOT IN (SELECT value FROM json_each(?))", [ids]))
        return _all(given + self._times("y.updated_at"))

    def _wants(self, kind: Kind) -> bool:
        return self.kinds is None or kind in self.kinds

    def _times(self, column: str) -> list[Sql]:
        bounds = ((self.since, ">="), (self.until, "<"))
        return [(f"{column} {sign} ?", [time]) for time, sign in bounds if time is not None]


def _all(conditions: list[Sql]) -> Sql:
    sql = " AND ".join(condition for condition, _ in conditions)
    return sql or "1", [value for _, values in conditions for value in values]

"""Whose memory a context gives: that of the whole store, or that of one conversation."""

from typing import NamedTuple

from memlog.projector.sqlite import Connection
from memlog.query.context.request import BuildContext, Scope

_NAME = "(SELECT {}(name) FROM messages WHERE role = 'user' AND name IS NOT NULL)"


class ChosenScope(NamedTuple):
    """The scope of a context, `store` or `chat`, and why."""

    scope: Scope
    why: str


def scope_of(db: Connection, request: BuildContext, *, synced: bool) -> ChosenScope:
    """The scope of a request; `chat` without a chat is what belongs to no chat.

    synced: whether the read model has come up to the log.

    Raises:
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    if request.scope != "auto":
        return ChosenScope(request.scope, "it was asked for")
    if request.chat is not None and not synced:
        return ChosenScope("chat", "the read model may be behind the log, which may name a second person")
    chosen = automatic_scope(db)
    if request.chat is None and chosen.scope == "chat":
        return chosen._replace(why=f"{chosen.why}; no chat was named, so only what belongs to none is given")
    return chosen


def automatic_scope(db: Connection) -> ChosenScope:
    """The scope that `auto` chooses, so that nobody is given what another person said."""
    first, last = db.execute(f"SELECT {_NAME.format('min')}, {_NAME.format('max')}").fetchone()
    if first is None:
        return ChosenScope("store", "no user message names its speaker")
    if first == last:
        return ChosenScope("store", f"all user messages that name their speaker are of {first}")
    return ChosenScope("chat", f"several people talk to the agent, such as {first} and {last}")

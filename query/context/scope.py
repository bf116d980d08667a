"""Whose memory a context gives: that of the whole store, or that of one conversation."""

from itertools import islice
from typing import NamedTuple

from memlog.projector.sqlite import Connection
from memlog.query.context.people import People, Speaker, speakers
from memlog.query.context.request import BuildContext, Scope


class ChosenScope(NamedTuple):
    """The scope of a context, `store` or `chat`, and why.

    joined: further chats of the person of the chat.
    """

    scope: Scope
    why: str
    joined: tuple[str, ...] = ()


def scope_of(db: Connection, request: BuildContext, people: People, *, synced: bool) -> ChosenScope:
    """Choose the scope of a request; `chat` without a chat is what belongs to no chat.

    synced: whether the read model has come up to the log.

    Raises:
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    if request.scope != "auto":
        return ChosenScope(request.scope, "the request names it")
    chat = request.chat_name
    if chat is not None and not synced:
        return ChosenScope("chat", "the read model may be behind the log, which may name a second person")
    chosen = automatic_scope(db, people, chat)
    if chosen.scope == "store":
        return chosen
    if chat is None:
        return chosen._replace(why=f"{chosen.why}; no chat was named, so only what belongs to none is given")
    return chosen._replace(joined=tuple(sorted(people.joined(chat) - {chat})))


def automatic_scope(db: Connection, people: People, chat: str | None = None) -> ChosenScope:
    """Choose the scope of `auto`, so that nobody is given what another person said.

    chat: one that is about to begin.
    """
    found = [*islice(speakers(db, people, chat), 2)]
    if len(found) > 1:
        return ChosenScope(
            "chat", f"several people talk to the agent, such as {' and '.join(map(_shown, found))}"
        )
    if not found:
        return ChosenScope("store", "no user message names its speaker")
    return ChosenScope("store", f"one person talks to the agent: {_shown(found[0])}")


def _shown(speaker: Speaker) -> str:
    return speaker.name or f"somebody without a name in {speaker.chat}"

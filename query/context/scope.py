"""Whose memory a context gives: that of the whole store, or that of one conversation."""

from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple

from memlog.projector.sqlite import Connection
from memlog.query.context.people import People, Speaker, speakers
from memlog.query.context.request import BuildContext, Scope
from memlog.query.context.sources import chats_of


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


class ChatGroup(NamedTuple):
    """Chats that share a scope, and what is derived of them.

    chat: the first of them, by which events name the group; None for what belongs to no chat.
    chats: all of them; None for all chats of the store.
    """

    chat: str | None
    chats: frozenset[str] | None

    def has(self, chats: AbstractSet[str]) -> bool:
        """Whether what comes from `chats` belongs to the group."""
        return self.chats is None or (bool(chats) == bool(self.chats) and self.chats >= chats)


def chat_groups(db: Connection, people: People) -> list[ChatGroup]:
    """Return the groups of chats that memories come from: what no context shows together is in no group."""
    if automatic_scope(db, people).scope == "store":
        return [ChatGroup(None, None)]
    active = [memory_id for (memory_id,) in db.execute("SELECT memory_id FROM memories")]
    chats = {chat for found in chats_of(db, active).values() for chat in found}
    groups = {people.joined(chat) for chat in chats if all(chat.partition(":")[::2])}
    return [ChatGroup(None, frozenset()), *(ChatGroup(min(each), each) for each in sorted(groups, key=min))]


def knows_messengers(db: Connection) -> bool:
    """Whether a read model, which may be of an older version, tells the chats of messengers apart."""
    select = "SELECT count(*) FROM sqlite_master WHERE name = 'messages_by_user' AND sql LIKE '%chat_id%'"
    return bool(db.execute(select).fetchone()[0])


def narrowed_by_messengers(db: Connection, people: People) -> str | None:
    """Return why chats are kept apart though names alone would not tell; None where they would, or share."""
    (names,) = db.execute("SELECT count(DISTINCT name) FROM messages WHERE role = 'user'").fetchone()
    chosen = automatic_scope(db, people)
    return chosen.why if names < 2 and chosen.scope == "chat" else None


def _shown(speaker: Speaker) -> str:
    return speaker.name or f"somebody without a name in {speaker.chat}"

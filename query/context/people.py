"""Who talks to the agent: one person, or several whose conversations are kept apart."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from memlog.eventlog.chat import Chat
from memlog.eventlog.errors import BadInput, shown_value
from memlog.eventlog.limits import MESSENGERS
from memlog.projector.sqlite import Connection
from memlog.query.chats import is_known


class People(msgspec.Struct, frozen=True, kw_only=True):
    """Whose chats are whose.

    messengers: channels over which several people may write. A chat there in which nobody has given a name is
        somebody's own.
    chats: the chats of each person, such as `{"anna": ["telegram:1", "signal:+358401"]}`. They share a scope,
        and are not another person's, whatever names their messages give.

    Raises:
        BadInput: it has another form, or a chat is of two people.
    """

    messengers: tuple[str, ...] = MESSENGERS
    chats: dict[str, list[str]] = {}

    def __post_init__(self) -> None:
        if not _is_list(self.messengers):
            hint = 'a list of channels, such as ("telegram",)'
            raise BadInput(f"messengers is {shown_value(self.messengers)}", hint=hint)
        for channel in self.messengers:
            if not channel or ":" in channel:
                raise BadInput(f"messengers has {channel!r}", hint="name a channel, such as telegram")
        is_table = isinstance(self.chats, dict) and all(isinstance(each, str) for each in self.chats)
        if not is_table or not all(map(_is_list, self.chats.values())):
            hint = '{"anna": ["telegram:1", "signal:+358401"]}'
            raise BadInput(f"chats is {shown_value(self.chats)}", hint=hint)
        owners: dict[str, str] = {}
        for person, chats in self.chats.items():
            for chat in chats:
                if owners.setdefault(str(Chat.of(chat)), person) != person:
                    raise BadInput(f"{chat} is of {owners[chat]} and of {person}", hint="name it once")

    def owner(self, chat: str) -> str | None:
        """Return the person whose chat it is, as far as the settings say."""
        return next((person for person, chats in self.chats.items() if chat in chats), None)

    def joined(self, chat: str) -> frozenset[str]:
        """Return the chats that share a scope with a chat, itself among them."""
        owner = self.owner(chat)
        return frozenset([chat, *(self.chats[owner] if owner is not None else ())])

    def is_messenger(self, chat: str) -> bool:
        """Whether anybody may write in a chat."""
        return self.has_messenger(chat.partition(":")[0])

    def has_messenger(self, channel: str) -> bool:
        """Whether a channel is one of the messengers, in any case of letters."""
        return channel.casefold() in {each.casefold() for each in self.messengers}


class Speaker(NamedTuple):
    """A person who talks to the agent.

    name: of the settings, or of messages; None for whoever writes in a chat where nobody has given one.
    chat: one of theirs.
    """

    name: str | None
    chat: str


_NEXT_NAMED = """
SELECT channel, chat_id, name FROM messages
WHERE role = 'user' AND name <> '' AND (channel, chat_id, name) > (?, ?, ?)
ORDER BY channel, chat_id, name LIMIT 1
"""

_HAS_NAME = """
SELECT EXISTS (SELECT 1 FROM messages WHERE role = 'user' AND name <> '' AND channel = ? AND chat_id = ?)
"""

_NEXT_CHANNEL = "SELECT min(channel) FROM messages WHERE channel > ?"
_NEXT_CHAT = "SELECT min(chat_id) FROM messages WHERE channel = ? AND chat_id > ?"

_OF_MEMORIES = """
SELECT chat_id FROM memories WHERE chat_id IS NOT NULL
UNION SELECT chat_id FROM facts WHERE chat_id <> ''
UNION SELECT channel || ':' || chat_id FROM summaries
UNION SELECT coalesce(chat_id, channel || ':' || sender_id) FROM daily_events WHERE channel IS NOT NULL
ORDER BY 1
"""


def speakers(db: Connection, people: People, chat: str | None = None) -> Iterator[Speaker]:
    """Yield who talks to the agent, one by one: two are enough to know that there are several.

    chat: one that is about to begin.
    """
    for person, chats in people.chats.items():
        if begun := next((each for each in chats if each == chat or is_known(db, Chat.of(each))), None):
            yield Speaker(person, begun)
    names = set[str]()
    for place, name in _named(db):
        if people.owner(place) is None and name not in names:
            names.add(name)
            yield Speaker(name, place)
    for place in nameless_chats(db, people, chat):
        yield Speaker(None, place)


def nameless_chats(db: Connection, people: People, chat: str | None = None) -> Iterator[str]:
    """Yield the chats of messengers in which nobody has given a name, and which are nobody's by the settings.

    chat: one that is about to begin.
    """
    found = set[str]()
    for place in _of_messengers(db, people, chat):
        if place not in found and people.owner(place) is None and not _has_name(db, place):
            found.add(place)
            yield place


def chats_by_name(db: Connection) -> dict[str, list[str]]:
    """Return the chats in which user messages give each name."""
    found: dict[str, list[str]] = {}
    for chat, name in _named(db):
        found.setdefault(name, []).append(chat)
    return found


def _named(db: Connection) -> Iterator[tuple[str, str]]:
    """Yield each chat with each name that its user messages give."""
    at: Any = ("", "", "")
    while at := db.execute(_NEXT_NAMED, at).fetchone():
        channel, chat_id, name = at
        yield f"{channel}:{chat_id}", name


def _of_messengers(db: Connection, people: People, chat: str | None) -> Iterator[str]:
    """Yield the chats of messengers, also those that only memories name."""
    if chat is not None and people.is_messenger(chat):
        yield chat
    for channel in filter(people.has_messenger, _following(db, _NEXT_CHANNEL)):
        for chat_id in _following(db, _NEXT_CHAT, channel):
            yield f"{channel}:{chat_id}"
    for (of_memory,) in db.execute(_OF_MEMORIES):
        if people.is_messenger(of_memory):
            yield of_memory


def _has_name(db: Connection, chat: str) -> bool:
    (found,) = db.execute(_HAS_NAME, chat.partition(":")[::2]).fetchone()
    return bool(found)


def _following(db: Connection, select: str, *of: str) -> Iterator[str]:
    """Yield each text that is the next one behind the last."""
    found: str | None = ""
    while (found := db.execute(select, (*of, found)).fetchone()[0]) is not None:
        yield found


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)

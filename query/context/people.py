"""Who talks to the agent: one person, or several whose conversations are kept apart."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

import msgspec

from memlog.eventlog.chat import Chat
from memlog.eventlog.errors import BadInput, shown_value
from memlog.eventlog.limits import MESSENGERS
from memlog.eventlog.unseen import is_unseen
from memlog.projector.sqlite import Connection


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


_NEXT_NAME = "SELECT min(name) FROM messages WHERE role = 'user' AND name <> '' AND name > ?"
_OF_NAME = "messages WHERE role = 'user' AND name <> '' AND name = ?"
_HAS_NAME = """
SELECT EXISTS (
    SELECT 1 FROM messages WHERE role = 'user' AND name <> '' AND name = ? AND channel = ? AND chat_id = ?
)
"""

_CONVERSED = ("messages WHERE TRUE", "summaries WHERE TRUE")
_NEXT_CATEGORY = "SELECT min(category) FROM memories WHERE category > ?"
_LAST = "\U0010ffff"
_OF_SENDERS = """
SELECT DISTINCT channel || ':' || sender_id FROM daily_events
WHERE channel IS NOT NULL AND sender_id IS NOT NULL
"""


def speakers(db: Connection, people: People, chat: str | None = None) -> Iterator[Speaker]:
    """Yield who talks to the agent, one by one: two are enough to know that there are several.

    chat: one that is about to begin.
    """
    # Whoever is named in the settings counts before anything is said.
    yield from (Speaker(person, chats[0]) for person, chats in people.chats.items() if chats)
    for name in _names(db):
        own = (Speaker(name, place) for place in _of_name(db, name) if people.owner(place) is None)
        yield from islice(own, 1)
    for place in nameless_chats(db, people, chat):
        yield Speaker(None, place)


def nameless_chats(db: Connection, people: People, chat: str | None = None) -> Iterator[str]:
    """Yield the chats of messengers in which nobody has given a name, and which are nobody's by the settings.

    chat: one that is about to begin.
    """
    names, found = [*_names(db)], set[str]()
    for place in _of_messengers(db, people, chat):
        if place not in found and people.owner(place) is None:
            found.add(place)
            where = place.partition(":")[::2]
            if not any(db.execute(_HAS_NAME, (name, *where)).fetchone()[0] for name in names):
                yield place


def chats_by_name(db: Connection) -> dict[str, list[str]]:
    """Return the chats in which user messages give each name."""
    return {name: [*_of_name(db, name)] for name in _names(db)}


def _names(db: Connection) -> Iterator[str]:
    """Yield the names that user messages give. What nobody can see is none."""
    names = _following(db, _NEXT_NAME)
    return (name for name in names if not all(sign.isspace() or is_unseen(sign) for sign in name))


def _of_name(db: Connection, name: str) -> Iterator[str]:
    """Yield the chats in which user messages give a name."""
    return _chats(db, _OF_NAME, name)


def _of_messengers(db: Connection, people: People, chat: str | None) -> Iterator[str]:
    """Yield the chats of messengers, also those that only derived things name."""
    if chat is not None and people.is_messenger(chat):
        yield chat
    for rows in _CONVERSED:
        yield from _chats(db, rows, wanted=people.has_messenger)
    yield from _derived(db, people, "facts WHERE TRUE")
    for category in _following(db, _NEXT_CATEGORY):
        yield from _derived(db, people, "memories WHERE category = ?", category)
    yield from (chat for (chat,) in db.execute(_OF_SENDERS) if people.is_messenger(chat))


def _chats(
    db: Connection, rows: str, *of: str, wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[str]:
    """Yield the chats that rows are of, in the channels that are wanted."""
    for channel in filter(wanted, _following(db, f"SELECT min(channel) FROM {rows} AND channel > ?", *of)):
        next_chat = f"SELECT min(chat_id) FROM {rows} AND channel = ? AND chat_id > ?"
        yield from (f"{channel}:{chat_id}" for chat_id in _following(db, next_chat, *of, channel))


def _derived(db: Connection, people: People, rows: str, *of: str) -> Iterator[str]:
    """Yield the chats of messengers that derived rows are of; those of other channels are passed over."""
    next_chat = f"SELECT min(chat_id) FROM {rows} AND chat_id > ?"
    at: str | None = ""
    while (at := db.execute(next_chat, (*of, at)).fetchone()[0]) is not None:
        if people.is_messenger(at):
            yield at
        else:
            at = f"{at.partition(':')[0]}:{_LAST}"


def _following(db: Connection, select: str, *of: str) -> Iterator[str]:
    """Yield what a statement finds behind the last one: with an index it looks at no row twice."""
    found: str | None = ""
    while (found := db.execute(select, (*of, found)).fetchone()[0]) is not None:
        yield found


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)

"""Projects and chats as hypothesis draws them: with names and ids alike, and a canary in all that they say.

A canary is a word that stands in everything that was said in one chat of one project, or in a project without
a chat, and nowhere else.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Chat = tuple[str, str]
Draw = tuple[int, int, int, int]
"""The numbers of a kind of event, of a chat, of a text, and of an id."""

CHATS: list[Chat] = [
    ("telegram", "a"),
    ("telegram", "a_b"),
    ("telegram_a", "b"),
    ("Telegram", "a"),
    ("telegram", "A"),
    ("telegram", "a:b"),
    ("telegram", "ab"),
    ("telegram", "a%5fb"),
    ("telegram", "a "),
    ("telegram", "a/../b"),
    ("tele", "gram:a"),
    ("%", "_"),
    ("telegram", "é"),
    ("telegram", "e\u0301"),
    ("telegram", "x" * 130 + "1"),
    ("telegram", "x" * 130 + "2"),
]
TEXTS = [
    "I drink green tea",
    "My favourite colours are 1) Blue, 2) Green",
    "Anna lives in Helsinki",
    "Pidän teestä",
]
TIMES = [f"2026-02-{day}T08:00:0{second}.000Z" for day in (24, 25) for second in range(3)]
# Long enough that no random name of a folder has one.
CANARY = re.compile(r"zqzq\d[a-z]")

OWN_SCOPE = None
"""What belongs to no chat."""


@dataclass(frozen=True)
class World:
    """One project: its chats, and what is appended to its log."""

    number: int
    chats: list[Chat]
    drawn: list[Draw]

    def canary(self, chat: Chat | None) -> str:
        """The word of a chat, or of what belongs to none."""
        return f"zqzq{self.number}" + ("s" if chat is OWN_SCOPE else "abcd"[self.chats.index(chat)])

    @property
    def canaries(self) -> dict[str, Chat | None]:
        """Whose word each is."""
        return {self.canary(chat): chat for chat in (OWN_SCOPE, *self.chats)}

    @property
    def events(self) -> list[dict[str, Any]]:
        """One of each kind for each chat and for the store's own scope, then what was drawn."""
        scopes = (OWN_SCOPE, *self.chats)
        first = [
            event
            for place, scope in enumerate(scopes)
            for event in self._first(scope, TEXTS[place % len(TEXTS)])
        ]
        return first + [event for draw in self.drawn for event in self._drawn(*draw)]

    def _first(self, scope: Chat | None, text: str) -> Iterator[dict[str, Any]]:
        said = f"{text} {self.canary(scope)}"
        saved, memory = (f"{kind}-{self.canary(scope)}" for kind in ("saved", "memory"))
        of_scope = {"chat_id": name_of(scope)}
        yield {"type": "memory_saved", "content": said, "id": saved, "memory_id": memory} | of_scope
        decision = {"relation": "contradiction", "memory_ids": [memory], "event_ids": [saved]}
        compared = {"event_ids": [saved], "decisions": [decision], "model": "m"}
        yield {"type": "memories_merged"} | compared | of_scope
        yield fact(scope, "favorite_color", said, kind="ranked", rank=1)
        if scope is OWN_SCOPE:
            yield {"type": "core_memory_updated", "section": "user", "key": "city", "value": said}
            yield {"type": "daily_event_recorded", "summary": said, "channel": "telegram", "id": "d1"}
            step = {"name": "decay", "outcome": "skipped", "why": said}
            yield {"type": "job_completed", "job": "daily", "period": "2026-02-24", "steps": [step]}
            yield from self._document("docs", said)
            yield from self._document("memory", said)
        else:
            yield in_chat(scope, "message", role="user", content=said, id=f"first-{self.canary(scope)}")
            yield in_chat(scope, "summary_written", content=said)

    def _drawn(self, kind: int, which: int, what: int, number: int) -> Iterator[dict[str, Any]]:
        """What a draw says; `number` makes ids that are the same in several chats and projects."""
        chat = self.chats[which % len(self.chats)]
        scope = [OWN_SCOPE, *self.chats][which % (len(self.chats) + 1)]
        heard, known = f"{TEXTS[what]} {self.canary(chat)}", f"{TEXTS[what]} {self.canary(scope)}"
        own_id = f"k{number}-{self.canary(scope)}"
        ts = TIMES[number]
        made: list[dict[str, Any]] = [
            in_chat(chat, "message", role="user", content=heard, id=f"m{number}"),
            in_chat(chat, "message", role="assistant", content=heard, name=heard, meta={"tool": heard}),
            in_chat(chat, "message", role="tool", content="", id=f"m{number}", ts=ts),
            in_chat(chat, "session_break", model=self.canary(chat), ts=ts),
            in_chat(chat, "summary_written", content=heard, from_message_id=f"m{number}", ts=ts),
            in_chat(chat, "extraction_completed", through_message_id=f"m{number}"),
            {"type": "memory_saved", "content": known, "chat_id": name_of(scope), "memory_id": f"k{number}"},
            {"type": "memory_saved", "content": known, "chat_id": name_of(scope), "title": known}
            | {"memory_id": f"k{number}", "topic": known, "tags": [known], "source": self.canary(scope)},
            {"type": "memory_saved", "content": known, "chat_id": name_of(scope), "memory_id": own_id},
            {"type": "memory_updated", "memory_id": own_id, "content": known, "topic": known},
            {"type": "memory_archived", "memory_id": own_id},
            {"type": "memory_accessed", "memory_ids": [own_id, f"k{number}"]},
            {"type": "memory_deleted", "memory_id": f"k{number}"},
            fact(scope, "favourite_colours", known, kind="ranked", rank=1, rest=[known]),
            fact(scope, "city", known, source_message_id=f"m{number}"),
            {"type": "fact_removed", "topic_key": "city", "chat_id": name_of(scope)},
            {"type": "core_memory_updated", "section": "agent", "key": self.canary(OWN_SCOPE)}
            | {"value": f"{TEXTS[what]} {self.canary(OWN_SCOPE)}"},
            {"type": "daily_event_recorded", "summary": f"{TEXTS[what]} {self.canary(OWN_SCOPE)}"},
            {"type": "daily_events_compressed", "ids": ["d1"], "memory_ids": [f"k{number}"]},
        ]
        yield made[kind]

    def _document(self, kind: str, said: str) -> Iterator[dict[str, Any]]:
        yield {
            "type": "source_registered",
            "source_id": kind,
            "kind": kind,
            "root": f"/{self.canary(OWN_SCOPE)}",
        }
        yield {
            "type": "document_indexed",
            "source_id": kind,
            "file": "tea.md",
            "content": f"# Tea\n\n{said}\n",
        }


KINDS = 19
"""How many kinds of events `World._drawn` knows."""


def in_chat(chat: Chat, kind: str, **members: Any) -> dict[str, Any]:
    return {"type": kind, "channel": chat[0], "chat_id": chat[1]} | members


def fact(scope: Chat | None, key: str, value: str, **members: Any) -> dict[str, Any]:
    return {"type": "fact_stored", "topic_key": key, "value": value, "chat_id": name_of(scope)} | members


def name_of(chat: Chat | None) -> str | None:
    """A chat as memories and facts have it."""
    return None if chat is None else ":".join(chat)


def canaries_in(document: bytes | str) -> set[str]:
    """Every canary that some output holds, however it is encoded."""
    text = document.decode(errors="replace") if isinstance(document, bytes) else document
    return set(CANARY.findall(text))


@st.composite
def worlds(draw: st.DrawFn) -> list[World]:
    """Two or three projects, most of whose chats have the names of others'."""
    draws = st.tuples(*(st.integers(0, last) for last in (KINDS - 1, 4, len(TEXTS) - 1, len(TIMES) - 1)))
    return [
        World(
            number,
            draw(st.lists(st.sampled_from(CHATS), min_size=2, max_size=4, unique=True)),
            draw(st.lists(draws, max_size=10)),
        )
        for number in range(draw(st.sampled_from([2, 2, 3])))
    ]


def lines_of(world: World) -> bytes:
    """What a process appends, one event a line."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in world.events)

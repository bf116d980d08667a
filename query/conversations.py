"""Windows: the newest messages of a chat's current session, or those around one message."""

from collections.abc import Callable, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import Any

import msgspec

from memlog.eventlog.errors import NotFound
from memlog.eventlog.fields import Chat
from memlog.projector.passages.fulltext import ORDER as ORDER
from memlog.projector.sqlite import Connection
from memlog.query.context.token_counters import count_text_tokens as tokens_of
from memlog.query.context.token_counters import least_weight_of_length
from memlog.query.event_index import make_struct_of_row


def format_speaker(role: str | None, name: str | None) -> str:
    """Return `user/Anna`, or just the role if the name is missing or the same.

    The role always comes first, because writers choose their name, which may be `system`. A colon in a name
    is replaced by a wide one, so that the first colon ends the speaker. Brackets instead of the slash would
    cost each line a token: contexts of 500 and 1,000 tokens then held the answers to .821 and .880 of
    LoCoMo's questions, instead of .823 and .883 (`tests/eval/context.py`).
    """
    name = " ".join((name or "").split()).replace(":", "\uff1a")
    if not role or not name:
        return role or name
    return role if name.casefold() == role else f"{role}/{name}"


def is_known_chat(db: Connection, chat: Chat) -> bool:
    """Whether `chat` has any messages or summaries."""
    (known,) = db.execute(
        "SELECT EXISTS (SELECT 1 FROM messages WHERE channel = ?1 AND chat_id = ?2)"
        " OR EXISTS (SELECT 1 FROM summaries WHERE channel = ?1 AND chat_id = ?2)",
        chat,
    ).fetchone()
    return bool(known)


def check_chat_known(db: Connection, chat: Chat) -> None:
    """Check that `chat` exists. An empty store accepts any chat, which may become its first.

    Raises:
        NotFound: the store has events, but none of this chat.
    """
    (has_events,) = db.execute("SELECT EXISTS (SELECT 1 FROM events)").fetchone()
    if has_events and not is_known_chat(db, chat):
        raise NotFound(
            f"no chat {chat}", hint="store.conversations.sessions() lists the chats", code="session_not_found"
        )


def sql_condition_on_chat(db: Connection, chat: Chat | None) -> tuple[str, Chat | tuple[()]]:
    """Return an SQL condition, with its values, for rows of `chat`; None selects all chats.

    Raises:
        NotFound: see `check_chat_known`.
    """
    if chat is None:
        return "TRUE", ()
    check_chat_known(db, chat)
    return "channel = ? AND chat_id = ?", chat


DEFAULT_LAST = 50
"""The most messages in a window if neither a limit nor a budget is given."""


class WindowMessage(msgspec.Struct, kw_only=True):
    """A message in a window. meta: as in its event."""

    id: str
    role: str
    name: str | None
    content: str
    ts: str
    type: str
    meta: dict[str, Any] | None

    @property
    def speaker(self) -> str:
        """The speaker's role and name: `user/Anna`."""
        return format_speaker(self.role, self.name)


class Window(msgspec.Struct):
    """The newest messages of a session, oldest first. session_start: the id of its first message."""

    chat: str
    session_start: str | None
    messages: list[WindowMessage]


_OLDEST_FIRST = "ORDER BY " + ", ".join(ORDER)
NEWEST_FIRST = "ORDER BY " + ", ".join(f"{column} DESC" for column in ORDER)
_A_PLACE = f"({', '.join('?' * len(ORDER))})"
_COLUMNS = "id, role, name, content, created_at, type, metadata"


def window_of_chat(
    db: Connection,
    chat: Chat,
    *,
    last: int | None = None,
    tokens: int | None = None,
    across_sessions: bool = False,
) -> Window:
    """Return the newest messages of the chat since its last session break; by default at most 50.

    last: the most messages. tokens: the budget for whole messages, by the `model` counter of contexts.
    across_sessions: include earlier sessions.

    Raises:
        NotFound: the store has events, but none of this chat.
    """
    if last is None and tokens is None:
        last = DEFAULT_LAST
    messages = messages_of_window(db, chat, last=last, tokens=tokens, across_sessions=across_sessions)
    return Window(":".join(chat), first_message_of_session(db, chat), messages)


def messages_of_window(
    db: Connection,
    chat: Chat,
    *,
    last: int | None,
    tokens: int | None,
    across_sessions: bool,
    text: Callable[[WindowMessage], str] = attrgetter("content"),
) -> list[WindowMessage]:
    """Return the messages of a window, oldest first; all of them without `last` and `tokens`.

    text: returns the text of a message for counting tokens.

    Raises:
        NotFound: see `window_of_chat`.
    """
    check_chat_known(db, chat)
    within, values = _condition_for_messages_since(
        chat, None if across_sessions else _place_of_last_break(db, chat)
    )
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM messages WHERE {within} {NEWEST_FIRST} LIMIT ?",
        [*values, -1 if last is None else last],
    )
    messages: list[WindowMessage] = []
    left: float | None = tokens
    for row in rows:
        message = make_struct_of_row(WindowMessage, row)
        if left is not None:
            content = text(message)
            # Counting the tokens of some megabytes would take seconds.
            left -= (
                least_weight_of_length(content)
                if least_weight_of_length(content) > left
                else tokens_of(content, "model")
            )
            if left < 0:
                break
        messages.append(message)
    return messages[::-1]


def first_message_of_session(db: Connection, chat: Chat) -> str | None:
    """Return the id of the first message in the chat's current session, if any."""
    within, values = _condition_for_messages_since(chat, _place_of_last_break(db, chat))
    start = db.execute(f"SELECT id FROM messages WHERE {within} {_OLDEST_FIRST} LIMIT 1", values).fetchone()
    return start[0] if start else None


def _read_messages_beside(db: Connection, place: Sequence[Any], side: str, limit: int) -> list[WindowMessage]:
    """Return up to `limit` messages on one side of `place` (channel, chat_id, order), within its session."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM messages WHERE channel = ? AND chat_id = ?"
        f" AND ({', '.join(ORDER)}) {side} LIMIT ?",
        [*place, limit],
    ).fetchall()
    messages = (make_struct_of_row(WindowMessage, row) for row in rows)
    return list(takewhile(lambda message: message.type != "session_break", messages))


def _place_of_last_break(db: Connection, chat: Chat) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = db.execute(
        f"SELECT {', '.join(ORDER)} FROM messages"
        f" WHERE channel = ? AND chat_id = ? AND type = 'session_break' {NEWEST_FIRST} LIMIT 1",
        chat,
    ).fetchone()
    return row


def _condition_for_messages_since(chat: Chat, since: tuple[Any, ...] | None) -> tuple[str, list[Any]]:
    sql = "channel = ? AND chat_id = ? AND type <> 'session_break'"
    if since is None:
        return sql, [*chat]
    return f"{sql} AND ({', '.join(ORDER)}) > {_A_PLACE}", [*chat, *since]


class Surroundings(msgspec.Struct, kw_only=True):
    """A message or a document's passage, with its neighbours.

    messages: for a message, it and its neighbours in the session, oldest first.
    content: for a passage, the document's text from the first neighbour to the last.
    start_line, end_line: of this text in the file, from 1.
    """

    messages: list[WindowMessage] = []
    content: str | None = None
    start_line: int | None = None
    end_line: int | None = None


MAX_NEIGHBOURS = 100
"""The most neighbours on either side; for more, read the conversation or the file."""


def surroundings_of_event(db: Connection, key: tuple[str, str], neighbours: int) -> Surroundings | None:
    """Return a message and up to `neighbours` messages on either side in its session, oldest first.

    key: (stream, id). None if this is not a message; a session break has no neighbours.
    """
    own = db.execute(
        f"SELECT channel, chat_id, {', '.join(ORDER)}, {_COLUMNS} FROM messages"
        " WHERE stream = ? AND id = ? AND type <> 'session_break'",
        key,
    ).fetchone()
    if own is None:
        return None
    place, message = own[: 2 + len(ORDER)], make_struct_of_row(WindowMessage, own[2 + len(ORDER) :])
    before = _read_messages_beside(db, place, f"< {_A_PLACE} {NEWEST_FIRST}", neighbours)
    behind = _read_messages_beside(db, place, f"> {_A_PLACE} {_OLDEST_FIRST}", neighbours)
    return Surroundings(messages=[*before[::-1], message, *behind])


def surroundings_of_passage(db: Connection, chunk_no: int, neighbours: int) -> Surroundings:
    """Return a document's text around a passage, from its first neighbour to its last."""
    # Sliced from the document: passages overlap and repeat headings. Not by substr(), which stops at a NUL.
    content, start, end, start_line, end_line = db.execute(
        "SELECT d.content, min(c.start_char), max(c.end_char), min(c.start_line), max(c.end_line)"
        " FROM doc_chunks f JOIN doc_chunks c USING (document_id) JOIN documents d USING (document_id)"
        " WHERE f.chunk_no = ?1 AND c.chunk_index BETWEEN f.chunk_index - ?2 AND f.chunk_index + ?2",
        (chunk_no, neighbours),
    ).fetchone()
    return Surroundings(content=content[start:end], start_line=start_line, end_line=end_line)

"""Sessions: the parts of conversations between two session breaks, and what was said in them."""

import msgspec

from memlog.eventlog.chat import Chat
from memlog.projector.sqlite import Connection
from memlog.query.chats import within
from memlog.query.rows import record
from memlog.query.window import WindowMessage, newest, session_start


class Session(msgspec.Struct, kw_only=True):
    """A part of a conversation between two session breaks.

    session_start: the id of its first message; None while there is none.
    model: the one that the break before it names, else that of its last message that names one in its meta.
    created_at: of the break, or of the first message where none is before it.
    messages: how many there are, without breaks.
    """

    chat: str
    session_start: str | None
    model: str | None
    created_at: str
    messages: int


def sessions(db: Connection, chat: Chat | None = None, *, is_all: bool = False) -> list[Session]:
    """The current session of each chat, or of one; the one that began last comes first.

    is_all: their earlier sessions, too.

    Raises:
        NotFound: the store has events, and none of this chat.
    """
    condition, values = within(db, chat)
    rows = db.execute(
        "SELECT channel || ':' || chat_id, session_start, model, created_at, messages, channel, chat_id"
        f" FROM sessions WHERE {condition} ORDER BY channel, chat_id, session_no",
        values,
    ).fetchall()
    # By chat, the last one stays.
    kept = rows if is_all else {row[-2:]: row for row in rows}.values()
    newest_first = [record(Session, row) for row in reversed(kept)]
    return sorted(newest_first, key=lambda session: session.created_at, reverse=True)


class SessionContent(msgspec.Struct, kw_only=True):
    """What was said in a conversation, as one text.

    content: each message as its speaker, `: `, and what it says, unchanged; a line break between two.
    session_start: the id of the first message of the current session; None while there is none.
    messages: how many there are in it.
    """

    chat: str
    session_start: str | None
    messages: int
    content: str


def session_content(
    db: Connection, chat: Chat, *, last: int | None, tokens: int | None, across_sessions: bool
) -> SessionContent:
    """What was said in the current session of a chat, oldest first.

    last: the newest so many messages alone. tokens: of the newest as many whole ones as fit, counted with
    their speakers in the shipped vocabulary. across_sessions: what was said in earlier sessions, too.

    Raises:
        NotFound: the store has events, and none of this chat.
    """
    found = newest(db, chat, last=last, tokens=tokens, across_sessions=across_sessions, said=_said)
    return SessionContent(
        chat=":".join(chat),
        session_start=session_start(db, chat),
        messages=len(found),
        content="\n".join(map(_said, found)),
    )


def _said(message: WindowMessage) -> str:
    return f"{message.speaker}: {message.content}"

"""The chats of a store."""

from memlog.eventlog.chat import Chat
from memlog.eventlog.errors import NotFound
from memlog.projector.sqlite import Connection


def check_known(db: Connection, chat: Chat) -> None:
    """Check that a chat has a message or a summary. An empty store knows every chat: its first may be it.

    Raises:
        NotFound: the store has events, and none of this chat.
    """
    known, events = db.execute(
        "SELECT EXISTS (SELECT 1 FROM messages WHERE channel = ?1 AND chat_id = ?2)"
        " OR EXISTS (SELECT 1 FROM summaries WHERE channel = ?1 AND chat_id = ?2),"
        " EXISTS (SELECT 1 FROM events)",
        chat,
    ).fetchone()
    if events and not known:
        raise NotFound(f"no chat {chat}", hint="memlog sessions lists the chats", code="session_not_found")


def within(db: Connection, chat: Chat | None) -> tuple[str, Chat | tuple[()]]:
    """The condition that a row is of `chat`, and its values; without a chat, any row.

    Raises:
        NotFound: as `check_known`.
    """
    if chat is None:
        return "TRUE", ()
    check_known(db, chat)
    return "channel = ? AND chat_id = ?", chat

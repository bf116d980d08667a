"""The chats of a store."""

from memlog.eventlog.chat import Chat
from memlog.eventlog.errors import NotFound
from memlog.projector.sqlite import Connection


def is_known(db: Connection, chat: Chat) -> bool:
    """Whether a chat has a message or a summary."""
    (known,) = db.execute(
        "SELECT EXISTS (SELECT 1 FROM messages WHERE channel = ?1 AND chat_id = ?2)"
        " OR EXISTS (SELECT 1 FROM summaries WHERE channel = ?1 AND chat_id = ?2)",
        chat,
    ).fetchone()
    return bool(known)


def check_known(db: Connection, chat: Chat) -> None:
    """Check that a chat is known. An empty store knows every chat: its first may be it.

    Raises:
        NotFound: the store has events, and none of this chat.
    """
    (has_events,) = db.execute("SELECT EXISTS (SELECT 1 FROM events)").fetchone()
    if has_events and not is_known(db, chat):
        raise NotFound(
            f"no chat {chat}", hint="store.conversations.sessions() lists the chats", code="session_not_found"
        )


def within(db: Connection, chat: Chat | None) -> tuple[str, Chat | tuple[()]]:
    """The condition that a row is of `chat`, and its values; without a chat, any row.

    Raises:
        NotFound: as `check_known`.
    """
    if chat is None:
        return "TRUE", ()
    check_known(db, chat)
    return "channel = ? AND chat_id = ?", chat

"""Chats: which the store knows."""

from memlog.eventlog.chat import Chat
from memlog.eventlog.errors import NotFound
from memlog.projector.sqlite import Connection


def check_known(db: Connection, chat: Chat) -> None:
    """An empty store knows every chat, with nothing in it: reading one that is to come is no mistake.

    Raises:
        NotFound: the store has events, and of this chat neither a message nor a summary.
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
    """The condition on a row to be of `chat`, and its values; without a chat every row is.

    Raises:
        NotFound: as `check_known`.
    """
    if chat is None:
        return "TRUE", ()
    check_known(db, chat)
    return "channel = ? AND chat_id = ?", chat

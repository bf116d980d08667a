"""The operations of `store.conversations`."""

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from memlog.eventlog.fields import Chat
from memlog.eventlog.settings import MOST
from memlog.query.request import ChatField
from memlog.service.engine.operation import OperationGroup, operation

if TYPE_CHECKING:
    from memlog.query.conversations import Window
    from memlog.query.sessions import Session, SessionContent, Summary

ChatOf = Annotated[ChatField, "The conversation, split at the first colon."]
OnlyChat = Annotated[ChatField | None, "Only this conversation."]
Last = Annotated[int | None, Meta(ge=1, le=MOST), "At most this many messages, the newest."]
Tokens = Annotated[int | None, Meta(ge=1, le=MOST), "The newest whole messages within this many tokens."]
AcrossSessions = Annotated[bool, "Also read messages from before the last session break."]


class Conversations(OperationGroup):
    """The conversations of a store."""

    @operation("read")
    def window(
        self,
        chat: ChatOf,
        *,
        last: Last = None,
        tokens: Tokens = None,
        across_sessions: AcrossSessions = False,
    ) -> "Window":
        """Read the newest messages of the current session of a chat, oldest first.

        Without `last` and `tokens`, at most 50 messages.

        Raises:
            NotFound: the store has events, but none in this chat.
        """
        from memlog.query.conversations import window_of_chat

        limits = {"last": last, "tokens": tokens}
        return self._read(
            lambda db: window_of_chat(db, Chat.of(chat), **limits, across_sessions=across_sessions)
        )

    @operation("read")
    def session_content(
        self,
        chat: ChatOf,
        *,
        last: Last = None,
        tokens: Tokens = None,
        across_sessions: AcrossSessions = False,
    ) -> "SessionContent":
        """Read the current session of a chat as one text, oldest message first; the whole session by default.

        Each message has the form `speaker: text`, with the text unchanged; `window` separates messages.

        Raises:
            NotFound: the store has events, but none in this chat.
        """
        from memlog.query.sessions import current_session_content

        limits = {"last": last, "tokens": tokens}
        return self._read(
            lambda db: current_session_content(db, Chat.of(chat), **limits, across_sessions=across_sessions)
        )

    @operation("read")
    def sessions(
        self, chat: OnlyChat = None, *, all: Annotated[bool, "Also list earlier sessions."] = False
    ) -> list["Session"]:
        """List the current session of each chat, the newest first.

        A session is the part of a conversation between two session breaks.

        Raises:
            NotFound: the store has events, but none in this chat.
        """
        from memlog.query.sessions import current_sessions

        one = None if chat is None else Chat.of(chat)
        return self._read(lambda db: current_sessions(db, one, is_all=all))

    @operation("read")
    def summaries(self, chat: OnlyChat = None) -> list["Summary"]:
        """List the summaries of conversations, in the order in which they were written.

        Raises:
            NotFound: the store has events, but none in this chat.
        """
        from memlog.query.sessions import list_summaries

        one = None if chat is None else Chat.of(chat)
        return self._read(lambda db: list_summaries(db, one))

"""Requests for conversations: `store.conversations`."""

from typing import Annotated

from msgspec import Meta

from memlog.eventlog.chat import Chat
from memlog.eventlog.limits import MOST
from memlog.query.request import ChatField, Request


class _OfChat(Request, frozen=True):
    chat: Annotated[ChatField, "The conversation, split at the first colon."]


class _WindowOptions(_OfChat, frozen=True, kw_only=True):
    last: Annotated[int | None, Meta(ge=1, le=MOST), "The newest messages, at most so many."] = None
    tokens: Annotated[
        int | None, Meta(ge=1, le=MOST), "The newest whole messages that fit into so many tokens."
    ] = None
    across_sessions: Annotated[bool, "Also messages from before the last session break."] = False


class ReadWindow(_WindowOptions, frozen=True, kw_only=True):
    """Read the newest messages of the current session of a chat, oldest first.

    At most 50 where neither `last` nor `tokens` is given.

    Raises:
        NotFound: the store has events, and none of this chat.
    """


class ReadSession(_WindowOptions, frozen=True, kw_only=True):
    """Read the current session of a chat as one text, oldest message first; all of it without a limit.

    Each message is its speaker, `: `, and its text, unchanged. A window tells messages apart, whatever they
    say.

    Raises:
        NotFound: the store has events, and none of this chat.
    """


class _OfConversations(Request, frozen=True):
    chat: Annotated[ChatField | None, "Only of this conversation."] = None

    @property
    def conversation(self) -> Chat | None:
        """The chat."""
        return None if self.chat is None else Chat.of(self.chat)


class ListSessions(_OfConversations, frozen=True, kw_only=True):
    """List the current session of each chat, the newest first.

    A session is the part of a conversation between two session breaks.

    Raises:
        NotFound: the store has events, and none of this chat.
    """

    all: Annotated[bool, "Earlier sessions, too."] = False


class ListSummaries(_OfConversations, frozen=True):
    """List the summaries of conversations, in the order in which they were written.

    Raises:
        NotFound: the store has events, and none of this chat.
    """

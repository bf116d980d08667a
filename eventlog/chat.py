"""A conversation's name: the channel that it comes from, and its id there."""

from typing import Self

from memlog.eventlog.errors import BadInput

ChatName = tuple[str, str] | str
"""What callers name a chat by: (channel, chat_id), a `Chat`, or its text form `telegram:7`."""


class Chat(tuple[str, str]):
    """(channel, chat_id); as text `telegram:7`."""

    __slots__ = ()

    @property
    def channel(self) -> str:
        """Such as telegram."""
        return self[0]

    @property
    def chat_id(self) -> str:
        """The conversation's id in its channel."""
        return self[1]

    def __str__(self) -> str:
        return ":".join(self)

    @classmethod
    def of(cls, name: ChatName) -> Self:
        """The chat that a caller names.

        Raises:
            BadInput: it is no pair of texts, and no text with a channel and an id around its first colon.
        """
        if isinstance(name, cls):
            return name
        match name.split(":", 1) if isinstance(name, str) else name:
            case (str(channel), str(chat_id)) if channel and chat_id:
                return cls((channel, chat_id))
        raise BadInput(f"chat is {name!r}", hint="a text such as telegram:7, or (channel, chat_id)")

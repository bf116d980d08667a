"""The name of a conversation: its channel and its id there."""

from typing import Self

from memlog.eventlog.errors import BadInput

ChatName = tuple[str, str] | str
"""A chat in arguments: (channel, chat_id), a `Chat`, or its text form `telegram:7`."""


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
        """The chat of an argument. Raises BadInput unless it is a pair of texts or like `telegram:7`."""
        if isinstance(name, cls):
            return name
        match name.split(":", 1) if isinstance(name, str) else name:
            case (str(channel), str(chat_id)) if channel and chat_id:
                return cls((channel, chat_id))
        raise BadInput(f"chat is {name!r}", hint="a text such as telegram:7, or (channel, chat_id)")

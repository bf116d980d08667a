"""The name of a conversation: its channel and its id there."""

from typing import Self

from memlog.eventlog.errors import BadInput, shown_value

ChatName = tuple[str, str] | str
"""A chat in arguments: (channel, chat_id), a `Chat`, or its text form `telegram:7`."""


class Chat(tuple[str, str]):
    """(channel, chat_id); as text `telegram:7`.

    Raises:
        BadInput: channel or chat_id is no text, or empty.
    """

    __slots__ = ()

    def __new__(cls, channel: str, chat_id: str) -> Self:
        """See the class."""
        if isinstance(channel, str) and isinstance(chat_id, str) and channel and chat_id:
            return super().__new__(cls, (channel, chat_id))
        raise BadInput(
            f"chat is {shown_value((channel, chat_id))}", hint="Chat('telegram', '7'): two texts, not empty"
        )

    def __getnewargs__(self) -> tuple[str, str]:
        return self.channel, self.chat_id

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

    def __repr__(self) -> str:
        return f"Chat({self.channel!r}, {self.chat_id!r})"

    @classmethod
    def of(cls, name: ChatName) -> Self:
        """The chat of an argument. Raises BadInput unless it is a pair of texts or like `telegram:7`."""
        if isinstance(name, cls):
            return name
        match name.split(":", 1) if isinstance(name, str) else name:
            case (str(channel), str(chat_id)) if channel and chat_id:
                return cls(channel, chat_id)
        raise BadInput(
            f"chat is {shown_value(name)}", hint="a text such as telegram:7, or (channel, chat_id)"
        )

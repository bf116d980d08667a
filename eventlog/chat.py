"""The name of a conversation: its channel and its id there."""

from typing import Any, Self

from memlog.eventlog.errors import BadInput, shown_value

ChatName = tuple[str, str | int] | str
"""A chat in arguments: (channel, chat_id), a `Chat`, or its text form `telegram:7`."""

_MOST_BITS = 64


def decimal(chat_id: Any) -> Any:  # noqa: ANN401 - what a caller gives
    """Return the text of an integer id, as messengers give them; another value as it is."""
    is_integer = isinstance(chat_id, int) and not isinstance(chat_id, bool)
    return str(chat_id) if is_integer and chat_id.bit_length() <= _MOST_BITS else chat_id


class Chat(tuple[str, str]):
    """(channel, chat_id); as text `telegram:7`.

    Raises:
        BadInput: channel or chat_id is empty; channel is no text, or chat_id neither a text nor an integer.
    """

    __slots__ = ()

    def __new__(cls, channel: str, chat_id: str | int) -> Self:
        """See the class."""
        named = decimal(chat_id)
        if isinstance(channel, str) and isinstance(named, str) and channel and named:
            return super().__new__(cls, (channel, named))
        raise BadInput(
            f"chat is {shown_value((channel, chat_id))}", hint="Chat('telegram', '7'), or Chat('telegram', 7)"
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
        """The chat of an argument. Raises BadInput unless it is a pair of names or like `telegram:7`."""
        if isinstance(name, cls):
            return name
        match name.split(":", 1) if isinstance(name, str) else name:
            case (str(channel), str() | int() as chat_id) if (
                channel and chat_id != "" and type(chat_id) is not bool
            ):
                return cls(channel, chat_id)
        raise BadInput(
            f"chat is {shown_value(name)}", hint="a text such as telegram:7, or (channel, chat_id)"
        )

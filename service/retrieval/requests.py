"""Requests for reads of a store; the query layer declares those of `search` and `context`."""

from typing import Annotated

from msgspec import Meta

from memlog.query.context.request import BuildContext as BuildContext
from memlog.query.request import ChatField, Count, OfText, Request
from memlog.query.search.request import Search as Search


class AnswerOrContext(OfText, frozen=True, kw_only=True):
    """Answer `text` from the facts if it asks for one, or return the memory context to answer it with.

    A question for a rank of a list, or for the list, is answered from the facts alone: a value that is not
    stored is never guessed. Anything else is searched for.

    Raises:
        BadInput: the text is empty.
        DatabaseError: the read model cannot be read, nor rebuilt.
    """

    chat: Annotated[ChatField | None, "The current conversation."] = None
    max_tokens: Annotated[Count, "The most tokens of the context."] = 4000


class GetEvent(Request, frozen=True):
    """Show the event with an id, as it is in the log.

    The id is that of an event, or that of a memory, a fact (`topic_key/rank`) or a document (`source/file`),
    whose newest event is shown.

    Raises:
        BadInput: several streams have an event with this id, and `stream` is not given.
    """

    id: Annotated[str, Meta(title="ID"), "The id."]
    stream: Annotated[str | None, "The stream of the event, if several streams have its id."] = None
    around: Annotated[
        int, Meta(ge=0, le=100, title="N"), "Show a message with N others of its session on either side."
    ] = 0

"""Requests of reads of a store itself; the query layer declares those of `search` and `context`."""

from typing import Annotated

from msgspec import Meta

from memlog.query.context.request import BuildContext as BuildContext
from memlog.query.request import ChatField, Count, OfText, Request
from memlog.query.search.request import Search as Search


class AnswerOrContext(OfText, frozen=True, kw_only=True):
    """Answer `text` from the facts where it asks for one, or give the memory context to answer it with.

    A question for a place in a ranked list, or for the list, is answered from the facts alone: a value that
    is not stored is never guessed. Anything else is searched for.

    Raises:
        BadInput: the text is empty.
        DatabaseError: the read model cannot be read, nor rebuilt.
    """

    chat: Annotated[ChatField | None, "The current conversation."] = None
    max_tokens: Annotated[Count, "Tokens of the context, at most."] = 4000


class GetEvent(Request, frozen=True):
    """Show the event with an id, as the log has it.

    An id is that of an event; else that of a memory, a fact (`topic_key/rank`) or a document (`source/file`),
    whose newest event is shown.

    Raises:
        BadInput: several streams have an event of this id, and `stream` names none of them.
    """

    id: Annotated[str, Meta(title="ID"), "The id."]
    stream: Annotated[str | None, "The stream of the event, where several streams have its id."] = None
    around: Annotated[
        int, Meta(ge=0, le=100, title="N"), "Show a message with N others of its session on either side."
    ] = 0

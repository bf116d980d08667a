"""Requests of `store.search`, `store.context` and `store.get`. The query layer declares the first two."""

from typing import Annotated

from msgspec import Meta

from memlog.query.context.request import BuildContext as BuildContext
from memlog.query.request import Request
from memlog.query.search.request import Search as Search


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

"""Requests of two earlier memory services, with the names that these have (docs/five-systems.md)."""

from typing import Annotated

from memlog.eventlog.chat import decimal
from memlog.eventlog.errors import BadInput, shown_value
from memlog.eventlog.event_fields import FactKind, MemoryKind, Role
from memlog.eventlog.limits import HITS
from memlog.eventlog.struct_fields import Reads
from memlog.query.request import Request, Unit


def _chat(given: str | int) -> str:
    name = decimal(given)
    if not isinstance(name, str):
        raise BadInput(f"chat_id is {shown_value(given)}", hint="a text, or an integer")
    return name


Chat = Annotated[
    str | int, Reads(_chat, "chat"), "The conversation: channel:chat_id, or an id of the channel session."
]
"""A chat; the field holds a text."""


class SeedRequest(Request, frozen=True, kw_only=True):
    """A request about one project."""

    project_id: Annotated[str, "The project."] = "default"


class IndexChatMessage(SeedRequest, frozen=True, kw_only=True):
    """Append a message, and the ranked list that a user's message states."""

    chat_id: Chat
    message_id: Annotated[str, "Its id: a repetition counts once."]
    role: Annotated[Role, "Who speaks."]
    content: Annotated[str, "The text."]


class SearchProject(SeedRequest, frozen=True, kw_only=True):
    """Search a project."""

    query: Annotated[str, "The text."]
    limit: Annotated[int, HITS.meta, "Hits at most."] = HITS.default


class StoreFact(SeedRequest, frozen=True, kw_only=True):
    """Store one value of a topic."""

    topic_key: Annotated[str, "The topic."]
    value: Annotated[str, "The value."]
    kind: Annotated[FactKind, "Whether the topic has ranks."] = "ranked"
    rank: Annotated[int | None, "Its place; the first where not given."] = None
    chat_id: Chat | None = None
    source_message_id: Annotated[str | None, "The message that says it."] = None


class GetFacts(SeedRequest, frozen=True, kw_only=True):
    """List the values of a topic."""

    topic_key: Annotated[str, "The topic."]
    rank: Annotated[int | None, "Only the value at this place."] = None
    chat_id: Chat | None = None


class CreateMemory(Request, frozen=True, kw_only=True):
    """Save a memory of a session."""

    content: Annotated[str, "The text."]
    type: Annotated[MemoryKind, "What kind it is."] = "fact"
    importance: Annotated[Unit, "From 0 to 1."] = 0.5

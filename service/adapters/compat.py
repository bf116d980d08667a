"""The routes of two earlier memory services, on top of a store's operations: see docs/five-systems.md."""

import re
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput, NotFound, format_value_for_message
from memlog.eventlog.events import FactStored, Message, SessionBreak
from memlog.eventlog.fields import Chat, FactKind, MemoryKind, Reads, Role, chat_id_to_text
from memlog.eventlog.settings import DEFAULTS, Hits
from memlog.query.facts.answers import NOT_STORED, Fact
from memlog.query.facts.question_parser import parse_questions
from memlog.query.facts.topic_keys import make_topic_key, normalise_key_for_comparison
from memlog.query.memories import Memory
from memlog.query.request import Request, Unit
from memlog.service.catalogue import call_operation
from memlog.service.engine.operation import find_operation_named, make_not_found_error
from memlog.service.memory.facts import Rank, check_values
from memlog.service.retrieval.search import PreRoute
from memlog.service.store import Store


def _to_chat_id_text(given: str | int) -> str:
    name = chat_id_to_text(given)
    if not isinstance(name, str):
        raise BadInput(f"chat_id is {format_value_for_message(given)}", hint="pass a str or an int")
    return name


def _to_timestamp(given: str) -> str:
    try:
        return timestamps.normalise_timestamp(given, naive_is_utc=True)
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"created_at is {format_value_for_message(given)}", hint="write 2026-02-24T10:15:00Z"
        ) from error


ChatId = Annotated[
    str | int,
    Reads(_to_chat_id_text, "chat"),
    "The conversation: channel:chat_id, or an id of the channel session.",
]
"""A chat; the field holds a string."""


class SeedRequest(Request, frozen=True, kw_only=True):
    """A request to one project."""

    project_id: Annotated[str, "The project."] = "default"


class IndexChatMessage(SeedRequest, frozen=True, kw_only=True):
    """Append a message, and any ranked list that a user states in it."""

    chat_id: ChatId
    message_id: Annotated[str, "The message's id; a repeated call stores it once."]
    role: Annotated[Role, "The role of the speaker."]
    content: Annotated[str, "The text."]


class SearchProject(SeedRequest, frozen=True, kw_only=True):
    """Search a project."""

    query: Annotated[str, "The text."]
    limit: Annotated[Hits, "The most hits."] = DEFAULTS.search_limit


class StoreFact(SeedRequest, frozen=True, kw_only=True):
    """Store one value of a topic."""

    topic_key: Annotated[str, "The topic."]
    value: Annotated[str, "The value."]
    kind: Annotated[FactKind, "Whether the topic has ranks."] = "ranked"
    rank: Annotated[Rank | None, "Its rank in the list; 1 by default."] = None
    chat_id: ChatId | None = None
    source_message_id: Annotated[str | None, "The message that states it."] = None
    created_at: Annotated[
        Annotated[str, Reads(_to_timestamp)] | None,
        "When it was stated, UTC unless it has an offset: the newest value of a rank counts. Now by default.",
    ] = None


class GetFacts(SeedRequest, frozen=True, kw_only=True):
    """List the values of a topic."""

    topic_key: Annotated[str, "The topic."]
    rank: Annotated[int | None, "Only the value at this rank."] = None
    chat_id: ChatId | None = None


class CreateMemory(Request, frozen=True, kw_only=True):
    """Save a memory in a session."""

    content: Annotated[str, "The text."]
    type: Annotated[MemoryKind, "The kind of memory."] = "fact"
    importance: Annotated[Unit, "From 0 to 1."] = 0.5


_CHANNEL = "session"
_MEMORIES = uuid.uuid5(uuid.NAMESPACE_URL, "urn:memlog:memory")
"""The namespace for memory ids that are not UUIDs. Changing it would change ids that clients have stored."""


def add_default_channel(name: str | int) -> str:
    """Return an id as `channel:chat_id`; without a channel, it belongs to the channel `session`."""
    return str(name) if ":" in str(name) else f"{_CHANNEL}:{name}"


def _chats_an_id_may_mean(name: str | int) -> list[str]:
    """Return the chats to which an id may refer. Imported ChatDO data is in the channel `chatdo`."""
    own = add_default_channel(name)
    return [own] if own == str(name) else [own, f"chatdo:{name}"]


def _chat_name(chat: str | None) -> str | None:
    return None if chat is None else chat.removeprefix(f"{_CHANNEL}:")


def index_message(store: Store, request: IndexChatMessage) -> dict[str, Any]:
    """Append a message, and store any ranked list that a user states in it.

    `indexed` is false if the id belongs to another message or the message was forgotten; see `warnings`.
    """
    chat = add_default_channel(request.chat_id)
    channel, chat_id = Chat.of(chat)
    message = Message(
        channel=channel, chat_id=chat_id, id=request.message_id, role=request.role, content=request.content
    )
    if store.exists:
        store.core.get()  # catch up, so that the append knows all earlier ids
    (stored,) = store.append(message)
    is_hidden = stored.conflict is not None or any(each.code == "forgotten" for each in stored.warnings)
    facts = None
    if request.role == "user" and not (is_hidden or stored.duplicate):
        facts = store.facts.extract(request.content, chat=chat, source_message_id=request.message_id)
    return {
        "message_id": request.message_id,
        "indexed": not is_hidden,
        "duplicate": stored.duplicate,
        "facts": facts,
        "warnings": [each.message for each in stored.warnings],
    }


def pre_route(store: Store, given: dict[str, Any]) -> Any:  # noqa: ANN401
    """Run the operation `pre_route`; `chat` may also be an id in the channel `session`.

    If nothing is stored yet, questions about facts are answered with "not stored".
    """
    chat = chat_id_to_text(given.get("chat"))
    given = given | ({"chat": add_default_channel(chat)} if isinstance(chat, str) else {})
    if store.exists:
        return call_operation(store, "pre_route", given)
    request: Any = find_operation_named("pre_route").request.of(given, "pre_route")
    asks_for_fact = any(parse_questions(request.text))
    return PreRoute(route="facts", answer=NOT_STORED) if asks_for_fact else PreRoute(route="none")


def search(store: Store, request: SearchProject) -> dict[str, Any]:
    """Search a project; return the hits, each with its citation. Empty if nothing is stored yet."""
    if not store.exists:
        return {"results": [], "silent": {}}
    found = store.search(request.query, k=request.limit)
    results = [
        {
            "citation": f"[M{number}]",
            "content": hit.content,
            "score": hit.score,
            "kind": hit.kind,
            "source": hit.source,
            "chat_id": _chat_name(hit.chat),
            "message_id": hit.id if hit.kind == "message" else None,
        }
        for number, hit in enumerate(found.hits, start=1)
    ]
    return {"results": results, "silent": found.silent}


def store_fact(store: Store, request: StoreFact) -> dict[str, Any]:
    """Store one value of a topic at any rank, unless that rank has a value with a later `created_at`."""
    check_values([request.value])
    fact = FactStored(
        ts=request.created_at,
        topic_key=make_topic_key(request.topic_key),
        value=request.value,
        kind=request.kind,
        rank=0 if request.kind == "single" else 1 if request.rank is None else request.rank,
        chat_id=None if request.chat_id is None else add_default_channel(request.chat_id),
        source_message_id=request.source_message_id,
    )
    (position,) = store.append(fact)
    found = store.get(position.id, stream=position.stream)
    assert found is not None  # a read finds what was appended
    stored = msgspec.json.decode(found.raw, type=FactStored)  # keys may be masked in its value
    return {
        **_fact_answer(request, stored, stored.chat_id, found.ts),
        "warnings": [each.message for each in position.warnings],
    }


def get_facts(store: Store, request: GetFacts) -> dict[str, Any]:
    """Return a topic's values in rank order; from all chats if no chat is named."""
    if not store.exists:
        return {"facts": []}
    if request.chat_id is not None:
        of_chats = (
            store.facts.get(request.topic_key, rank=request.rank, chat=chat).facts
            for chat in _chats_an_id_may_mean(request.chat_id)
        )
        found = next(filter(None, of_chats), [])
    else:
        key = normalise_key_for_comparison(make_topic_key(request.topic_key))
        of_topic = [
            each for each in store.facts.list() if normalise_key_for_comparison(each.topic_key) == key
        ]
        ranked = sorted(of_topic, key=lambda fact: fact.rank)
        found = [each for each in ranked if request.rank in (None, each.rank)]
    return {"facts": [_fact_answer(request, fact, fact.chat, fact.updated_at) for fact in found]}


def _fact_answer(
    request: SeedRequest, fact: Fact | FactStored, chat: str | None, created_at: str
) -> dict[str, Any]:
    return {
        "project_id": request.project_id,
        "chat_id": _chat_name(chat),
        "topic_key": fact.topic_key,
        "kind": fact.kind,
        "rank": fact.rank or None,
        "value": fact.value,
        "source_message_id": fact.source_message_id,
        "created_at": created_at,
    }


def list_memories(store: Store, session: str) -> list[dict[str, Any]]:
    """Return a session's memories.

    Raises:
        NotFound: there is no such session.
    """
    _check_session_exists(store, session)
    return [_memory_answer(each, session) for each in store.memories.list(chat=add_default_channel(session))]


def create_memory(store: Store, session: str, given: dict[str, Any]) -> dict[str, Any]:
    """Save a memory in a session, creating the session if need be. given: the fields of `CreateMemory`."""
    request = CreateMemory.of(given, "a memory")
    chat, is_new = add_default_channel(session), not _session_exists(store, session)
    done = store.memories.save(request.content, kind=request.type, importance=request.importance, chat=chat)
    if is_new:
        channel, chat_id = Chat.of(chat)
        store.append(SessionBreak(channel=channel, chat_id=chat_id))
    return get_memory(store, session, done.memory_id)


def get_memory(store: Store, session: str, memory_id: str) -> dict[str, Any]:
    """Return one of a session's memories.

    memory_id: the memory's own id, or the UUID that an answer gave it.

    Raises:
        NotFound: there is no such session, or it has no such memory.
    """
    return _memory_answer(_find_memory(store, session, memory_id), session)


def delete_memory(store: Store, session: str, memory_id: str) -> None:
    """Delete one of a session's memories.

    Raises:
        NotFound: see `get_memory`.
    """
    store.memories.delete(_find_memory(store, session, memory_id).memory_id)


def _find_memory(store: Store, session: str, memory_id: str) -> Memory:
    _check_session_exists(store, session)
    chat = add_default_channel(session)
    found = store.memories.get(memory_id)
    if found is not None and found.chat == chat:
        return found
    for is_archived in (False, True):
        for each in store.memories.list(chat=chat, archived=is_archived):
            if memory_id_to_uuid(each.memory_id) == memory_id.lower():
                return each
    raise make_not_found_error("memory_not_found", memory_id)


def memory_id_to_uuid(memory_id: str) -> str:
    """Return a memory's id as a UUID: the id itself if it has 32 hex digits, otherwise a hash of it."""
    is_hex = re.fullmatch(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", memory_id)
    return str(uuid.UUID(memory_id) if is_hex else uuid.uuid5(_MEMORIES, memory_id))


def _memory_answer(memory: Memory, session: str) -> dict[str, Any]:
    return {
        "id": memory_id_to_uuid(memory.memory_id),
        "sessionId": session,
        "memoryContent": memory.content,
        "memoryType": memory.kind,
        "importance": memory.importance,
        "createdAt": memory.created_at[:19],
        "lastAccessedAt": (memory.last_accessed or memory.created_at)[:19],
    }


def _session_exists(store: Store, session: str) -> bool:
    """Whether the session has any messages, breaks or memories."""
    if not store.exists:
        return False
    with suppress(NotFound):  # it may have memories only
        if store.conversations.sessions(add_default_channel(session), all=True):
            return True
    return bool(store.memories.list(chat=add_default_channel(session)))


def _check_session_exists(store: Store, session: str) -> None:
    if not _session_exists(store, session):
        raise make_not_found_error("session_not_found", session)


ROUTES: dict[str, tuple[type[Any], Callable[[Store, Any], Any]]] = {
    "/search": (SearchProject, search),
    "/index-chat-message": (IndexChatMessage, index_message),
    "/facts/store": (StoreFact, store_fact),
    "/facts/get": (GetFacts, get_facts),
}
"""The routes of ChatDO's service, each with its handler and its request class, which names the project."""

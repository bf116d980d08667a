"""The client of ChatDO's memory service, for a server run by `memlog serve`: see docs/five-systems.md."""

from typing import Any

import msgspec

from memlog.eventlog.fields import FactKind, Role
from memlog.eventlog.settings import DEFAULTS
from memlog.query.request import Request
from memlog.service.adapters.compat import GetFacts, IndexChatMessage, SearchProject, StoreFact
from memlog.service.adapters.remote import Connected, ServerConnection


class MemoryServiceClient(Connected):
    """A client with the methods of ChatDO's. Answers are dicts with the fields listed in docs/service.md.

    Use it with `with`, or call `close`. All methods raise BadInput for an invalid argument, and LogError if
    the server is unreachable.

    seconds: how long to wait for an answer.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:5858", *, token: str | None = None, seconds: float = 60
    ) -> None:
        self._connection = ServerConnection(url, "default", token, seconds)

    def search(self, project_id: str, query: str, limit: int = DEFAULTS.search_limit) -> list[dict[str, Any]]:
        """Search a project; return the hits, best first, each with citation and score.

        Empty for a project without data.
        """
        request = SearchProject(project_id=project_id, query=query, limit=limit)
        return self._post("/search", request)["results"]  # type: ignore[no-any-return]

    def index_chat_message(
        self, project_id: str, chat_id: str | int, message_id: str, role: Role, content: str
    ) -> dict[str, Any]:
        """Append a message and make it searchable immediately.

        Repeating a call with the same message id is harmless.
        """
        return self._post(
            "/index-chat-message",
            IndexChatMessage(
                project_id=project_id, chat_id=chat_id, message_id=message_id, role=role, content=content
            ),
        )

    def store_fact(
        self,
        project_id: str,
        topic_key: str,
        kind: FactKind,
        value: str,
        source_message_id: str | None = None,
        chat_id: str | int | None = None,
        rank: int | None = None,
        created_at: str | None = None,
    ) -> dict[str, Any]:
        """Store one value of a topic at any rank, unless that rank has a value with a later `created_at`."""
        return self._post(
            "/facts/store",
            StoreFact(
                project_id=project_id,
                topic_key=topic_key,
                kind=kind,
                value=value,
                source_message_id=source_message_id,
                chat_id=chat_id,
                rank=rank,
                created_at=created_at,
            ),
        )

    def get_facts(self, project_id: str, chat_id: str | int | None, topic_key: str) -> list[dict[str, Any]]:
        """Return a topic's values in rank order, from all chats if no chat is named; [] if it has none."""
        request = GetFacts(project_id=project_id, chat_id=chat_id, topic_key=topic_key)
        return self._post("/facts/get", request)["facts"]  # type: ignore[no-any-return]

    def get_fact_by_rank(
        self, project_id: str, chat_id: str | int | None, topic_key: str, rank: int
    ) -> dict[str, Any] | None:
        """Return the value of a topic at `rank`, or None."""
        request = GetFacts(project_id=project_id, chat_id=chat_id, topic_key=topic_key, rank=rank)
        return next(iter(self._post("/facts/get", request)["facts"]), None)

    def _post(self, path: str, request: Request) -> dict[str, Any]:
        answer: dict[str, Any] = msgspec.json.decode(self._connection.post(path, request))
        return answer

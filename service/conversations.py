"""Conversations as programs read them: `store.conversations`."""

from typing import Any

from memlog.query.sessions import Session, SessionContent, session_content, sessions
from memlog.query.summaries import Summary, summaries
from memlog.query.window import Window, window
from memlog.service.engine import OperationGroup
from memlog.service.operations import operation
from memlog.service.requests.conversations import ListSessions, ListSummaries, ReadSession, ReadWindow


class Conversations(OperationGroup):
    """The conversations of a store."""

    @operation(ReadWindow)
    def window(self, asked: ReadWindow) -> Window:
        return self._read(lambda db: window(db, asked.conversation, **_limits(asked)))

    @operation(ReadSession)
    def session_content(self, asked: ReadSession) -> SessionContent:
        return self._read(lambda db: session_content(db, asked.conversation, **_limits(asked)))

    @operation(ListSessions)
    def sessions(self, asked: ListSessions) -> list[Session]:
        return self._read(lambda db: sessions(db, asked.conversation, is_all=asked.all))

    @operation(ListSummaries)
    def summaries(self, asked: ListSummaries) -> list[Summary]:
        return self._read(lambda db: summaries(db, asked.conversation))


def _limits(asked: ReadWindow | ReadSession) -> dict[str, Any]:
    return {"last": asked.last, "tokens": asked.tokens, "across_sessions": asked.across_sessions}

"""The operations of `store.conversations`."""

from memlog.query.conversations import Window, window
from memlog.query.sessions import Session, SessionContent, Summary, session_content, sessions, summaries
from memlog.service.engine.engine import OperationGroup
from memlog.service.engine.operation import operation
from memlog.service.memory.conversation_requests import ListSessions, ListSummaries, ReadSession, ReadWindow


class Conversations(OperationGroup):
    """The conversations of a store."""

    @operation(ReadWindow, effect="read")
    def window(self, request: ReadWindow) -> Window:
        return self._query(window, request)

    @operation(ReadSession, effect="read")
    def session_content(self, request: ReadSession) -> SessionContent:
        return self._query(session_content, request)

    @operation(ListSessions, effect="read")
    def sessions(self, request: ListSessions) -> list[Session]:
        return self._read(lambda db: sessions(db, request.conversation, is_all=request.all))

    @operation(ListSummaries, effect="read")
    def summaries(self, request: ListSummaries) -> list[Summary]:
        return self._query(summaries, request)

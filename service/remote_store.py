"""A store that another process serves: `memlog.connect`."""

from types import TracebackType
from typing import Self, get_type_hints

from memlog.service.remote import ServerConnection
from memlog.service.remote_operations import RemoteOperations


class RemoteStore(RemoteOperations):
    """The operations of `Store`, done by a server. Use it with `with`, or call `close`.

    Errors are those of the operations; LogError says that the server cannot be reached.
    """

    def __init__(self, connection: ServerConnection) -> None:
        super().__init__(connection, "")
        for name, kind in get_type_hints(RemoteOperations).items():
            setattr(self, name, kind(connection, name))

    def available(self) -> bool:
        """Whether the server answers."""
        return self._connection.available()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(
    url: str = "http://127.0.0.1:5858",
    *,
    project: str = "default",
    token: str | None = None,
    seconds: float = 60,
) -> RemoteStore:
    """The store of a project that a server serves; see `memlog serve`. Asks for nothing yet.

    seconds: to wait for an answer.
    """
    return RemoteStore(ServerConnection(url, project, token, seconds))

"""A store that another process serves: `memlog.connect`."""

from typing import get_type_hints

from memlog.service.remote import Connected, ServerConnection
from memlog.service.remote_operations import RemoteOperations


class RemoteStore(Connected, RemoteOperations):
    """The operations of `Store`, done by a server. Use it with `with`, or call `close`.

    Errors are those of the operations; LogError says that the server cannot be reached.
    """

    def __init__(self, connection: ServerConnection) -> None:
        super().__init__(connection, "")
        for name, kind in get_type_hints(RemoteOperations).items():
            setattr(self, name, kind(connection, name))


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

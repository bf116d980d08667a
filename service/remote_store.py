"""A store that another process serves: `memlog.connect`."""

from pathlib import Path
from typing import get_type_hints

from memlog.eventlog.errors import BadInput, LogError
from memlog.query.request import path_of, read_argument
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
    url: str | None = None,
    *,
    store: str | Path | None = None,
    project: str = "default",
    token: str | None = None,
    seconds: float = 60,
) -> RemoteStore:
    """Connect to a project that a server serves; see `memlog serve`. Asks for nothing yet.

    url: of the server, with its token. Without it, the server of this user on this machine is meant, which is
        checked before it is sent anything: the one that serves all projects, or the one that serves `store`.
    store: the folder of a store. seconds: to wait for an answer.

    Raises:
        LogError: no server of this user runs here. BadInput: an argument is wrong.
    """
    if url is not None:
        if store is not None:
            raise BadInput("url and store both name a server", hint="leave out one of the two")
        return RemoteStore(ServerConnection(url, project, token, seconds))
    if token is not None:
        raise BadInput(
            "a token without the url of its server", hint="name the server, or leave out the token"
        )
    # Imported here: most programs name the server.
    from platformdirs import user_data_path

    from memlog.service.running_servers import running_server, servers_folder

    of_user = user_data_path("memlog", appauthor=False)
    served = of_user if store is None else read_argument("store", path_of, store)
    found = running_server(servers_folder(), served)
    try:
        connection = None if found is None else found.connection(project, seconds)
    except OSError as error:
        raise LogError(f"the token cannot be read: {error}", hint="name the server and its token") from error
    if connection is None:
        raise LogError(
            f"no server of this user serves {served}",
            hint="start a server there, or name its address",
            code="server_away",
            retryable=True,
        )
    return RemoteStore(connection)

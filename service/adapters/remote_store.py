"""A store served by another process: `memlog.connect`."""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from memlog.eventlog.codec.hashing import short_sha256
from memlog.eventlog.errors import BadInput, Busy, LogError
from memlog.eventlog.fields import read_argument, to_path
from memlog.eventlog.files import locks
from memlog.service.adapters.local_sockets import listen_on_private_socket
from memlog.service.adapters.remote import Connected, Remote, ServerConnection, remote_class, remote_method
from memlog.service.store import Store, StoreGroups


class RemoteStore(Connected, Remote, StoreGroups):
    """The operations of `Store`, carried out by a server. Use it with `with`, or call `close`.

    Raises the errors of the operations, and LogError if the server is unreachable.
    """

    def __init__(self, connection: ServerConnection) -> None:
        super().__init__(connection, "")

    def _make_operation_group(self, name: str) -> Remote:
        """Return a group with the operations of the store's group, but none of its other methods."""
        return remote_class(name)(self._connection, name)

    append = remote_method(Store.append)
    search = remote_method(Store.search)
    context = remote_method(Store.context)
    pre_route = remote_method(Store.pre_route)
    get = remote_method(Store.get)


def connect(
    url: str | None = None,
    *,
    store: str | Path | None = None,
    project: str = "default",
    token: str | None = None,
    seconds: float = 60,
) -> RemoteStore:
    """Return a client for a project on a server; see `memlog serve`. Sends nothing yet.

    url: the server's address; also pass its token. If None, connect to this user's server on this machine
        that serves `store`, or all projects; its identity is checked before anything is sent.
    store: a store's folder. seconds: how long to wait for an answer.

    Raises:
        LogError: this user has no such server on this machine. BadInput: an argument is invalid.
    """
    if url is not None:
        if store is not None:
            raise BadInput("url and store cannot be combined", hint="omit one of them")
        return RemoteStore(ServerConnection(url, project, token, seconds))
    if token is not None:
        raise BadInput(
            "a token was given without the url of its server", hint="specify url or omit the token"
        )
    # Imported here: most programs name the server.
    from platformdirs import user_data_path

    of_user = user_data_path("memlog", appauthor=False)
    served = of_user if store is None else read_argument("store", to_path, store)
    found = find_running_server(servers_folder(), served)
    try:
        connection = None if found is None else found.connect_if_proven(project, seconds)
    except OSError as error:
        raise LogError(f"the token cannot be read: {error}", hint="specify url and token") from error
    if connection is None:
        raise LogError(
            f"no server of this user serves {served}",
            hint="start a server for the store or specify its url",
            code="server_away",
            retryable=True,
        )
    return RemoteStore(connection)


_PATIENCE = 1.0
"""Seconds to wait for processes that check whether a server is running."""


class RunningServer(msgspec.Struct, frozen=True):
    """A server: the address it is bound to, the file with its token, if it requires one, and its version.

    socket: a Unix socket in a folder only this user can access; None if there is no such folder.
    """

    url: str
    token_file: str | None
    version: str
    socket: str | None = None

    def connect_if_proven(self, project: str, seconds: float = 60) -> ServerConnection | None:
        """Return a connection to the server; None if its identity could not be proven.

        Raises:
            OSError: the server's token cannot be read.
        """
        token = None if self.token_file is None else Path(self.token_file).read_text().strip()
        if self.socket is None and token is None:
            return None
        return ServerConnection(self.url, project, token, seconds, socket=self.socket, is_proven=True)


@contextmanager
def announcing_server(
    folder: Path, runtime: Path | None, served: Path, server: RunningServer
) -> Iterator[tuple[ExitStack, list[socket.socket]]]:
    """Let this user's processes find the server of a store or of all projects, while the context lasts.

    Yield the announcement, and more sockets for the server to listen on. Close the announcement before the
    server stops listening, so that no client tries an address that another process may have taken.

    folder: where servers announce themselves. Each file stays locked while its server lives, so the file of a
        killed server is ignored. If another server already serves the same store, clients find that one.
    runtime: the folder for its Unix socket; None for no socket.
    """
    file = _path_of_lock_file(folder, served)
    sockets: list[socket.socket] = []
    with ExitStack() as announcement:
        with suppress(OSError, Busy):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            announcement.enter_context(locks.holding_lock(file, "the server", _PATIENCE))
            if runtime is not None:
                path = runtime / file.with_suffix(".sock").name
                with suppress(OSError):
                    sockets.append(listen_on_private_socket(path))
                    server = replace(server, socket=str(path))
                    announcement.callback(path.unlink, missing_ok=True)
            told = file.with_suffix(".json")
            announcement.callback(told.unlink, missing_ok=True)
            told.write_bytes(msgspec.json.encode(server))
        yield announcement, sockets


def find_running_server(folder: Path, served: Path) -> RunningServer | None:
    """Return the running server of a store, or of a folder of projects, or None."""
    file = _path_of_lock_file(folder, served)
    if not _is_file_locked(file):
        return None
    try:
        return msgspec.json.decode(file.with_suffix(".json").read_bytes(), type=RunningServer)
    except (OSError, msgspec.MsgspecError):
        return None  # it is still starting


def _is_file_locked(file: Path) -> bool:
    # The lock is shared, so that two concurrent checks do not take each other for a server.
    try:
        with file.open("rb") as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def servers_folder() -> Path:
    """Return the folder where this user's servers announce themselves."""
    # Imported here: most commands know no server.
    from platformdirs import user_state_path

    return user_state_path("memlog", appauthor=False) / "servers"


def sockets_folder() -> Path | None:
    """Return the folder for the Unix sockets of this user's servers, or None if unavailable."""
    # Imported here: most commands know no server.
    import warnings

    from platformdirs import user_runtime_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a service without a session, whose folder is below /tmp
        with suppress(OSError, RuntimeError):  # another user has created it
            return user_runtime_path("memlog", appauthor=False)
    return None


def _path_of_lock_file(folder: Path, served: Path) -> Path:
    name = short_sha256(os.fsencode(served.resolve())).hexdigest()[:32]
    return folder / f"{name}.lock"

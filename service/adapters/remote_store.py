"""A store that another process serves: `memlog.connect`."""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from memlog.eventlog.codec.hashing import short_sha256
from memlog.eventlog.errors import BadInput, Busy, LogError
from memlog.eventlog.files import locks
from memlog.query.request import path_of, read_argument
from memlog.service.adapters.local_sockets import listening_at
from memlog.service.adapters.remote import Connected, Remote, ServerConnection, remote
from memlog.service.engine.operation import PLACES
from memlog.service.store import Store

if TYPE_CHECKING:
    from memlog.service.documents.documents import Documents, Workspaces
    from memlog.service.exchange.exchange import DataExchange
    from memlog.service.llm.extraction import Extractions
    from memlog.service.memory.conversations import Conversations
    from memlog.service.memory.core import Core
    from memlog.service.memory.daily import DailyEvents
    from memlog.service.memory.facts import Facts
    from memlog.service.memory.memories import Memories
    from memlog.service.retrieval.tools import Tools
    from memlog.service.upkeep.erasure import Erasure
    from memlog.service.upkeep.jobs import Jobs
    from memlog.service.upkeep.maintenance import Maintenance


class RemoteStore(Connected, Remote):
    """The operations of `Store`, done by a server. Use it with `with`, or call `close`.

    Errors are those of the operations; LogError says that the server cannot be reached.
    """

    def __init__(self, connection: ServerConnection) -> None:
        super().__init__(connection, "")
        for name in filter(None, PLACES):
            setattr(self, name, Remote(connection, name))

    append = remote(Store.append)
    search = remote(Store.search)
    context = remote(Store.context)
    pre_route = remote(Store.pre_route)
    get = remote(Store.get)
    # Each group has the operations of that of a store; its other methods raise AttributeError.
    conversations: "Conversations"
    memories: "Memories"
    core: "Core"
    facts: "Facts"
    daily: "DailyEvents"
    documents: "Documents"
    workspaces: "Workspaces"
    extraction: "Extractions"
    jobs: "Jobs"
    exchange: "DataExchange"
    erasure: "Erasure"
    maintenance: "Maintenance"
    tools: "Tools"


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


_PATIENCE = 1.0
"""Seconds for those who look whether a server runs."""


class RunningServer(msgspec.Struct, frozen=True):
    """A server: the address that it is bound to, the file of its token, and its version of memlog.

    socket: a Unix socket in a folder of this user alone; None where there is no such folder.
    """

    url: str
    token_file: str | None
    version: str
    socket: str | None = None

    def token(self) -> str | None:
        """Return the token of the server; None where it requires none."""
        return None if self.token_file is None else Path(self.token_file).read_text().strip()

    def connection(self, project: str, seconds: float = 60) -> "ServerConnection | None":
        """Return a connection to the server; None where nothing would prove that it is the server.

        Raises:
            OSError: its token cannot be read.
        """
        # Imported here: a server needs none of it.
        from memlog.service.adapters.remote import ServerConnection

        token = self.token()
        if self.socket is None and token is None:
            return None
        return ServerConnection(self.url, project, token, seconds, socket=self.socket, is_proven=True)


class Announcement(ExitStack):
    """What tells the other processes of this user of a server, until it is closed.

    sockets: on which the server is to listen, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sockets: list[socket.socket] = []


@contextmanager
def announced(
    folder: Path, runtime: Path | None, served: Path, server: RunningServer
) -> Iterator[Announcement]:
    """Have other processes of this user find the server of a store, or of a folder of projects.

    The server closes the announcement before it stops listening: then nobody looks for it at an address that
    is free for a stranger.

    folder: of the files that announce servers. A file is locked as long as its server lives: what a killed
        server leaves names nobody. If another server serves the same, that one is found.
    runtime: the folder of its socket; None for none.
    """
    file = _file(folder, served)
    with Announcement() as announcement:
        with suppress(OSError, Busy):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            announcement.enter_context(locks.locked(file, "the server", _PATIENCE))
            if runtime is not None:
                path = runtime / file.with_suffix(".sock").name
                with suppress(OSError):
                    announcement.sockets.append(listening_at(path))
                    server = replace(server, socket=str(path))
                    announcement.callback(path.unlink, missing_ok=True)
            told = file.with_suffix(".json")
            announcement.callback(told.unlink, missing_ok=True)
            told.write_bytes(msgspec.json.encode(server))
        yield announcement


def running_server(folder: Path, served: Path) -> RunningServer | None:
    """Return the server of a store, or of a folder of projects; None where none runs."""
    file = _file(folder, served)
    if not _is_held(file):
        return None
    try:
        return msgspec.json.decode(file.with_suffix(".json").read_bytes(), type=RunningServer)
    except (OSError, msgspec.MsgspecError):
        return None  # it is about to start


def _is_held(file: Path) -> bool:
    # Shared, so that two that look at once do not take each other for a server.
    try:
        with file.open("rb") as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def servers_folder() -> Path:
    """Return the folder in which servers of this user announce themselves."""
    # Imported here: most commands know no server.
    from platformdirs import user_state_path

    return user_state_path("memlog", appauthor=False) / "servers"


def sockets_folder() -> Path | None:
    """Return the folder in which servers of this user listen for its other processes; None without one."""
    # Imported here: most commands know no server.
    import warnings

    from platformdirs import user_runtime_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a service without a session, whose folder is below /tmp
        with suppress(OSError, RuntimeError):  # another user has made it
            return user_runtime_path("memlog", appauthor=False)
    return None


def _file(folder: Path, served: Path) -> Path:
    name = short_sha256(os.fsencode(served.resolve())).hexdigest()[:32]
    return folder / f"{name}.lock"

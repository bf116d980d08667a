"""Which server of this user runs for a store, so that other processes can pass calls on to it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from memlog.eventlog import locks
from memlog.eventlog.errors import Busy
from memlog.eventlog.hashing import short_sha256

_PATIENCE = 1.0
"""Seconds for those who look whether a server runs."""


class RunningServer(msgspec.Struct, frozen=True):
    """A server: its address, the file of its token, and its version of memlog."""

    url: str
    token_file: str | None
    version: str

    def token(self) -> str | None:
        """Its token; None where it asks for none."""
        return None if self.token_file is None else Path(self.token_file).read_text().strip()


@contextmanager
def announced(folder: Path, served: Path, server: RunningServer) -> Iterator[None]:
    """A context in which other processes of this user find the server of a store, or of a folder of projects.

    folder: of the files that announce servers. A file is locked as long as its server lives: what a killed
        server leaves names nobody. If another server serves the same, that one is found.
    """
    file = _file(folder, served)
    with ExitStack() as held:
        with suppress(OSError, Busy):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            held.enter_context(locks.locked(file, "the server", _PATIENCE))
            file.with_suffix(".json").write_bytes(msgspec.json.encode(server))
        yield


def running_server(folder: Path, served: Path) -> RunningServer | None:
    """The server of a store, or of a folder of projects; None where none runs."""
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


def _file(folder: Path, served: Path) -> Path:
    name = short_sha256(os.fsencode(served.resolve())).hexdigest()[:32]
    return folder / f"{name}.lock"

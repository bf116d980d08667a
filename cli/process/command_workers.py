"""Runs commands forwarded by other processes, in processes that have already imported everything.

A template process imports what the commands need and loads the model; it has one thread, so that it may fork.
Its children, the workers, run one command at a time, in the environment of the client: its folder, variables,
streams and arguments. A worker is replaced if a command has changed it permanently (another user, a thread
left running), if its client has disconnected, or if it has died. All of these processes end with the server,
whose end closes a pipe that only the server can write to.

Rejected alternatives: a fork for each command costs 10 ms, and another 20 ms for the memory pages that the
child touches first, as much as a query takes (3,000 messages, two cores). Threads in the server would share
its working folder and environment.
"""

import gc
import io
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from memlog.cli.output.output import RUN, STORED, NeedsOwnProcess
from memlog.cli.process import forwarding
from memlog.eventlog.errors import Busy
from memlog.service.adapters.local_sockets import is_process_of_user, listen_on_private_socket

_WORKERS = 2
"""The number of workers: while one command waits for a provider or a large store, another can run."""

_LOCK_SECONDS = 1.0
_FRAME_SECONDS = 5.0
_RESTART_SECONDS = 0.1
_PAUSE = 0.05
_LAST_SECONDS = 3.0
_MOST_FRAME = 1 << 20
_ANSWERED = (0, 1, 2)
"""The exit codes that are sent to the client. Any other failure may be due to this process, so the client
runs the command itself."""


_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
"""Variables that keep numpy and tokenizers from starting threads, which do not survive a fork."""


@contextmanager
def serving_commands(on_command: Callable[[], object]) -> Iterator[None]:
    """Run commands forwarded by this user's processes while the context lasts.

    Does nothing if another server is already running them, or if there is no folder for the socket.

    on_command: called in a thread once commands can run, and after each command.
    """
    # Imported here: it needs msgspec's models, and the template does not.
    from memlog.eventlog.files import locks
    from memlog.service.adapters.remote_store import servers_folder

    path = Path(forwarding.path_of_socket(os.environb))
    file = servers_folder() / f"{path.stem}.lock"
    with ExitStack() as stack:
        with suppress(OSError, Busy):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            stack.enter_context(locks.holding_lock(file, "the command server", _LOCK_SECONDS))
            stack.callback(path.unlink, missing_ok=True)
            stack.enter_context(_template_process(path, on_command))
        yield


@contextmanager
def _template_process(path: Path, on_command: Callable[[], object]) -> Iterator[None]:
    reader, writer = os.pipe()
    ran, runs = os.pipe()
    threading.Thread(target=_report_commands, args=(ran, on_command), daemon=True).start()
    code = f"from {__name__} import run_template; run_template({str(path)!r}, {reader}, {runs})"
    process = subprocess.Popen(  # noqa: S603 - no argument comes from outside
        [sys.executable, "-P", "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(reader, runs),
        start_new_session=True,  # Ctrl-C is for the server, which ends the others
        env=os.environ | _ONE_THREAD,
    )
    os.close(reader)
    os.close(runs)
    try:
        yield
    finally:
        os.close(writer)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LOCK_SECONDS)


def _report_commands(ran: int, on_command: Callable[[], object]) -> None:
    while os.read(ran, 64):
        on_command()
    os.close(ran)


def run_template(path: str, end_of_server: int, runs: int) -> None:
    """Import everything, listen at `path`, and keep the workers running until the server ends.

    end_of_server: a pipe that is closed when the server ends. runs: a pipe to which a byte is written at the
        start and after each command.
    """
    _warm_up()
    # Only now: until then, a client would wait for its acknowledgement in vain.
    try:
        listener = listen_on_private_socket(Path(path))
    except OSError:  # a long path, or a folder of others: commands run in their own processes
        os._exit(0)
    os.write(runs, b".")
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        while _count_children() < _WORKERS:
            _fork_worker(listener, end_of_server, runs)
        ready, _, _ = select.select([wake, end_of_server], [], [])
        if end_of_server in ready:
            os._exit(0)
        os.read(wake, 64)
        time.sleep(_RESTART_SECONDS)


_children: set[int] = set()


def _count_children() -> int:
    for pid in [*_children]:
        if os.waitpid(pid, os.WNOHANG)[0]:
            _children.discard(pid)
    return len(_children)


def _fork_worker(listener: socket.socket, end_of_server: int, runs: int) -> None:
    pid = os.fork()  # noqa: TID251 - has no threads
    if pid:
        _children.add(pid)
        return
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        _run_commands(listener, end_of_server, runs)
    finally:
        os._exit(0)


def _warm_up() -> None:
    """Import everything that commands need, by running some on a temporary store."""
    import memlog
    from memlog.service.engine.embedding_models import load_model_for_forks

    load_model_for_forks()
    os.chdir("/")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store")
        with memlog.open(store) as opened:
            opened.append(
                [memlog.Message(channel="cli", chat_id="1", role="user", content="I like green tea.")]
            )
            opened.maintenance.project()
        for words in _WARMING:
            here = Path().stat()
            args = [b"--store", os.fsencode(store), *words]
            inode = b"%d %d" % (here.st_dev, here.st_ino)
            fields = [b"/", inode, b"0077", b"000", b"utf-8 utf-8 utf-8", b"%d" % len(args), *args]
            code = _Call(fields, None).run()
            assert code == 0
    gc.collect()
    gc.freeze()


_WARMING = [
    [b"query", b"Who likes tea?"],
    [b"query", b"--json", b"tea"],
    [b"context", b"Who likes tea?"],
    [b"window", b"--chat", b"cli:1"],
    [b"memory", b"list"],
    [b"status"],
]


def _run_commands(listener: socket.socket, end_of_server: int, runs: int) -> None:
    own = _ids_of_process()
    identity = forwarding.identity_of_program()
    listener.setblocking(False)  # another worker may be faster
    while True:
        ready, _, _ = select.select([listener.fileno(), end_of_server], [], [])
        if end_of_server in ready:
            return
        with suppress(OSError, ValueError), listener.accept()[0] as client:
            client.settimeout(_FRAME_SECONDS)
            if is_process_of_user(client):
                _answer(client, identity, end_of_server)
                os.write(runs, b".")
        # A thread that a command left behind would meet the surroundings of the next one.
        if _ids_of_process() != own or threading.active_count() > 1:
            return


def _ids_of_process() -> tuple[int, ...]:
    return os.getuid(), os.geteuid(), os.getgid(), os.getegid()


def _answer(client: socket.socket, identity: bytes, end_of_server: int) -> None:
    length = int.from_bytes(_receive(client, 4), "little")
    if length > _MOST_FRAME:
        return
    found, *fields = _receive(client, length).split(b"\0")
    if found != identity:
        return
    client.sendall(forwarding.ACK)
    if client.recv(1) != forwarding.GO:
        return
    client.settimeout(None)
    call = _Call(fields, client)
    is_done = threading.Event()
    start_new_thread(_end_if_not_wanted, (client, end_of_server, is_done))
    try:
        code = call.run()
    except NeedsOwnProcess:
        code = None
    finally:
        is_done.set()
    for kind, data in call.printed if code in _ANSWERED else ():
        _send(client, kind, data)
    _send(client, *((forwarding.END, b"%d" % code) if code in _ANSWERED else (forwarding.DECLINED, b"")))
    client.shutdown(socket.SHUT_RDWR)


def _end_if_not_wanted(client: socket.socket, end_of_server: int, is_done: threading.Event) -> None:
    """End this process once its client disconnects, or `_LAST_SECONDS` after the server has ended."""
    while not is_done.is_set():
        try:
            ready, _, _ = select.select([client.fileno(), end_of_server], [], [])
            if end_of_server in ready and not is_done.wait(_LAST_SECONDS):
                os._exit(0)
            has_left = client.fileno() in ready and not client.recv(1, socket.MSG_PEEK)
            if has_left and not is_done.is_set():
                os._exit(0)
        except (OSError, ValueError):  # the socket has been closed
            return
        is_done.wait(_PAUSE)  # the command is about to read what has come


def _receive(client: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = client.recv(count - len(data))
        if not part:
            raise OSError("the client left")
        data += part
    return data


def _send(client: socket.socket, kind: bytes, data: bytes) -> None:
    client.sendall(kind + len(data).to_bytes(4, "little") + data)


class _Call:
    """A command line with the environment of its client; see `forwarding.build_frame`.

    printed: the output so far, as messages in order.
    """

    def __init__(self, fields: list[bytes], client: socket.socket | None) -> None:
        folder, identity, mask, terminals, encodings, count, *words = fields
        self.folder, self.inode, self.mask = folder, identity.decode(), int(mask)
        self.args = list(map(os.fsdecode, words[: int(count)]))
        self.variables = {
            os.fsdecode(name): os.fsdecode(value)
            for name, _, value in (word.partition(b"=") for word in words[int(count) :])
        }
        self.terminals = [each == ord("1") for each in terminals]
        self.encodings = encodings.decode().split()
        self.printed: list[tuple[bytes, bytes]] = []
        self._client = client

    def run(self) -> int:
        """Run the command, and return its exit code.

        Raises:
            NeedsOwnProcess: it cannot run here.
        """
        # Imported here: the server itself runs no commands.
        from memlog.cli.options.open_store import KEPT_STORES
        from memlog.cli.process.main import run_command_line

        os.environ.clear()
        os.environ.update(self.variables | _ONE_THREAD)
        time.tzset()
        os.umask(self.mask)
        try:
            os.chdir(self.folder)
        except OSError:
            raise NeedsOwnProcess from None
        found = Path().stat()
        if f"{found.st_dev} {found.st_ino}" != self.inode:  # a container, where paths mean something else
            raise NeedsOwnProcess
        sys.argv = ["memlog", *self.args]
        streams: list[_Stream] = [
            _ClientStdin(self._client),
            _CollectedOutput(forwarding.OUT, self.printed),
            _CollectedOutput(forwarding.ERR, self.printed),
        ]
        before = sys.stdin, sys.stdout, sys.stderr
        sys.stdin, sys.stdout, sys.stderr = map(_open_text, streams, self.encodings, self.terminals)
        RUN.is_forwarded = True
        STORED.reset_after_acknowledgement()
        try:
            return run_command_line()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            sys.stdin, sys.stdout, sys.stderr = before
            os.chdir("/")
            if any(kind == forwarding.ERR for kind, _ in self.printed):
                KEPT_STORES.close_newest()


def _open_text(stream: "_Stream", encoding: str, is_terminal: bool) -> io.TextIOWrapper:
    stream.is_terminal = is_terminal
    if stream.kind == forwarding.STDIN:
        return io.TextIOWrapper(io.BufferedReader(stream), encoding)
    # As `replace_streams` does for a process of its own.
    is_line = is_terminal or stream.kind == forwarding.ERR
    return io.TextIOWrapper(io.BufferedWriter(stream), encoding, "backslashreplace", line_buffering=is_line)


class _Stream(io.RawIOBase):
    is_terminal = False
    kind = forwarding.STDIN

    def isatty(self) -> bool:
        return self.is_terminal


class _CollectedOutput(_Stream):
    """Collects the output of a stream in a list that stdout and stderr share, which keeps their order."""

    def __init__(self, kind: bytes, printed: list[tuple[bytes, bytes]]) -> None:
        self.kind, self._printed = kind, printed

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any buffer
        self._printed.append((self.kind, bytes(data)))
        return len(data)


class _ClientStdin(_Stream):
    """Requests the client's stdin on the first read."""

    def __init__(self, client: socket.socket | None) -> None:
        self._client = client
        self._rest: bytes | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - any buffer
        if self._rest is None:
            self._rest = self._request()
        data, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def _request(self) -> bytes:
        if self._client is None:
            return b""
        try:
            _send(self._client, forwarding.STDIN, b"")
            return _receive(self._client, int.from_bytes(_receive(self._client, 4), "little"))
        except OSError:
            raise NeedsOwnProcess from None

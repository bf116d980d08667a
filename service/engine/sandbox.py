"""Runs untrusted work in a bounded process, which answers framed requests; see `sandbox_program`.

A regular expression or a parser in C holds the GIL, and no exception stops it, but a process can be killed.
One process serves many requests, since starting it takes as long as thousands of short requests.
"""

import errno
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, Literal, NamedTuple, NoReturn, TypeVar

import msgspec

from memlog.eventlog.files.forks import SplitByFork
from memlog.query.foreign_tables import TablePage

MEMORY = 1024 * 1024 * 1024
"""How many bytes of memory the process may take. Measured: 10 MiB of HTML take 490 MB."""

CLOCK_SHARE = 4
"""How many wall-clock seconds are allowed per second of CPU time, since the machine may be busy."""

LENGTH_BYTES = 4
MAX_TEXT_BYTES = 16 * 1024 * 1024
"""The size limit of an event, in bytes: a longer text cannot be a document."""

MAX_REPLY = 2 * MAX_TEXT_BYTES + 1024 * 1024
"""The longest reply in bytes: a text, the verdicts on a batch of paths, or a page of rows."""

Why = Literal["damaged", "no_reader", "limit"]


class Extract(msgspec.Struct, frozen=True, tag=True):
    """A request for the text of a file, within `seconds` of CPU time."""

    data: bytes
    filetype: str
    seconds: int


class Match(msgspec.Struct, frozen=True, tag=True):
    """A request for the paths that a .gitignore excludes, within `seconds` of CPU time.

    The reply has one value per path: True if excluded, False if included, None if no rule matches.
    """

    rules: bytes
    paths: list[bytes]
    seconds: int


class SearchTexts(msgspec.Struct, frozen=True, tag=True):
    """A request to search texts for a match of a regular expression, within `seconds` of CPU time."""

    pattern: str
    texts: list[str]
    seconds: int


class ReadTable(msgspec.Struct, frozen=True, tag=True):
    """A request for the first rows of a table in an SQLite file, within `seconds` of CPU time.

    known: the names of the columns to read; the table may lack some.
    """

    path: str
    table: str
    known: list[str]
    seconds: int


class MoreRows(msgspec.Struct, frozen=True, tag=True):
    """A request for the next rows of the table in the last `ReadTable`, within `seconds` of CPU time."""

    seconds: int


class EmbedTexts(msgspec.Struct, frozen=True, tag=True):
    """A request for vectors from the multilingual model, within `seconds` of CPU time.

    The reply has the vectors concatenated, as little-endian float32.
    """

    texts: list[str]
    is_query: bool
    seconds: int


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The reply to a request that failed, with the reason.

    detail: the library's message. is_final: whether a new process would fail, too.
    """

    why: Why
    detail: str = ""
    is_final: bool = True


_ENCODER = msgspec.msgpack.Encoder()

Request = Extract | Match | SearchTexts | ReadTable | MoreRows | EmbedTexts
Reply = str | bytes | bool | list[bool | None] | TablePage | Failed


class ReaderFailed(Exception):
    """Raised for a request that failed; see `Failed`."""

    def __init__(self, why: Why, detail: str, *, is_final: bool = True) -> None:
        super().__init__(detail)
        self.why: Why = why
        self.is_final = is_final


def frame_message(message: Request | Reply) -> bytearray:
    """Encode a message after its length. A large message is copied only once."""
    frame = bytearray(LENGTH_BYTES)
    _ENCODER.encode_into(message, frame, LENGTH_BYTES)
    frame[:LENGTH_BYTES] = (len(frame) - LENGTH_BYTES).to_bytes(LENGTH_BYTES, "big")
    return frame


def message_length(head: bytes) -> int:
    """Return the length in bytes of a message, given its first `LENGTH_BYTES`."""
    return int.from_bytes(head, "big")


_PROGRAM = "memlog.service.engine.sandbox_program"
_BLOCK = 64 * 1024
_PRINTED_BYTES = 4096
_LINE_LENGTH = 200
_TICK = 0.1
"""Seconds between calls of `on_wait`, so that a caller can stop within a second."""

Answer = TypeVar("Answer", str, bytes, bool, list[bool | None], TablePage)


class BoundedProcess:
    """A process with resource limits that answers one request at a time. The first request starts it.

    on_wait: called at least every 0.1 s during a request; raising in it kills the process.
    file_bytes: the size limit of files that it writes.
    """

    def __init__(self, on_wait: Callable[[], None], *, file_bytes: int = 0) -> None:
        self._on_wait, self._file_bytes = on_wait, file_bytes
        self._child: subprocess.Popen[bytes] | None = None
        self._has_answered = False

    def ask(self, request: Request, kind: type[Answer]) -> tuple[Answer, str]:
        """Return the answer to a request, and the first line that the library printed, or "".

        Raises:
            ReaderFailed: the request exceeds a limit, or the library is missing, fails or crashes.
            OSError: the process cannot be started, or has exited.
        """
        is_used = self._has_answered and self._is_alive()
        try:
            return self._send_request(request, kind)
        except (ReaderFailed, OSError) as error:
            # A used process may lack memory: retry in a new one.
            if not is_used or (isinstance(error, ReaderFailed) and error.is_final):
                raise
        return self._send_request(request, kind)

    def close(self) -> None:
        """Kill the process. The next request starts a new one."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in _child_pipes(self._child):
                pipe.close()
        self._child, self._has_answered = None, False

    def _send_request(self, request: Request, kind: type[Answer]) -> tuple[Answer, str]:
        exchange = _Exchange(self._start_child(), request)
        try:
            data = exchange.run(self._on_wait)
            reply: Answer | Failed = msgspec.msgpack.decode(data, type=kind | Failed)
        except msgspec.DecodeError as error:
            self.close()
            raise ReaderFailed("damaged", "its reader gave no answer") from error
        except BaseException:
            self.close()
            raise
        self._has_answered = True
        if not isinstance(reply, Failed):
            return reply, _first_line(exchange.printed)
        if not reply.is_final:
            self.close()
        raise ReaderFailed(reply.why, reply.detail, is_final=reply.is_final)

    def _start_child(self) -> "subprocess.Popen[bytes]":
        if self._child is None or not self._is_alive():
            self.close()
            # -P: import nothing from the current folder, which may be untrusted.
            self._child = subprocess.Popen(  # noqa: S603 - no argument comes from outside
                [sys.executable, "-P", "-m", _PROGRAM, str(MEMORY), str(self._file_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
            for pipe in _child_pipes(self._child):
                os.set_blocking(pipe.fileno(), False)
        return self._child

    def _is_alive(self) -> bool:
        return self._child is not None and self._child.poll() is None


class _Exchange:
    """One request and its reply, with all pipes served concurrently.

    printed: the first bytes of stderr.
    """

    def __init__(self, child: "subprocess.Popen[bytes]", request: Request) -> None:
        self._child = child
        self._seconds = request.seconds
        self._in, self._out, self._err = (pipe.fileno() for pipe in _child_pipes(child))
        self._rest = memoryview(frame_message(request))
        self._received = bytearray()
        self._selector = selectors.DefaultSelector()
        self.printed = b""
        self._reply: bytes | None = None
        self._is_done = False

    def run(self, on_wait: Callable[[], None]) -> bytes:
        """Send the request, and return the reply.

        Raises:
            ReaderFailed: there is no reply in time, or the process crashes.
            OSError: the process has exited, or its reply is too long.
        """
        deadline = time.monotonic() + self._seconds * CLOCK_SHARE
        with self._selector as selector:
            selector.register(self._in, selectors.EVENT_WRITE, self._send_some)
            selector.register(self._out, selectors.EVENT_READ, self._receive_some)
            selector.register(self._err, selectors.EVENT_READ, self._keep_printed)
            while not self._is_done:
                if time.monotonic() > deadline:
                    raise _timeout_error(self._seconds)
                # stderr first: it was printed before the reply.
                for key, _ in sorted(selector.select(_TICK), key=lambda each: each[0].fd != self._err):
                    key.data()
                on_wait()
        if self._reply is None:
            self._raise_failure()
        return self._reply

    def _raise_failure(self) -> NoReturn:
        """Raise the error for a process that closed its stdout without a reply."""
        try:
            status = self._child.wait(_TICK)
        except subprocess.TimeoutExpired:
            status = 0
        if status == -signal.SIGXCPU:
            raise _timeout_error(self._seconds)
        if status < 0:
            name = signal.Signals(-status).name
            raise ReaderFailed("damaged", f"its reader was killed by {name}", is_final=False)
        last_line = self.printed.rstrip().rpartition(b"\n")[2]
        raise OSError(errno.ECHILD, f"its reader ended: {_first_line(last_line)}")

    def _send_some(self) -> None:
        try:
            self._rest = self._rest[os.write(self._in, self._rest) :]
        except BrokenPipeError:
            # The process has exited; `_receive_some` notices.
            self._rest = self._rest[:0]
        if not self._rest:
            self._selector.unregister(self._in)

    def _receive_some(self) -> None:
        data = os.read(self._out, _BLOCK)
        self._received += data
        length = message_length(bytes(self._received[:LENGTH_BYTES]))
        is_whole = len(self._received) == LENGTH_BYTES + length
        if is_whole:
            self._reply = bytes(self._received[LENGTH_BYTES:])
        self._is_done = is_whole or not data or length > MAX_REPLY

    def _keep_printed(self) -> None:
        data = os.read(self._err, _BLOCK)
        if not data:
            self._selector.unregister(self._err)
        self.printed += data[: _PRINTED_BYTES - len(self.printed)]


def _child_pipes(child: "subprocess.Popen[bytes]") -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None  # noqa: PT018
    return child.stdin, child.stdout, child.stderr


def _timeout_error(seconds: int) -> ReaderFailed:
    return ReaderFailed("limit", f"it takes more than {seconds} seconds")


def _first_line(printed: bytes) -> str:
    """Return the first line that a library printed, truncated, with control characters escaped."""
    lines = [" ".join(line.split()) for line in printed.decode(errors="replace").split("\n")]
    first, *more = [line for line in lines if line] or [""]
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in first[:_LINE_LENGTH])
    return f"{shown} (and {len(more)} more)" if more else shown


_RULES_SECONDS = 2
"""CPU time for a batch of paths. Measured: it takes 0.1 s with 1,000 rules."""

_BATCH = 500


class Extracted(NamedTuple):
    """The text of a file, and the first line that the library printed about it, or ""."""

    text: str
    warning: str


class Readers(SplitByFork):
    """The reader process of a store, started on first use. Thread-safe.

    seconds: CPU time that one file may take.
    on_wait: called at least every 0.1 s during a request; raising in it cancels the request.
    """

    def __init__(self, seconds: int, *, on_wait: Callable[[], None]) -> None:
        super().__init__()
        self.seconds = seconds
        self._on_wait = on_wait
        self.after_fork_in_child()
        self._refused: dict[bytes, str] = {}

    def after_fork_in_child(self) -> None:
        """Leave the process to the parent, whose requests it answers."""
        self._lock = threading.Lock()
        self._process = BoundedProcess(self._on_wait)

    def extract_text(self, data: bytes, filetype: str) -> Extracted:
        """Return the text of an HTML (UTF-8) or PDF file, given its bytes.

        Raises:
            ReaderFailed: the library is missing, cannot read the file or crashes; or a limit is exceeded.
            OSError: the process cannot be started.
        """
        with self._lock:
            return Extracted(*self._process.ask(Extract(data, filetype, self.seconds), str))

    def match_rules(self, rules: bytes, paths: Sequence[bytes]) -> list[bool | None]:
        """Return whether the rules of a .gitignore exclude each path; None for a path that no rule matches.

        Raises:
            ReaderFailed: matching takes too long or fails; the same rules are not tried again.
            OSError: the process cannot be started.
        """
        with self._lock:
            if rules in self._refused:
                raise ReaderFailed("limit", self._refused[rules])
            try:
                batches = [paths[at : at + _BATCH] for at in range(0, len(paths), _BATCH)]
                return [verdict for batch in batches for verdict in self._request_matches(rules, batch)]
            except ReaderFailed as failed:
                self._refused[rules] = str(failed)
                raise

    def close(self) -> None:
        """Kill the process. The next request starts a new one."""
        with self._lock:
            self._process.close()

    def _request_matches(self, rules: bytes, paths: Sequence[bytes]) -> list[bool | None]:
        verdicts, _ = self._process.ask(Match(rules, list(paths), _RULES_SECONDS), list[bool | None])
        if len(verdicts) != len(paths):
            raise ReaderFailed("damaged", "its reader gave too few verdicts")
        return verdicts

"""Forwards a command to this user's command server, without importing the command's dependencies.

The server runs it in a process that has everything imported, and returns its exit code and output. If there
is no answer, or the command fails there, the caller runs the command itself, in its own environment.

The client sends a frame: its length, then fields separated by NULs; see `build_frame`. The server answers
with ACK, and runs the command only after it receives GO, so that no command runs for a client that has
stopped waiting. Then the server sends messages: each is a letter, a length, and that number of bytes.
"""

import os
import sys

import memlog

# Not `socket`, `typing` or `struct`: importing them would take longer than the rest of a client's work.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Mapping

ACK, GO = b"A", b"G"
OUT, ERR, STDIN, END, DECLINED = b"1", b"2", b"S", b"E", b"D"
"""The kinds of messages: output for a stream, a request for stdin, the exit code, or no answer."""

_WHOLE = "ask context gate hook query sessions show stats status window".split()
COMMANDS: "dict[str, tuple[str, ...]]" = {
    **dict.fromkeys(_WHOLE, ()),
    "core": ("get",),
    "fact": ("get", "list"),
    "memory": ("get", "history", "list", "show"),
    "session": ("content",),
}
"""The commands that are forwarded; for a group, the forwarded subcommands."""

_ACK_SECONDS = 0.1
_MOST_STDIN = 1024 * 1024
_MOST_FRAME = 1024 * 1024

_FLAGS = ("-q", "--quiet", "-v", "--verbose")
_WITH_VALUE = ("--store", "--project", "--model")
_PREFIXES = (b"MEMLOG_", b"XDG_", b"LC_")
_VARIABLES = frozenset(
    b"HOME LANG LANGUAGE TZ TZDIR COLUMNS LINES TERM NO_COLOR FORCE_COLOR TMPDIR PATH".split()
)
"""The environment variables sent with a command, besides those with one of the `_PREFIXES`."""

_OF_THIS_PROCESS = ("/dev/fd", "/dev/std", "/proc/self", "/dev/tty")
"""The beginnings of paths that mean something else in another process."""


class NotForwarded(Exception):
    """Raised if the command must run in this process. The message says why."""


NO_SERVER = "no server runs"
why_not_forwarded = "no server was tried"
"""The reason why this process runs its command itself."""


def forward_command(args: list[str]) -> int | None:
    """Have the server run a command, and print its output. Return its exit code; None if it did not run.

    Raises:
        KeyboardInterrupt: the user interrupted it. OSError: stdout cannot be written.
    """
    global why_not_forwarded
    try:
        place = find_forwarded_command(args)
        if args[place] in ("context", "hook"):
            # Should the server end before it answers, this process runs the same command, and records once.
            # An id that the user gives comes later, and counts.
            args[place + 1 : place + 1] = ["--record-id", _make_id()]
        server = _connect_to_server()
        try:
            return _run_on_server(server, args)
        finally:
            server.close()
    except NotForwarded as error:
        why_not_forwarded = str(error)
    return None


def find_forwarded_command(args: list[str]) -> int:
    """Return the index of the command's name in its command line.

    Raises:
        NotForwarded: the command is not in `COMMANDS`, or can only run in this process.
    """
    place = 0
    while place < len(args):
        word = args[place]
        if word in _WITH_VALUE:
            place += 1
        elif word not in _FLAGS and word.partition("=")[0] not in _WITH_VALUE:
            break
        place += 1
    group = COMMANDS.get("".join(args[place : place + 1]))
    if group is None or (group and "".join(args[place + 1 : place + 2]) not in group):
        raise NotForwarded(
            "--no-server was given" if "--no-server" in args[: place + 1] else "the server does not run it"
        )
    if b"_MEMLOG_COMPLETE" in os.environb:
        raise NotForwarded("a shell asks for completions")
    if any(path in word for path in _OF_THIS_PROCESS for word in args):
        raise NotForwarded("an argument names a file of this process")
    return place


def path_of_socket(environment: "Mapping[bytes, bytes]") -> str:
    """Return the path of the command server's socket: one for each user and home folder."""
    from binascii import crc32

    home = b"\0".join((environment.get(b"HOME", b""), environment.get(b"XDG_DATA_HOME", b"")))
    runtime = os.fsdecode(environment.get(b"XDG_RUNTIME_DIR", b""))
    if not runtime.startswith("/"):
        runtime = f"/run/user/{os.getuid()}"
        if not os.access(runtime, os.W_OK):
            runtime = f"{os.fsdecode(environment.get(b'TMPDIR', b'')) or '/tmp'}/memlog-{os.getuid()}"  # noqa: S108 - the server refuses a folder of others
    return f"{runtime}/memlog/commands-{crc32(home):08x}.sock"


def identity_of_program() -> bytes:
    """Return a key that identifies this installation, made from versions and this file's status."""
    found = os.stat(__file__)  # noqa: PTH116 - without pathlib
    return f"{memlog.__version__} {__file__} {found.st_ino} {found.st_mtime_ns} {sys.version}".encode()


def _make_id() -> str:
    """Return a new UUIDv7 (RFC 9562)."""
    from time import time_ns

    number = int.from_bytes(os.urandom(10), "big") & ~(0xF << 76 | 3 << 62)
    text = f"{time_ns() // 1_000_000 << 80 | number | 7 << 76 | 2 << 62:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _connect_to_server() -> "socket":
    from _socket import AF_UNIX, SO_PEERCRED, SOL_SOCKET, socket

    server = socket(AF_UNIX)
    try:
        server.settimeout(_ACK_SECONDS)
        server.connect(path_of_socket(os.environb))
        if sys.platform == "darwin":
            owner = server.getsockopt(0, 1, 76)[4:8]  # struct xucred of <sys/ucred.h>
        else:
            owner = server.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)[4:8]
    except OSError as error:
        server.close()
        raise NotForwarded(NO_SERVER) from error
    if int.from_bytes(owner, sys.byteorder) != os.geteuid():
        server.close()
        raise NotForwarded("the server belongs to another user")
    return server


def build_frame(args: list[str]) -> bytes:
    """Return the frame of a command.

    Raises:
        NotForwarded: this process has something that cannot be sent, such as a closed stream.
    """
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if None in streams or sys.getfilesystemencoding() != "utf-8":
        raise NotForwarded("a stream is closed, or file names are not UTF-8")
    try:
        folder, found = os.getcwdb(), os.stat(".")  # noqa: PTH109, PTH116 - without pathlib
    except OSError as error:
        raise NotForwarded("the working folder is gone") from error
    mask = os.umask(0o077)
    os.umask(mask)
    terminals = [number for number in (1, 2) if streams[number].isatty()]
    variables = [
        (name, value)
        for name, value in os.environb.items()
        if name in _VARIABLES or name.startswith(_PREFIXES)
    ]
    if terminals and not os.environ.get("COLUMNS", "").isdecimal():
        columns = os.get_terminal_size(terminals[0]).columns or 80
        variables = [*((n, v) for n, v in variables if n != b"COLUMNS"), (b"COLUMNS", b"%d" % columns)]
    fields = [
        identity_of_program(),
        folder,
        b"%d %d" % (found.st_dev, found.st_ino),
        b"%d" % mask,
        bytes(stream.isatty() for stream in streams).translate(b"01" + bytes(254)),
        b" ".join(stream.encoding.encode() for stream in streams),
        b"%d" % len(args),
        *map(os.fsencode, args),
        *(name + b"=" + value for name, value in variables),
    ]
    frame = b"\0".join(fields)
    if len(frame) > _MOST_FRAME:
        raise NotForwarded("the arguments are too long")
    return len(frame).to_bytes(4, "little") + frame


def _run_on_server(server: "socket", args: list[str]) -> int:
    try:
        server.sendall(build_frame(args))
        if server.recv(1) != ACK:
            raise NotForwarded("the server is of another version")
        server.settimeout(None)
        server.sendall(GO)
        printed: list[tuple[int, bytes]] = []
        while (message := _receive_message(server))[0] != END:
            kind, data = message
            if kind == STDIN:
                _send_stdin(server)
            elif kind in (OUT, ERR):
                printed.append((int(kind), data))
            else:
                raise NotForwarded("the command failed there")
    except TimeoutError as error:
        raise NotForwarded("the server is busy") from error
    except OSError as error:
        raise NotForwarded("the server ended") from error
    for number, data in printed:
        _write(number, data)
    return int(message[1])


def _receive_message(server: "socket") -> tuple[bytes, bytes]:
    kind = server.recv(1)
    return kind, _receive(server, int.from_bytes(_receive(server, 4), "little"))


def _receive(server: "socket", count: int) -> bytes:
    parts = []
    while count:
        part = server.recv(min(count, 1 << 20))
        if not part:
            raise NotForwarded("the server ended")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _send_stdin(server: "socket") -> None:
    """Send all of stdin, and put it back, in case this process has to run the command itself."""
    if sys.stdin.isatty():
        raise NotForwarded("stdin is a terminal")
    read = b""
    while len(read) <= _MOST_STDIN and (part := os.read(0, 1 << 16)):
        read += part
    _put_back(read)
    if len(read) > _MOST_STDIN:
        raise NotForwarded("stdin is too long")
    server.sendall(len(read).to_bytes(4, "little") + read)


def _put_back(read: bytes) -> None:
    import io

    class _StdinReadAgain(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def fileno(self) -> int:
            return 0

        def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override] # any buffer
            nonlocal read
            data, read = read[: len(buffer)], read[len(buffer) :]
            data = data or os.read(0, len(buffer))
            buffer[: len(data)] = data
            return len(data)

    sys.stdin = io.TextIOWrapper(io.BufferedReader(_StdinReadAgain()), encoding=sys.stdin.encoding)


def _write(number: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(number, data) :]
        except BrokenPipeError:
            return
        except OSError:
            if number == 1:
                raise
            return

"""`memlog …` as a process of its own that need not start Python and import memlog: see forking_server.py."""

import atexit
import marshal
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import IO, Any

from tests.support.capabilities import give_up_file_capabilities
from tests.support.command_tree import MEMLOG
from tests.support.places import ROOT

Arguments = tuple[str | bytes | Path, ...]
Call = tuple[list[bytes], dict[str, str], str, bool]
"""Arguments, environment and folder, and whether root is bound by modes."""

_SETTINGS_OF_PYTHON = ("PYTHON", "LC_", "LANG", "LD_")
"""Variables that Python reads when it starts."""

_PIPE_BYTES = 65536
"""So much may be written into a pipe before anybody reads it: pipe(7)."""

_BUSY = Lock()


def run_memlog(
    *args: str | bytes | Path,
    input: bytes | None = b"",
    env: Mapping[str, str] = os.environ,
    timeout: float = 60,
    cwd: str | Path | None = None,
    stdout: IO[bytes] | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[bytes]:
    """Run memlog and return what `subprocess.run` does, with captured output.

    stdout: a file to write to, in place of a pipe that is captured.

    The installed program is started where there are `options` of `subprocess.run` other than those of the
    fixture `bound_by_modes`, Python reads other settings, stdin is long, a thread of the test has another
    call running, or the system is not Linux.
    """
    is_bound = options == {"preexec_fn": give_up_file_capabilities}
    is_plain = (
        sys.platform == "linux"
        and (is_bound or not options)
        and _settings_of_python(env) == _settings_of_python(os.environ)
    )
    if is_plain and input is not None and len(input) <= _PIPE_BYTES and _BUSY.acquire(blocking=False):
        try:
            call = ([os.fsencode(arg) for arg in args], dict(env), str(cwd or Path.cwd()), is_bound)
            return _server().run(args, call, input, timeout, stdout)
        finally:
            _BUSY.release()
    return subprocess.run(
        [MEMLOG, *args],
        input=input,
        env=env,
        timeout=timeout,
        cwd=cwd,
        stdout=stdout or subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
        **options,
    )


def _settings_of_python(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_SETTINGS_OF_PYTHON)}


@contextmanager
def forking_program(folder: Path) -> Iterator[Path]:
    """A program `memlog` in `folder`, which a shell may call as often at once as it likes.

    What has a signal sent to it is the installed program: `memlog watch`; on other systems than Linux all.
    """
    if sys.platform != "linux":
        yield MEMLOG
        return
    program, path = folder / "memlog", folder / "calls"
    program.write_text(_PROGRAM.format(python=sys.executable, installed=str(MEMLOG), path=str(path)))
    program.chmod(0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        server = _started(listener)
    try:
        yield program
    finally:
        _kill(server)


_PROGRAM = """#!{python} -ISs
import _socket, array, marshal, os, sys
if "watch" in sys.argv:
    os.execv({installed!r}, sys.argv)
call = os.memfd_create("call")
arguments = [os.fsencode(arg) for arg in sys.argv[1:]]
os.write(call, marshal.dumps((arguments, dict(os.environ), os.getcwd(), False)))
os.lseek(call, 0, os.SEEK_SET)
calls = _socket.socket(_socket.AF_UNIX)
calls.connect({path!r})
calls.sendmsg([b"!"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [0, 1, 2, call]))])
code = int(calls.recv(16))
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""
"""Starts in 10 ms: it imports nothing that is written in Python but `os`."""


def _started(calls: socket.socket) -> "subprocess.Popen[bytes]":
    # Its own streams are pipes, as those of most of its children will be.
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.forking_server", str(calls.fileno())],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        pass_fds=[calls.fileno()],
        start_new_session=True,
    )


def _kill(server: "subprocess.Popen[bytes]") -> None:
    """And the processes that it has forked."""
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
    server.communicate()


class _Server:
    def __init__(self) -> None:
        self._calls, its = socket.socketpair()
        with its:
            self._process = _started(its)
        atexit.register(self.kill)

    def run(
        self, args: Arguments, call: Call, input: bytes, timeout: float, stdout: IO[bytes] | None
    ) -> subprocess.CompletedProcess[bytes]:
        end = time.monotonic() + timeout
        out, err = self._send(call, input, stdout)
        try:
            said = _read_to_the_end(*([err] if out is None else [out, err]), until=end)
            self._calls.settimeout(max(0.01, end - time.monotonic()))
            code = int(self._calls.recv(16))
            return subprocess.CompletedProcess([MEMLOG, *args], code, *([None] if out is None else []), *said)
        except TimeoutError:
            self.kill()
            raise subprocess.TimeoutExpired([MEMLOG, *args], timeout) from None

    def _send(self, call: Call, input: bytes, stdout: IO[bytes] | None) -> tuple[int | None, int]:
        """The descriptors from which to read what the process prints; None for one that is a file."""
        stdin, stderr = os.pipe(), os.pipe()
        out, its_out = os.pipe() if stdout is None else (None, os.dup(stdout.fileno()))
        os.write(stdin[1], input)
        os.close(stdin[1])
        its = [stdin[0], its_out, stderr[1]]
        with tempfile.TemporaryFile() as file:
            marshal.dump(call, file)
            file.seek(0)
            socket.send_fds(self._calls, [b"!"], [*its, file.fileno()])
        for descriptor in its:
            os.close(descriptor)
        return out, stderr[0]

    def kill(self) -> None:
        _kill(self._process)
        self._calls.close()
        atexit.unregister(self.kill)
        _server.cache_clear()


@cache
def _server() -> _Server:
    return _Server()


def _read_to_the_end(*descriptors: int, until: float) -> list[bytes]:
    """What comes through pipes until nobody can write into them any more.

    Raises:
        TimeoutError: somebody still can.
    """
    read = dict.fromkeys(descriptors, b"")
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                data = os.read(key.fd, _PIPE_BYTES)
                read[key.fd] += data
                if not data:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return list(read.values())

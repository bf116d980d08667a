"""The installed `memlog` as a process, and a store to try it on."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from memlog.cli.process import main as main_module
from tests.support.command_tree import MEMLOG
from tests.support.forked_memlog import run_memlog

_TIMEOUT = 60


class Finished(NamedTuple):
    """How a process ended, and what it said."""

    code: int
    out: bytes
    err: bytes

    @property
    def json(self) -> Any:
        """Its output, which must be one JSON document on one line."""
        (document,) = self.lines
        return document

    @property
    def lines(self) -> list[Any]:
        """Its output, which must be JSON documents, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> dict[str, Any]:
        """The error on stderr, which must be one JSON document behind the notes."""
        assert self.out == b""
        notes = [line for line in self.err.splitlines() if not line.startswith(b"memlog: ")]
        (document,) = [json.loads(line) for line in notes]
        assert list(document) == ["error"]
        error: dict[str, Any] = document["error"]
        return error


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the store is to be; nothing stands there yet."""
    return tmp_path / "store"


@pytest.fixture
def empty_store(store: Path) -> Path:
    """The store, made as `memlog init` makes its log: there is one, with nothing in it."""
    (store / "log").mkdir(parents=True)
    return store


@pytest.fixture
def environment(store: Path, tmp_path: Path) -> dict[str, str]:
    """What the processes of a test see: this store, and nothing of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMLOG_", "XDG_"))}
    return kept | {"MEMLOG_STORE": str(store), "HOME": str(tmp_path)}


@pytest.fixture
def memlog(environment: dict[str, str]) -> Callable[..., Finished]:
    """Runs `memlog` with arguments and waits for its end."""

    def run(
        *args: str | bytes | Path,
        env: dict[str, str] | None = None,
        **options: Any,
    ) -> Finished:
        done = run_memlog(*args, env=environment | (env or {}), timeout=_TIMEOUT, **options)
        return Finished(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def memlog_here(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Callable[..., Finished]:
    """Runs `memlog` in this process, for tables of many calls: a process takes ten times as long."""
    for name in os.environ:
        if name.startswith(("MEMLOG_", "XDG_")):
            monkeypatch.delenv(name)

    def run(
        *args: str | bytes | Path, env: dict[str, str] | None = None, input: bytes = b"", cwd: Path = Path()
    ) -> Finished:
        with monkeypatch.context() as patch, tempfile.TemporaryFile("w+") as stdin:
            stdin.buffer.write(input)
            stdin.seek(0)
            for name, value in (environment | (env or {})).items():
                patch.setenv(name, value)
            patch.chdir(cwd)
            patch.setattr(sys, "argv", ["memlog", *map(os.fsdecode, args)])
            patch.setattr(sys, "stdin", stdin)
            code = main_module.run_command_line()
        return Finished(code, *capfdbinary.readouterr())

    return run


@pytest.fixture
def on_a_terminal(environment: dict[str, str]) -> Callable[..., bytes]:
    """Runs `memlog` with its output on a terminal and returns what it wrote there."""

    def run(*args: str, stdin: Any = None, width: int = 0, **variables: str) -> bytes:
        own = ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TERM")
        env = {name: value for name, value in environment.items() if name not in own}
        ours, its = pty.openpty()
        termios.tcsetwinsize(its, (24, width))
        with ThreadPoolExecutor(1) as reader:
            said = reader.submit(lambda: b"".join(iter(lambda: _read(ours), b"")))
            with open(its, "wb") as terminal:
                given = {} if stdin is None else {"input": None, "stdin": stdin}
                run_memlog(*args, env=env | variables, stdout=terminal, timeout=_TIMEOUT, **given)
            shown = said.result(_TIMEOUT)
        os.close(ours)
        return shown

    return run


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that nobody writes to it any more
        return b""


class Pipe:
    """`memlog append` that reads a pipe which stays open."""

    def __init__(self, env: dict[str, str], *args: str) -> None:
        self.process = subprocess.Popen(
            [MEMLOG, "append", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            bufsize=0,
            # Who runs the tests in the background hands down an ignored SIGINT, and Python keeps to it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        self._heard = b""

    def say(self, data: bytes) -> None:
        """Write into the pipe."""
        self._stdin.write(data)

    def hear(self) -> Any:
        """The next line of the answer."""
        while b"\n" not in self._heard:
            ready, _, _ = select.select([self._stdout], [], [], _TIMEOUT)
            assert ready, "no answer came"
            data = os.read(self._stdout.fileno(), 65536)
            assert data, "the process has ended"
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

    def is_silent(self, seconds: float) -> bool:
        """Whether nothing more is said for a while."""
        ready, _, _ = select.select([self._stdout], [], [], seconds)
        return not ready and not self._heard

    def end(self) -> Finished:
        """Close the pipe and wait."""
        out, err = self.process.communicate(timeout=_TIMEOUT)
        return Finished(self.process.returncode, self._heard + out, err)

    def kill(self) -> None:
        """Leave nothing of it behind."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def open_pipe(environment: dict[str, str]) -> Iterator[Callable[..., Pipe]]:
    """Starts `memlog append` with arguments."""
    pipes: list[Pipe] = []

    def start(*args: str) -> Pipe:
        pipes.append(Pipe(environment, *args))
        return pipes[-1]

    yield start
    for pipe in pipes:
        pipe.kill()


@pytest.fixture
def segment(store: Path) -> Callable[..., Path]:
    """Makes a segment of the log by hand."""

    def write(stream: str, data: bytes, filename: str = "2026-02-24.jsonl") -> Path:
        path = store / "log" / stream / filename
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def without_model(tmp_path: Path) -> dict[str, str]:
    """An environment in which no embedding model is found."""
    folder = tmp_path / "no-model"
    folder.mkdir()
    return {"MEMLOG_MODEL": str(folder)}


@pytest.fixture
def read_only(store: Path) -> Iterator[Callable[[], None]]:
    """Takes the right to write in the store's folders, until the test ends."""
    folders: list[Path] = []

    def take() -> None:
        store.mkdir(exist_ok=True)
        folders.extend(path for path in (store, *store.rglob("*")) if path.is_dir())
        for folder in folders:
            folder.chmod(0o500)

    yield take
    for folder in folders:
        folder.chmod(0o700)


class Terminal:
    """A process whose stderr is a terminal."""

    def __init__(self, env: dict[str, str], *args: str | Path, **options: Any) -> None:
        self._terminal, other = os.openpty()
        self._out = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self.process = subprocess.Popen(
            [MEMLOG, *args],
            stdout=self._out,
            stderr=other,
            env=env,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            **options,
        )
        os.close(other)
        self.shown = b""

    def see(self, text: bytes) -> None:
        """Look on until `text` has been shown."""
        while text not in self.shown:
            assert self._look(), f"it ended without {text!r}: {self.shown!r}"

    def end(self) -> Finished:
        """Look on until it has ended."""
        while self._look():
            pass
        self.process.wait(timeout=_TIMEOUT)
        self._out.seek(0)
        return Finished(self.process.returncode, self._out.read(), self.shown)

    def close(self) -> None:
        """Leave nothing of it behind."""
        self.process.kill()
        self.process.wait()
        self._out.close()
        os.close(self._terminal)

    def _look(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], _TIMEOUT)
        assert ready, f"nothing more was shown after {self.shown!r}"
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # on Linux the end of a terminal that nobody has open any more
            return False
        self.shown += data
        return bool(data)


@pytest.fixture
def with_terminal_errors(environment: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    """Starts `memlog` with arguments, with a terminal as stderr."""
    terminals: list[Terminal] = []

    def start(*args: str | Path, **options: Any) -> Terminal:
        terminals.append(Terminal(environment, *args, **options))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()

"""Real memlog processes for the storm tests: append pipes, and commands that run again and again.

Nothing here starts a thread, since kill.py forks.
"""

import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

MEMLOG = Path(sys.executable).parent / "memlog"
"""The installed command."""

Event = dict[str, Any]

_ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("MEMLOG_")}
_PIPE_BLOCK = 64 * 1024
_PATIENCE = 60.0
_STDERR = 2
_SENTENCES = (
    "The lamp in the harbour went out again. ",
    "Шторм пришёл ночью и унёс лодку. ",
    "Myrsky kaatoi vanhan männyn pihalle. ",
    "暴风雨把船吹走了。",
    'A "quoted" path\\with\tescapes and a\nnew line. ',
)


class Ack(NamedTuple):
    """One acknowledgement: the event's id, and where its line is said to be."""

    id: str
    stream: str
    segment: str
    offset: int


class Failed(AssertionError):
    """A process did what none may do."""


def message(event_id: str, chat_id: str, content: str) -> Event:
    return {
        "type": "message",
        "id": event_id,
        "channel": "storm",
        "chat_id": chat_id,
        "role": "user",
        "content": content,
    }


def text(rng: random.Random, size: int) -> str:
    """Text of `size` bytes, give or take a character, in several scripts."""
    block = "".join(rng.choices(_SENTENCES, k=8)).encode()
    return (block * (size // len(block) + 1))[:size].decode(errors="ignore")


def run_memlog(store: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [MEMLOG, "--store", store, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            env=_ENVIRONMENT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"memlog {' '.join(arguments)} did not end in {_PATIENCE:.0f} seconds") from error


def ask(store: Path, *arguments: str) -> dict[str, Any]:
    """The JSON that a command answers; it must end well."""
    done = run_memlog(store, *arguments, "--json")
    return _answer(arguments, done.returncode, done.stdout, done.stderr)


def _answer(arguments: Iterable[str], code: int, output: bytes, errors: bytes) -> dict[str, Any]:
    if code != 0:
        raise Failed(f"memlog {' '.join(arguments)}: exit {code}: {errors.decode(errors='replace')}")
    answer: dict[str, Any] = json.loads(output)
    return answer


class Running(Protocol):
    """A process, as `subprocess.Popen` is one."""

    pid: int
    returncode: Any

    def poll(self) -> int | None: ...
    def wait(self, timeout: float) -> int: ...
    def send_signal(self, number: int) -> None: ...


Start = Callable[[Sequence[str | Path], int, int, int], Running]
"""Starts a command with these arguments and files for its stdin, stdout and stderr."""


def installed(arguments: Sequence[str | Path], stdin: int, stdout: int, stderr: int) -> Running:
    """Start the command as it is installed."""
    return subprocess.Popen(arguments, stdin=stdin, stdout=stdout, stderr=stderr, env=_ENVIRONMENT)


class LineReader:
    """The lines that come through a pipe, as far as they have come. Reading never waits."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.at_end = False
        self._rest = b""

    def lines(self) -> list[bytes]:
        """Whole lines that have come since the last call; a part of one waits for the rest of it."""
        found: list[bytes] = []
        try:
            while data := os.read(self.fd, _PIPE_BLOCK):
                *whole, self._rest = (self._rest + data).split(b"\n")
                found += whole
            self.at_end = True
        except BlockingIOError:
            pass
        return found

    def remaining_lines(self) -> list[bytes]:
        """All whole lines up to the end of the pipe, whose writer has ended or will."""
        found = self.lines()
        while not self.at_end:
            if not select.select([self.fd], [], [], _PATIENCE)[0]:
                raise Failed(f"nothing came for {_PATIENCE:.0f} seconds, and no end")
            found += self.lines()
        return found


class AppendPipe:
    """A running `memlog append`, fed JSON lines and answered line by line.

    submitted: what it was given, by id.
    acknowledged: its answers, recorded as they are read.
    refused: what it answered instead where it could not store a line.
    """

    def __init__(self, store: Path, start: Start = installed) -> None:
        self.submitted: dict[str, Event] = {}
        self.acknowledged: list[Ack] = []
        self.refused: list[dict[str, Any]] = []
        its_input, our_output = os.pipe()
        our_input, its_output = os.pipe()
        self.process = start([MEMLOG, "--store", store, "append"], its_input, its_output, _STDERR)
        os.close(its_input)
        os.close(its_output)
        os.set_blocking(our_output, False)
        self._input = os.fdopen(our_output, "wb", buffering=0)
        self._outgoing = bytearray()
        self._reader = LineReader(our_input)

    def fileno(self) -> int:
        """Of its answers, for `select`."""
        return self._reader.fd

    @property
    def unanswered(self) -> int:
        return len(self.submitted) - len(self.acknowledged) - len(self.refused)

    @property
    def wants_to_write(self) -> bool:
        return bool(self._outgoing)

    def submit(self, events: Iterable[Event]) -> None:
        """Queue events; `turn` writes them. No id may come twice to one pipe."""
        for event in events:
            self.submitted[event["id"]] = event
            self._outgoing += json.dumps(event, ensure_ascii=False).encode() + b"\n"

    def turn(self) -> None:
        """Write what the pipe takes now, and record the answers that have come."""
        self._write()
        self._record(self._reader.lines())
        if self._reader.at_end:
            raise Failed(f"memlog append ended by itself with {self.process.wait(_PATIENCE)}")

    def finish(self) -> int:
        """Write the rest, end its input, record the remaining answers; its exit code."""
        while self._outgoing:
            wait_for_any([self])
            self.turn()
        self._input.close()
        self._record(self._reader.remaining_lines())
        return self._ended()

    def kill(self) -> int:
        """SIGKILL. What it had written to its stdout before is still read: it counts as acknowledged."""
        self.process.send_signal(signal.SIGKILL)
        self._input.close()
        self._record(self._reader.remaining_lines())
        return self._ended()

    def _write(self) -> None:
        try:
            while self._outgoing:
                del self._outgoing[: os.write(self._input.fileno(), self._outgoing[:_PIPE_BLOCK])]
        except (BlockingIOError, BrokenPipeError):
            # A broken pipe has no answers either, and that is reported.
            pass

    def _record(self, lines: list[bytes]) -> None:
        for line in lines:
            answer = json.loads(line)
            if "error" in answer:
                self.refused.append(answer)
            else:
                self.acknowledged.append(ack_of(answer))

    def _ended(self) -> int:
        code = self.process.wait(_PATIENCE)
        os.close(self._reader.fd)
        return code


def ack_of(answer: dict[str, Any]) -> Ack:
    return Ack(answer["id"], answer["stream"], answer["segment"], answer["offset"])


def wait_for_any(pipes: Iterable[AppendPipe], seconds: float = 0.05) -> None:
    """Until one of the pipes has an answer, or takes what waits to be written."""
    pipes = list(pipes)
    writing = [pipe._input for pipe in pipes if pipe.wants_to_write]
    select.select(pipes, writing, [], seconds)


class Loop:
    """A command that is started again whenever it has ended; each run must end well.

    choose: the arguments of the next run.
    answers: what the runs printed, unless it was taken.
    """

    def __init__(self, store: Path, choose: Callable[[], tuple[str, ...]], start: Start = installed) -> None:
        self.answers: list[dict[str, Any]] = []
        self._store = store
        self._choose = choose
        self._begin = start
        self._start()

    @property
    def process(self) -> Running:
        """The run that goes on."""
        return self._process

    def turn(self) -> None:
        """Take the answer of a run that has ended, and start the next one."""
        if self._process.poll() is not None:
            self._take_answer()
            self._start()

    def take_answers(self) -> list[dict[str, Any]]:
        """What the runs have printed since the last call."""
        taken, self.answers = self.answers, []
        return taken

    def finish_run(self) -> None:
        """Wait for the run that goes on, and start the next one."""
        self._wait()
        self.turn()

    def finish(self) -> None:
        """Wait for the run that goes on, and start no other."""
        self._wait()
        self._take_answer()

    def kill(self) -> int:
        """SIGKILL to the run that goes on."""
        self._process.send_signal(signal.SIGKILL)
        self._folder.cleanup()
        return self._process.wait(_PATIENCE)

    def _start(self) -> None:
        self._arguments = (*self._choose(), "--json")
        self._folder = tempfile.TemporaryDirectory()
        # Files and not pipes: nobody has to read them while the command runs.
        self._output, self._errors = Path(self._folder.name, "stdout"), Path(self._folder.name, "stderr")
        with (
            open(os.devnull, "rb") as nothing,
            self._output.open("wb") as output,
            self._errors.open("wb") as errors,
        ):
            arguments = [MEMLOG, "--store", self._store, *self._arguments]
            self._process = self._begin(arguments, nothing.fileno(), output.fileno(), errors.fileno())

    def _wait(self) -> None:
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired as error:
            what = " ".join(self._arguments)
            raise Failed(f"memlog {what} did not end in {_PATIENCE:.0f} seconds") from error

    def _take_answer(self) -> None:
        with self._folder:
            output, errors = self._output.read_bytes(), self._errors.read_bytes()
        self.answers.append(_answer(self._arguments, self._process.returncode, output, errors))

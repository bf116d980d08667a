"""Those who work at a store in kill.py until they are killed, and the one who reads beside them.

Real commands, and forked children, which call the library and cost no start-up. A child shares nothing
with its parent but the pipe that it speaks through: the parent has no SQLite file open and holds no lock.
"""

import json
import os
import random
import select
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Protocol

import msgspec

from memlog.eventlog.codec.encode import draft_event
from memlog.eventlog.errors import MemlogError
from memlog.eventlog.log.writer import Log
from memlog.projector.lifecycle import Projector
from memlog.projector.sqlite import choose_binding
from memlog.projector.text.tokens import count_tokens
from tests.crash.storms.forked_commands import ForkedCommand, close_what_the_parent_has, load_commands
from tests.support.storm_workload import (
    Ack,
    AppendPipe,
    Event,
    Failed,
    LineReader,
    Loop,
    Start,
    ack_of,
    installed,
    message,
    text,
)

CHATS = ("one", "two", "three", "four")
SMALLEST = 50
LARGEST = 256 * 1024

_LONG = "x"
"""The ids of long events begin with this."""

_MUCH = 16 * 1024
_QUERY_PAUSE = 0.2
_LONGEST_PAUSE = 0.1

Say = Callable[[Any], None]


class Talking(Protocol):
    """What `select` waits for."""

    def fileno(self) -> int: ...


def event_of(seed: str, name: str) -> Event:
    """The event of an id: who writes it and who checks it make the same one.

    An id is a word, and the first one of its message, so that it can be searched for.
    """
    rng = random.Random(f"{seed} {name}")
    if name.startswith(_LONG):
        # All of one life in one chat: so they are one write, which takes milliseconds.
        chat = _chat_of_life(int(name[1:6]))
        return _message(name, chat, rng, rng.randint(LARGEST // 2, LARGEST))
    match rng.randrange(16):
        case 0:
            memory_id = f"memory-{rng.randrange(5)}"
            content = text(rng, rng.randrange(SMALLEST, 2000))
            return {"type": "memory_saved", "id": name, "memory_id": memory_id, "content": content}
        case 1:
            key = f"key-{rng.randrange(5)}"
            return {"type": "core_memory_updated", "id": name, "section": "user", "key": key, "value": name}
        case 2:
            return {"type": "session_break", "id": name, "channel": "storm", "chat_id": rng.choice(CHATS)}
    # Most are short, and some are nearly as long as the longest.
    return _message(name, rng.choice(CHATS), rng, int(SMALLEST * (LARGEST / SMALLEST) ** rng.random() ** 6))


def _message(name: str, chat: str, rng: random.Random, size: int) -> Event:
    # A long content takes seconds to be cut into passages and indexed; a long meta costs nothing.
    is_told = size < 1000 or rng.random() < 0.01
    said, output = (size, 0) if is_told else (200, size - 200)
    event = message(name, chat, f"{name} {text(rng, said - len(name) - 1)}")
    return event | ({"meta": {"tool": "storm", "output": text(rng, output)}} if output else {})


class Worker:
    """Is killed in the midst of its work.

    aimed: how many of its kills wait until it has become busy, 0 to 1.
    soon: a kill at most so many seconds after that is likely to interrupt it.
    submitted, acknowledged: what it was to append, by id, and what it has appended.
    """

    kind: ClassVar[str]
    aimed: ClassVar[float] = 0.5
    soon: ClassVar[float]

    def __init__(self) -> None:
        self.submitted: list[str] = []
        self.acknowledged: list[Ack] = []

    @property
    def is_busy(self) -> bool:
        """Whether it is at what a kill should interrupt."""
        return len(self.submitted) > len(self.acknowledged)

    def talking(self) -> list[Talking]:
        return []

    def wait_for_the_moment(self, rng: random.Random) -> None:
        """Called when it has just become busy; then it is killed."""
        time.sleep(rng.random() * self.soon)

    def turn(self) -> None:
        """Give it work, and take what it has done."""
        raise NotImplementedError

    def kill(self) -> int:
        """SIGKILL; take what it had done before. Its exit code, as of `Popen`."""
        raise NotImplementedError


class Child:
    """A forked process that does `work`; what it says comes through a pipe, one JSON value a line.

    It keeps open the files of the parent that `keeps` names, and no other.
    """

    def __init__(self, work: Callable[[Say], None], *keeps: int) -> None:
        reading, writing = os.pipe()
        self._pid = os.fork()  # noqa: TID251 - has no threads
        if self._pid == 0:
            _live(work, writing, keeps)
        os.close(writing)
        self._reader = LineReader(reading)

    def fileno(self) -> int:
        return self._reader.fd

    def heard(self) -> list[Any]:
        """What it has said since the last call."""
        return _heard(self._reader.lines())

    def kill(self) -> tuple[int, list[Any]]:
        """Its exit code, and what it had still said."""
        os.kill(self._pid, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        lines = self._reader.remaining_lines()
        os.close(self._reader.fd)
        return os.waitstatus_to_exitcode(status), _heard(lines)


def load_what_children_need() -> None:
    """So that no child pays for it."""
    load_commands()
    choose_binding()
    count_tokens("")


def _live(work: Callable[[Say], None], pipe: int, keeps: tuple[int, ...]) -> NoReturn:
    try:
        close_what_the_parent_has(pipe, *keeps)
        work(lambda value: _say(pipe, value))
    except BaseException:
        _say(pipe, {"failed": traceback.format_exc()})
    finally:
        os._exit(1)


def _say(pipe: int, value: Any) -> None:
    os.write(pipe, msgspec.json.encode(value) + b"\n")


def _heard(lines: list[bytes]) -> list[Any]:
    values = [json.loads(line) for line in lines]
    for value in values:
        if "failed" in value:
            raise Failed(value["failed"])
    return values


class ForkedWorker(Worker):
    """Is a child of this process."""

    _child: Child

    def talking(self) -> list[Talking]:
        return [self._child]

    def turn(self) -> None:
        self._note(self._child.heard())

    def kill(self) -> int:
        code, heard = self._child.kill()
        self._note(heard)
        return code

    def _note(self, heard: list[Any]) -> None:
        """Take what the child has said."""
        raise NotImplementedError


class ForkedWriter(ForkedWorker):
    """Says what it will append, appends it by the library, and says where it stands."""

    kind = "forked writer"
    soon = 0.004

    first_letter = "w"
    batches = (1, 8)
    longest_pause = _LONGEST_PAUSE

    def __init__(self, store: Path, seed: str, life: int, retries: list[str]) -> None:
        super().__init__()
        self._log = Log(store)
        self._seed = seed
        self._life = life
        self._names = _names(self.first_letter, life)
        self._rng = random.Random(f"{seed} {life}")
        its_end, self._bell = os.pipe()
        self._child = Child(lambda say: self._append(say, retries, its_end), its_end)
        os.close(its_end)

    def kill(self) -> int:
        os.close(self._bell)
        return super().kill()

    def _append(self, say: Say, batch: list[str], bell: int) -> None:
        """What the child does, after a pause each, or when the bell rings."""
        while True:
            if select.select([bell], [], [], self._rng.random() * self.longest_pause)[0]:
                os.read(bell, 1)
            batch = batch or [next(self._names) for _ in range(self._rng.randint(*self.batches))]
            drafts = [draft_event(event_of(self._seed, name)) for name in batch]
            say({"submitted": batch})
            for outcome in self._log.append_drafts_individually(drafts):
                if isinstance(outcome, MemlogError):
                    raise outcome
                say(outcome)
            batch = []

    def _note(self, heard: list[Any]) -> None:
        for value in heard:
            if "submitted" in value:
                self.submitted += value["submitted"]
            else:
                self.acknowledged.append(ack_of(value))


class LongLinesWriter(ForkedWriter):
    """Makes long writes alone, since it is these that a kill cuts short."""

    kind = "forked writer of long lines"
    aimed = 0.8
    soon = 0.2

    first_letter = _LONG
    batches = (3, 3)
    longest_pause = 2.0

    @property
    def is_busy(self) -> bool:
        return True

    def wait_for_the_moment(self, rng: random.Random) -> None:
        """Until its segment grows: most of the write is still to come."""
        folder = self._log.path / "conversations" / f"storm_{_chat_of_life(self._life)}"
        segment = max(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns, default=None)
        before = _size_of(segment)
        os.write(self._bell, b"!")
        end = time.monotonic() + self.soon
        while _size_of(segment) < before + _MUCH and time.monotonic() < end:
            pass


def _size_of(segment: Path | None) -> int:
    return segment.stat().st_size if segment else 0


def _chat_of_life(life: int) -> str:
    return CHATS[life % len(CHATS)]


def _names(first_letter: str, life: int) -> Iterator[str]:
    return (f"{first_letter}{life:05}n{number:05}" for number in count())


class PipeWriter(Worker):
    """Appends by a real `memlog append`."""

    kind = "memlog append"
    soon = 0.004

    start: Start = staticmethod(installed)

    def __init__(self, store: Path, seed: str, life: int, retries: list[str]) -> None:
        super().__init__()
        self._seed = seed
        self._names = _names("w", life)
        self._rng = random.Random(f"{seed} {life}")
        self._next_burst = 0.0
        self._pipe = AppendPipe(store, self.start)
        self._submit(retries)

    def talking(self) -> list[Talking]:
        return [self._pipe]

    def turn(self) -> None:
        if self._pipe.unanswered == 0 and time.monotonic() >= self._next_burst:
            self._submit([next(self._names) for _ in range(self._rng.randint(1, 8))])
            self._next_burst = time.monotonic() + self._rng.random() * _LONGEST_PAUSE
        self._pipe.turn()
        self._note()

    def kill(self) -> int:
        code = self._pipe.kill()
        self._note()
        return code

    def _submit(self, names: list[str]) -> None:
        self._pipe.submit(event_of(self._seed, name) for name in names)
        self.submitted += names

    def _note(self) -> None:
        self.acknowledged = self._pipe.acknowledged
        if self._pipe.refused:
            raise Failed(f"memlog append: {self._pipe.refused[0]}")


class ForkedPipeWriter(PipeWriter):
    """Appends by a `memlog append` that costs no start-up."""

    kind = "forked memlog append"
    start = ForkedCommand


class ForkedProjector(ForkedWorker):
    """Catches up by the library, again and again, and now and then builds a generation from scratch."""

    kind = "forked projector"
    soon = 0.05

    def __init__(self, store: Path, seed: str, life: int) -> None:
        super().__init__()
        self._is_busy = False
        self._child = Child(lambda say: _project_on(say, store, random.Random(f"{seed} {life}")))

    @property
    def is_busy(self) -> bool:
        return self._is_busy

    def _note(self, heard: list[Any]) -> None:
        for value in heard:
            self._is_busy = value["is_busy"]
            _check_notes(value["notes"])


def _project_on(say: Say, store: Path, rng: random.Random) -> None:
    projector = Projector(store)
    while True:
        say({"is_busy": True, "notes": []})
        done = projector.rebuild_generation("asked for") if rng.random() < 0.15 else projector.catch_up()
        say({"is_busy": False, "notes": done.read.notes})
        if rng.random() < 0.3:
            projector.close()
        time.sleep(rng.random() * _LONGEST_PAUSE)


class CommandProjector(Worker):
    """Is a real `memlog project`, now and again, and at times one from scratch."""

    kind = "memlog project"
    soon = 0.4

    start: Start = staticmethod(installed)

    def __init__(self, store: Path, seed: str, life: int) -> None:
        super().__init__()
        self._rng = random.Random(f"{seed} {life}")
        self._next_run = 0.0
        self._loop = Loop(store, self._arguments, self.start)

    @property
    def is_busy(self) -> bool:
        return self._loop.process.poll() is None

    def turn(self) -> None:
        if self.is_busy:
            self._next_run = time.monotonic() + self._rng.random() * _LONGEST_PAUSE
        elif time.monotonic() >= self._next_run:
            self._loop.turn()
        for answer in self._loop.take_answers():
            _check_notes(answer["notes"])

    def kill(self) -> int:
        return self._loop.kill()

    def _arguments(self) -> tuple[str, ...]:
        from_scratch = ("--from-scratch",) if self._rng.random() < 0.15 else ()
        return ("project", "--no-embed", *from_scratch)


class ForkedCommandProjector(CommandProjector):
    """Is a `memlog project` that costs no start-up."""

    kind = "forked memlog project"
    soon = 0.05

    start = ForkedCommand


def _check_notes(notes: list[str]) -> None:
    """No kill rewrites history, so no stream is replayed."""
    if notes:
        raise Failed(f"project: {'; '.join(notes)}")


class Reader:
    """Asks for what was just acknowledged by `memlog query`; it is not killed, and never to fail.

    pick: the id of an acknowledged message; None where there is none yet.
    """

    def __init__(self, store: Path, pick: Callable[[], str | None]) -> None:
        self.answered = 0
        self._pick = pick
        self._next_turn = 0.0
        self._loop = Loop(store, self._arguments, ForkedCommand)

    def turn(self) -> None:
        if time.monotonic() >= self._next_turn:
            self._next_turn = time.monotonic() + _QUERY_PAUSE
            requested = self._asked_for
            self._loop.turn()
            self._check(requested)

    def finish(self) -> None:
        """Wait for the last answer."""
        self._loop.finish()
        self._check(self._asked_for)

    def kill(self) -> None:
        self._loop.kill()

    def _arguments(self) -> tuple[str, ...]:
        self._asked_for = self._pick()
        return ("query", self._asked_for or "harbour", "--mode", "text")

    def _check(self, requested: str | None) -> None:
        for answer in self._loop.take_answers():
            self.answered += 1
            if answer["silent"]:
                raise Failed(f"query: {answer['silent']}")
            is_found = requested in [hit["id"] for hit in answer["hits"]]
            # A query that could not catch up in time says so.
            if requested and answer["synced"] and not is_found:
                raise Failed(f"query: {requested} was acknowledged, and is not found")

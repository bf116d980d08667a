"""Commands on a disk of which the n-th call fails: how they end, and what the next run makes of it."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import pytest
from failing_disk import FAILURES, FailingDisk
from memlog_here import Ended, memlog_here
from power_cuts import SimulatedDisk, materialised
from recovery import event_problems, log_bytes, message
from simulation import in_memory

import memlog
import memlog.cli.append
from memlog.cli.failures import EXIT_CODES
from memlog.eventlog.events import Message
from memlog.eventlog.log import Log

NO_PATIENCE = {"MEMLOG_LOCK_TIMEOUT": "0.01"}
_FAULT_OF_MEMLOG = 70
_LINES_A_COMMIT = 3


def _nothing(store: Path) -> None:
    """No store stands yet."""


def _a_log(store: Path) -> None:
    Log(store).append(BEFORE[:2])
    Log(store).append([b'{"type":"memory_saved","id":"m","content":"tea"}'])


def _a_read_model_behind_its_log(store: Path) -> None:
    _a_log(store)
    with memlog.open(store) as opened:
        opened.project(embed=False)
    Log(store).append(BEFORE[2:])


@dataclass(frozen=True)
class Command:
    """prepare: makes what stands before. events: that are appended, by `arguments` or from stdin."""

    arguments: tuple[str, ...]
    prepare: Callable[[Path], None]
    events: tuple[Message, ...] = ()

    @property
    def input(self) -> bytes:
        """What stdin holds."""
        lines = [
            {
                "type": "message",
                "channel": "x",
                "chat_id": "1",
                "role": "user",
                "content": "tea",
                "id": each.id,
            }
            for each in self.events
        ]
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


BEFORE = tuple(message(name) for name in "abcd")
SOME = tuple(message(f"n{number}") for number in range(7))
OPTIONS = ("--chat", "x:1", "--role", "user", "--id", "n0", "--content", "tea")
COMMANDS = {
    "append by options": Command(("append", "message", *OPTIONS), _nothing, SOME[:1]),
    "append a batch": Command(("append",), _a_log, SOME[:3]),
    "append in three commits": Command(("append",), _nothing, SOME),
    "project": Command(("project", "--no-embed", "--json"), _a_log),
    "project on": Command(("project", "--no-embed", "--json"), _a_read_model_behind_its_log),
}


@dataclass
class Failing:
    """How often a call failed, by exit code of the command, and what was wrong."""

    codes: Counter[int] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """In which a call failed."""
        return self.codes.total()


def fail_each_call(name: str, failures: Callable[[int], Iterable[tuple[str, bool]]]) -> Failing:
    """Run a command once for each of its calls, and each of `failures` of it.

    failures: of the n-th call: what fails it, and whether all later ones fail, too.
    """
    command, found = COMMANDS[name], Failing()
    with in_memory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(memlog.cli.append, "_COMMIT_LINES", _LINES_A_COMMIT)
        prepared = folder / "prepared"
        prepared.mkdir()
        command.prepare(prepared / "store")
        whole = _run(command, prepared, folder / "run", FailingDisk(0, "EIO", for_ever=False))
        digest = "" if command.events else _digest(whole.store)
        for number in range(1, whole.disk.calls + 1):
            for failure, for_ever in failures(number):
                disk = FailingDisk(number, failure, for_ever=for_ever)
                run = _run(command, prepared, folder / "run", disk)
                if disk.struck:
                    found.codes[run.ended.code] += 1
                    what = f"{name}: call {number} {failure}{' for ever' if for_ever else ''}"
                    found.violations += [f"{what}: {problem}" for problem in run.problems(digest)]
    return found


def every(number: int) -> Iterator[tuple[str, bool]]:
    """Each failure, once and for ever."""
    yield from product(FAILURES, (False, True))


def by_turns(number: int) -> Iterator[tuple[str, bool]]:
    """One of the failures, once or for ever: another one for each call."""
    yield FAILURES[number % len(FAILURES)], number // len(FAILURES) % 2 == 1


@dataclass
class _Run:
    """A command that has ended, on a disk that failed; `before` is the log as it stood."""

    command: Command
    root: Path
    simulated: SimulatedDisk
    disk: FailingDisk
    before: dict[Path, bytes]
    ended: Ended

    def problems(self, digest: str) -> list[str]:
        """What is wrong with how it ended, and with the next run of it, on a disk that works.

        digest: of the read model after a projection.
        """
        return [
            *_ending_problems(self.ended),
            *(self._append_problems() if self.command.events else self._project_problems(digest)),
        ]

    def _append_problems(self) -> list[str]:
        acknowledged = [] if self.ended.code and not self.ended.out else self.ended.acknowledged
        complete = len(acknowledged) == len(self.command.events)
        submitted = {each.id: each for each in (*BEFORE, *self.command.events)}
        problems = [] if complete or self.ended.code else [f"exit 0, and {acknowledged} acknowledged"]
        problems += self._durability_problems(submitted, acknowledged)
        again = self._again()
        if again.acknowledged != [each.id for each in self.command.events]:
            problems.append(f"the next run: exit {again.code}, {again.err.decode()}")
        return problems + event_problems(self.store, submitted, [*acknowledged, *again.acknowledged])

    def _durability_problems(self, submitted: dict[str, Message], acknowledged: list[str]) -> list[str]:
        """What was acknowledged must be there if the power is cut now."""
        for operation in self.disk.trace:
            self.simulated.play(operation)
        after_cut = self.root.with_name("after-cut")
        materialised(self.simulated.least(), after_cut)
        problems = event_problems(after_cut / "store", submitted, acknowledged)
        shutil.rmtree(after_cut)
        return [f"after a power cut {problem}" for problem in problems]

    def _project_problems(self, digest: str) -> list[str]:
        again, standing = self._again(), _digest(self.store)
        problems = [] if again.code == 0 else [f"the next run: exit {again.code}, {again.err.decode()}"]
        if standing != digest:
            problems.append("the read model is unlike a replay")
        if self.ended.code == 0 and json.loads(self.ended.out)["rows"] != json.loads(again.out)["rows"]:
            problems.append(f"exit 0, and not all is projected: {self.ended.out.decode()}")
        return problems + ([] if log_bytes(self.store) == self.before else ["the log was touched"])

    def _again(self) -> Ended:
        return _here(self.command, self.store)

    @property
    def store(self) -> Path:
        return self.root / "store"


def _run(command: Command, prepared: Path, root: Path, disk: FailingDisk) -> _Run:
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(prepared, root)
    simulated, before = SimulatedDisk(root), log_bytes(root / "store")
    with pytest.MonkeyPatch.context() as monkeypatch:
        disk.install(monkeypatch)
        ended = _here(command, root / "store")
    return _Run(command, root, simulated, disk, before, ended)


def _digest(store: Path) -> str:
    with memlog.open(store) as opened:
        return opened.digest()


def _here(command: Command, store: Path) -> Ended:
    return memlog_here("--store", store, *command.arguments, input=command.input, env=NO_PATIENCE)


def _ending_problems(ended: Ended) -> list[str]:
    said = ended.out + ended.err
    return [
        *(
            []
            if ended.code in EXIT_CODES and ended.code != _FAULT_OF_MEMLOG
            else [f"exit {ended.code}: {said!r}"]
        ),
        *(["a traceback"] if b"Traceback" in said else []),
        *(["no word of why"] if ended.code and not said else []),
    ]

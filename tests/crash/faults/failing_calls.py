"""Commands on a disk of which the n-th call fails: how they end, and what the next run makes of it."""

import gc
import json
import os
import random
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import pytest

import memlog
import memlog.cli.commands.append
from memlog.cli.process.error_handler import EXIT_CODES
from memlog.eventlog import timestamps
from memlog.eventlog.events import Message
from memlog.eventlog.log.writer import Log
from tests.crash.faults.failing_disk import ALIKE, FAILURES, FailingDisk, can_meet
from tests.crash.faults.memlog_here import Ended, memlog_here
from tests.crash.faults.power_cuts import SimulatedDisk, State, materialised
from tests.crash.faults.projecting_scenarios import relative_log
from tests.crash.faults.recovery import event_problems, message
from tests.crash.faults.simulation import in_memory

NO_PATIENCE = {"MEMLOG_LOCK_TIMEOUT": "0.01"}
_FAULT_OF_MEMLOG = 70
_LINES_A_COMMIT = 3

EVERY = tuple(product(FAILURES, (False, True)))
"""Each failure, of one call alone, and of all later ones, too."""

Problems = TypeVar("Problems")


def _nothing(store: Path) -> None:
    """No store stands yet."""


def _a_log(store: Path) -> None:
    Log(store).append(BEFORE[:2])
    Log(store).append([b'{"type":"memory_saved","id":"m","content":"tea"}'])


def _one_memory(store: Path) -> None:
    Log(store).append([b'{"type":"memory_saved","id":"m","content":"tea"}'])


def _a_read_model_behind_its_log(store: Path) -> None:
    _a_log(store)
    with memlog.open(store) as opened:
        opened.maintenance.project(embed=False)
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
    "project": Command(("project", "--no-embed", "--json"), _one_memory),
    "project on": Command(("project", "--no-embed", "--json"), _a_read_model_behind_its_log),
}


@dataclass
class Failing:
    """How often a call failed, by exit code of the command, and what was wrong.

    alike: how many of these were not run, since another run has shown how they go.
    """

    codes: Counter[int] = field(default_factory=Counter)
    alike: int = 0
    violations: list[str] = field(default_factory=list)

    @property
    def runs(self) -> int:
        """In which a call failed, those that are alike among them."""
        return self.codes.total()


def fail_each_call(
    name: str, failures: Sequence[tuple[str, bool]] = EVERY, *, everywhere: Collection[str] = FAILURES
) -> Failing:
    """Run a command once for each of its calls, and each of `failures` that this call can meet.

    failures: what fails the call, and whether all later ones fail, too.
    everywhere: those of them that fail a call of the same place again.
    """
    found, seen = Failing(), dict[tuple[int, bool], int]()
    tried = set[Hashable]()
    with in_memory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(memlog.cli.commands.append, "_COMMIT_LINES", _LINES_A_COMMIT)
        bench = _Bench(COMMANDS[name], folder, _fixed_names(monkeypatch))
        for (number, call), (failure, for_ever) in product(enumerate(bench.calls, start=1), failures):
            # A call that cannot be short goes well: that is the whole run, or that of the next write.
            if not can_meet(call.name, failure):
                continue
            if failure not in everywhere and (call, failure, for_ever) in tried:
                continue
            tried.add((call, failure, for_ever))
            # Whatever memlog did not look at cannot have changed what it did.
            if failure in ALIKE and (number, for_ever) in seen:
                found.codes[seen[number, for_ever]] += 1
                found.alike += 1
                continue
            disk = FailingDisk(number, failure, for_ever=for_ever)
            ended, problems = bench.run_and_again(disk)
            if failure in ALIKE and not disk.tells_alike_apart:
                seen[number, for_ever] = ended.code
            found.codes[ended.code] += 1
            what = f"{name}: call {number} {failure}{' for ever' if for_ever else ''}"
            found.violations += [f"{what}: {problem}" for problem in problems]
    return found


def _fixed_names(monkeypatch: pytest.MonkeyPatch) -> random.Random:
    """Stop the clock, and return what names are drawn from, so that equal runs leave equal files."""
    chance = random.Random()
    day = time.struct_time((2026, 2, 24, 10, 15, 0, 1, 55, 0))
    monkeypatch.setattr(timestamps, "now", lambda: "2026-02-24T10:15:00.000Z")
    monkeypatch.setattr(time, "gmtime", lambda *_: day)
    monkeypatch.setattr(secrets, "token_hex", lambda length: chance.randbytes(length).hex())
    return chance


class _Bench:
    """Runs a command again and again, each time on a copy of the same store, and on a disk of its own.

    calls: what the command asks of a disk that works.
    """

    def __init__(self, command: Command, folder: Path, names: random.Random) -> None:
        self._command, self._names = command, names
        self._root, self._prepared, self._cut = (folder / name for name in ("run", "prepared", "cut"))
        self._store = self._root / "store"
        self._known: dict[Hashable, Any] = {}
        self._root.mkdir()
        command.prepare(self._store)
        self._log = relative_log(self._store)
        shutil.copytree(self._root, self._prepared)
        gc.collect()  # what other tests left open is not to be closed during a run, which counts descriptors
        disk = FailingDisk(0, "EIO", for_ever=False)
        self._run(disk)
        self.calls = disk.called
        self._digest = "" if command.events else _digest(self._store)

    def run_and_again(self, disk: FailingDisk) -> tuple[Ended, list[str]]:
        """How the command ended, and what is wrong with that, and with its next run, on a disk that works."""
        ended, simulated = self._run(disk)
        assert disk.struck
        return ended, [
            *_ending_problems(ended),
            *(
                self._append_problems(ended, simulated)
                if self._command.events
                else self._project_problems(ended)
            ),
        ]

    def _run(self, disk: FailingDisk) -> tuple[Ended, "SimulatedDisk"]:
        self._put_back()
        self._names.seed(0)
        simulated = SimulatedDisk(self._root)
        standing = len(os.listdir("/dev/fd"))
        with pytest.MonkeyPatch.context() as monkeypatch:
            disk.install(monkeypatch)
            ended = self._here()
        left_open = len(os.listdir("/dev/fd")) - standing
        assert not (self._command.events and left_open), "an append leaves a file open"
        for operation in disk.trace if self._command.events else ():
            simulated.play(operation)
        return ended, simulated

    def _put_back(self) -> None:
        if self._command.events:
            shutil.rmtree(self._root)
            shutil.copytree(self._prepared, self._root)
            return
        # The log stays: checkpoints know its files by their inodes, and would have it replayed.
        for path in self._store.iterdir():
            if path.is_dir() and path.name != "log":
                shutil.rmtree(path)
            elif path.name != "log":
                path.unlink()
        shutil.copytree(self._prepared, self._root, ignore=lambda *_: ["log"], dirs_exist_ok=True)

    def _append_problems(self, ended: Ended, simulated: SimulatedDisk) -> list[str]:
        acknowledged = ended.acknowledged if ended.out or not ended.code else []
        complete = len(acknowledged) == len(self._command.events)
        cut = simulated.least()
        return [
            *([] if complete or ended.code else [f"exit 0, and {acknowledged} acknowledged"]),
            *self._once((*cut.items(), *acknowledged), lambda: self._durability_problems(cut, acknowledged)),
            *self._once((self._tree(), *acknowledged), lambda: self._next_append_problems(acknowledged)),
        ]

    def _durability_problems(self, cut: State, acknowledged: list[str]) -> list[str]:
        """What was acknowledged must be there if the power is cut now."""
        materialised(cut, self._cut)
        problems = event_problems(self._cut / "store", self._submitted, acknowledged)
        shutil.rmtree(self._cut)
        return [f"after a power cut {problem}" for problem in problems]

    def _next_append_problems(self, acknowledged: list[str]) -> list[str]:
        again, problems = self._here(), []
        if again.acknowledged != [each.id for each in self._command.events]:
            problems.append(f"the next run: exit {again.code}, {again.err.decode()}")
        return problems + event_problems(self._store, self._submitted, [*acknowledged, *again.acknowledged])

    @property
    def _submitted(self) -> dict[str, Message]:
        return {each.id: each for each in (*BEFORE, *self._command.events)}

    def _project_problems(self, ended: Ended) -> list[str]:
        rows, problems = self._once((self._tree(),), self._next_project_problems)
        if ended.code == 0 and json.loads(ended.out)["rows"] != rows and b"left out" not in ended.out:
            return [f"exit 0, and not all is projected: {ended.out.decode()}", *problems]
        return problems

    def _next_project_problems(self) -> tuple[int, list[str]]:
        """The rows that the next run counts, and what is wrong with it."""
        again, standing, log = self._here(), _digest(self._store), relative_log(self._store)
        return json.loads(again.out)["rows"] if again.code == 0 else 0, [
            *([] if again.code == 0 else [f"the next run: exit {again.code}, {again.err.decode()}"]),
            *([] if standing == self._digest else ["the read model is unlike a replay"]),
            *([] if log == self._log else ["the log was touched"]),
        ]

    def _once(self, key: tuple[Hashable, ...], problems: Callable[[], Problems]) -> Problems:
        """The next run finds nothing but the files: what it makes of the same ones is looked at once."""
        if key not in self._known:
            self._known[key] = problems()
        found: Problems = self._known[key]
        return found

    def _tree(self) -> Hashable:
        """What stands in the store: mode and bytes of each file, and the mode of each folder."""
        paths = sorted(self._store.rglob("*"))
        return tuple(
            (str(path), path.stat().st_mode, b"" if path.is_dir() else path.read_bytes()) for path in paths
        )

    def _here(self) -> Ended:
        arguments = self._command.arguments
        return memlog_here("--store", self._store, *arguments, input=self._command.input, env=NO_PATIENCE)


def _digest(store: Path) -> str:
    with memlog.open(store) as opened:
        return opened.maintenance.digest()


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

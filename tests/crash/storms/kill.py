"""A kill -9 storm: writers, projectors and a reader at one store, killed at random moments.

    python -m tests.crash.storms.kill --seconds 60 [--seed 7] [--kills 200]

Whatever is killed: every acknowledged event is there exactly once, nothing is there that was never
submitted, the read model is equal to a replay, and the next run is clean.

The seed fixes what is written and who is killed; which instruction a kill hits is up to the machine.
"""

import argparse
import json
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import count, cycle
from pathlib import Path

from tests.crash.storms.workers import (
    CommandProjector,
    ForkedCommandProjector,
    ForkedPipeWriter,
    ForkedProjector,
    ForkedWriter,
    LongLinesWriter,
    PipeWriter,
    Reader,
    Worker,
    event_of,
    load_what_children_need,
)
from tests.support.storm_checks import event_problems, read_log, rebuild_problems, replay_problems
from tests.support.storm_workload import Ack, Failed

WORKERS: tuple[tuple[type[Worker], ...], ...] = (
    *((PipeWriter, ForkedPipeWriter), (ForkedWriter,), (ForkedWriter,), (LongLinesWriter,)),
    *((PipeWriter, ForkedPipeWriter), (ForkedWriter,), (ForkedWriter,), (LongLinesWriter,)),
    *((CommandProjector, ForkedCommandProjector, ForkedCommandProjector), (ForkedProjector,)),
)
"""Who is at work at any time: eight writers and two projectors. Each is killed as often as the others.

Of those that stand together one follows the other: an installed command takes its time to start.
"""

READERS = 2

ROUND = 50
"""Kills between two checks."""

MOST_AT_ONCE = 3
"""Processes that are killed at one moment."""

ROUNDS_A_STORE = 2
"""Then a new store: its beginning is a thing to kill, too, and a check does not grow without end."""

_LONGEST_PAUSE = 0.06
_TICK = 0.01
_KINDS = [kind.kind for kinds in WORKERS for kind in kinds]


@dataclass
class Report:
    """What a storm did.

    kills: by what was killed.
    projections: that were killed between their beginning and their end, as far as is known.
    unanswered: events whose writer was killed before it acknowledged them.
    torn: lines of the logs that a kill cut short.
    doubled_lines: of events that were stored, not acknowledged, and so submitted again.
    problems: what should not have happened. Then the stores are left in `folder`.
    """

    seed: int
    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KINDS, 0))
    projections: int = 0
    submitted: int = 0
    acknowledged: int = 0
    unanswered: int = 0
    torn: int = 0
    doubled_lines: int = 0
    queries: int = 0
    checks: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    folder: str | None = None

    @property
    def total_kills(self) -> int:
        return sum(self.kills.values())


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill writers and projectors, and check what they leave.")
    parser.add_argument("--seconds", type=float, required=True, help="begin no kill after so many")
    parser.add_argument("--kills", type=int, default=sys.maxsize, help="end after so many")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--json", action="store_true", help="print the report for programs")
    arguments = parser.parse_args()
    report = storm(arguments.seconds, arguments.seed, arguments.kills)
    if arguments.json:
        print(json.dumps(asdict(report)))
    else:
        _print(report)
    return 1 if report.problems else 0


def storm(seconds: float, seed: int, kills: int) -> Report:
    """Kill for `seconds`, or so many times; the first problem ends it."""
    report, started = Report(seed), time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="memlog-storm-"))
    load_what_children_need()

    def goes_on() -> bool:
        is_over = time.monotonic() > started + seconds or report.total_kills >= kills
        return not is_over and not report.problems

    while goes_on():
        store = _Store(folder / f"store-{report.checks}", f"{seed} {report.checks}", report)
        for _ in range(ROUNDS_A_STORE):
            if goes_on():
                store.round(min(ROUND, kills - report.total_kills), goes_on)
        store.end()
        if not report.problems:
            shutil.rmtree(store.path)
    if report.problems:
        report.folder = str(folder)
    else:
        folder.rmdir()
    report.seconds = round(time.monotonic() - started, 1)
    return report


def run(seconds: float, seed: int) -> dict[str, int]:
    """The same as one of several storms.

    Raises:
        AssertionError: an acknowledged event was lost or doubled, or a next run was not clean.
    """
    report = storm(seconds, seed, sys.maxsize)
    assert not report.problems, f"kept {report.folder}: {report.problems}"
    return {
        "kills": report.total_kills,
        "acknowledged": report.acknowledged,
        "torn_lines": report.torn,
        "queries": report.queries,
        "checks": report.checks,
    }


class _Store:
    """One store, those who work at it, and what they have acknowledged over all rounds."""

    def __init__(self, path: Path, seed: str, report: Report) -> None:
        self.path = path
        # The folder is a store before its log is begun, so a query that comes first is answered.
        path.mkdir()
        (path / "memlog.toml").touch()
        self._seed = seed
        self._rng = random.Random(seed)
        self._report = report
        self._lives = count()
        self._kinds = [cycle(kinds) for kinds in WORKERS]
        self._workers: dict[int, Worker] = {}
        self._submitted: set[str] = set()
        self._acknowledged: list[Ack] = []
        self._retries: list[str] = []

    def round(self, kills: int, goes_on: Callable[[], bool]) -> None:
        """Make `kills`, the last of them all at once, and check the store."""
        self._workers = {slot: self._new(slot) for slot in range(len(WORKERS))}
        self._readers = [Reader(self.path, self._newest_acknowledged) for _ in range(READERS)]
        try:
            with self._noting_failures():
                self._kill_in_turn(self._report.total_kills + kills, goes_on)
                self._check()
        finally:
            self._end_all()

    def _kill_in_turn(self, total: int, goes_on: Callable[[], bool]) -> None:
        for slots in self._victims(total - len(WORKERS)):
            if not goes_on():
                break
            self._strike(slots)
        self._work(self._rng.random() * _LONGEST_PAUSE)
        for slot in list(self._workers):
            self._kill(slot)
        for reader in self._readers:
            reader.finish()

    @contextmanager
    def _noting_failures(self) -> Iterator[None]:
        try:
            yield
        except Failed as failure:
            self._report.problems.append(str(failure))
        except Exception:
            # Whatever it is: the folder is to be kept, and the seed printed.
            self._report.problems.append(traceback.format_exc())

    def end(self) -> None:
        """Compare the read model, which grew under all kills, with a replay; count what was cut short."""
        if not self._report.problems:
            with self._noting_failures():
                self._report.problems += replay_problems(self.path) + rebuild_problems(self.path)
        log = read_log(self.path)
        self._report.torn += log.broken
        self._report.doubled_lines += log.ids.total() - len(log.ids)

    def _new(self, slot: int) -> Worker:
        kind, life = next(self._kinds[slot]), next(self._lives)
        if issubclass(kind, ForkedWriter | PipeWriter):
            retries, self._retries = self._retries, []
            return kind(self.path, self._seed, life, retries)
        return kind(self.path, self._seed, life)

    def _victims(self, total: int) -> Iterator[list[int]]:
        """Slots in random order, each as often as the others, by those that are killed at once.

        total: of kills, then it ends. A command that has just ended by itself is none.
        """
        deck: list[int] = []
        while (left := total - self._report.total_kills) > 0:
            deck = deck or self._rng.sample(range(len(WORKERS)), len(WORKERS))
            struck = deck[: min(self._rng.randint(1, MOST_AT_ONCE), left)]
            deck = deck[len(struck) :]
            yield struck

    def _strike(self, slots: list[int]) -> None:
        """Kill at a random moment, or shortly after the first has begun something; others follow them."""
        victim = self._workers[slots[0]]
        self._work(self._rng.random() * _LONGEST_PAUSE)
        if self._rng.random() < victim.aimed:
            self._work(0.5, until=lambda: victim.is_busy)
            victim.wait_for_the_moment(self._rng)
        for slot in slots:
            self._kill(slot)
        for slot in slots:
            self._workers[slot] = self._new(slot)

    def _work(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Let all work for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            talking = [pipe for worker in self._workers.values() for pipe in worker.talking()]
            select.select(talking, [], [], _TICK)
            for worker in self._workers.values():
                worker.turn()
            for reader in self._readers:
                reader.turn()

    def _kill(self, slot: int) -> None:
        victim = self._workers.pop(slot)
        code = victim.kill()
        if code not in (-signal.SIGKILL, 0):
            raise Failed(f"{victim.kind}: ended with {code} before it was killed")
        self._report.kills[victim.kind] += code == -signal.SIGKILL
        self._report.projections += isinstance(victim, ForkedProjector) and victim.is_busy
        self._take_over(victim)

    def _take_over(self, victim: Worker) -> None:
        answered = {ack.id for ack in victim.acknowledged}
        unanswered = [name for name in victim.submitted if name not in answered]
        self._acknowledged += victim.acknowledged
        self._submitted.update(victim.submitted)
        self._report.acknowledged += len(answered)
        self._report.submitted += len(victim.submitted)
        self._report.unanswered += len(unanswered)
        # As agents do: it is not known whether these are stored, so some are tried again.
        if self._rng.random() < 0.5:
            self._retries += unanswered

    def _check(self) -> None:
        submitted = {name: event_of(self._seed, name) for name in self._submitted}
        self._report.checks += 1
        self._report.queries += sum(reader.answered for reader in self._readers)
        self._report.problems += event_problems(self.path, submitted, self._acknowledged)

    def _end_all(self) -> None:
        for worker in self._workers.values():
            with suppress(Failed):
                worker.kill()
        self._workers = {}
        for reader in self._readers:
            reader.kill()

    def _newest_acknowledged(self) -> str | None:
        """A message that was acknowledged not long ago."""
        acknowledged = [ack.id for worker in self._workers.values() for ack in worker.acknowledged[-8:]]
        self._rng.shuffle(acknowledged)
        return next((name for name in acknowledged if event_of(self._seed, name)["type"] == "message"), None)


def _print(report: Report) -> None:
    for name, value in asdict(report).items():
        shown = ", ".join(f"{value[what]} {what}" for what in value) if name == "kills" else value
        if name not in ("problems", "folder"):
            print(f"{name:14} {shown}")
    for problem in report.problems:
        print(f"problem: {problem}")
    if report.problems:
        print(f"kept {report.folder}; again with --seed {report.seed}")
    else:
        print("none lost, none doubled, every next run clean")


if __name__ == "__main__":
    sys.exit(main())

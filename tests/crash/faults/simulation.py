"""Cuts the power at every operation of a scenario, and has the real memlog recover from what is left."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from memlog.eventlog.events import Message
from memlog.projector.embedding.models import OnnxEmbedder
from tests.crash.faults.log_scenarios import Plant, recorded
from tests.crash.faults.power_cuts import Cut, SimulatedDisk, State, cuts, materialised
from tests.crash.faults.projecting_scenarios import MEMLOG, traced_projection
from tests.crash.faults.read_model_recovery import read_model_problems
from tests.crash.faults.recovery import AFTER_NEXT, NEXT, log_problems, message
from tests.support.in_memory import memory
from tests.support.recorded_disk import recording


@dataclass
class Outcome:
    """How many states were recovered from, and what was wrong after.

    is_sought: a fault was planted, to be found.
    kept: where the first state that something was wrong with is left, unless that was sought.
    """

    is_sought: bool = False
    states: int = 0
    violations: list[str] = field(default_factory=list)
    kept: Path | None = None

    def add(self, cut: Cut, problems: list[str], state: State) -> None:
        """Count a state; keep the first bad one."""
        self.states += 1
        self.violations += [f"cut after operation {cut.after}: {problem}" for problem in problems]
        if problems and self.kept is None and not self.is_sought:
            self.kept = Path(tempfile.mkdtemp(prefix="memlog-cut-")) / "left"
            materialised(state, self.kept)


@contextmanager
def in_memory() -> Iterator[Path]:
    """An empty folder, in memory where there is a file system for that."""
    folder = Path(tempfile.mkdtemp(prefix="memlog-cuts-", dir=memory()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def cut_the_log(
    scenario: str,
    *,
    seed: int,
    at_each: int,
    again_every: int = 0,
    again_at_each: int = 8,
    plant: Plant | None = None,
) -> Outcome:
    """Recover from each state that a cut during a scenario leaves of the log.

    at_each: states after one operation, at most.
    again_every: cut the power again while every so many-th state is recovered from; 0: never.
    again_at_each: states after one operation of such a recovery, at most.
    """
    outcome = Outcome(is_sought=plant is not None)
    with in_memory() as folder:
        live, numbers = folder / "live", count()
        live.mkdir()
        with recorded(scenario, live, plant) as done:
            for cut in cuts(done.disk, done.trace, seed=seed, at_each=at_each):
                root = folder / f"{next(numbers)}"
                materialised(cut.state, root)
                if again_every and outcome.states % again_every == 0:
                    _cut_again(root, cut, done.submitted, seed, again_at_each, outcome)
                else:
                    problems = log_problems(root / "store", done.submitted, cut.acknowledged)
                    outcome.add(cut, problems, cut.state)
                shutil.rmtree(root)
    return outcome


def cut_the_read_model(
    scenario: str,
    *,
    seed: int,
    at_each: int,
    share: float,
    command: tuple[str, ...] = MEMLOG,
    by_strace: bool = True,
    stop_at_first: bool = False,
) -> Outcome:
    """Recover from states that a cut during a projection leaves of model/ and cache/.

    share: of SQLite's writes, after so many of which the power is cut.
    command, by_strace: see `traced_projection`.
    stop_at_first: look no further than the first violation.
    """
    outcome = Outcome(is_sought=command != MEMLOG)
    with in_memory() as folder, _model_asked_once():
        live = folder / "live"
        live.mkdir()
        done = traced_projection(scenario, live, folder / "strace", command, by_strace=by_strace)
        for cut in cuts(done.disk, done.trace, seed=seed, at_each=at_each, share=share):
            shutil.rmtree(live)
            materialised(cut.state, live)
            # Every tenth is compared with a replay in full: that takes as long as all the rest.
            problems = read_model_problems(live / "store", done, verify=outcome.states % 10 == 0)
            outcome.add(cut, problems, cut.state)
            if stop_at_first and outcome.violations:
                break
    return outcome


@contextmanager
def _model_asked_once() -> Iterator[None]:
    """The real model gives the same vectors for the same words: of each state they are the same words."""
    run, known = OnnxEmbedder._run_model, {}

    def remembered(embedder: OnnxEmbedder, ids: Any) -> Any:
        key = (ids.shape, ids.tobytes())
        if key not in known:
            known[key] = run(embedder, ids)
        return known[key]

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(OnnxEmbedder, "_run_model", remembered)
        yield


def _cut_again(
    root: Path, first: Cut, submitted: Mapping[str, Message], seed: int, at_each: int, outcome: Outcome
) -> None:
    """The power goes again during the first append after a cut."""
    disk = SimulatedDisk(root)
    with recording() as recorder:
        outcome.add(first, log_problems(root / "store", submitted, first.acknowledged), first.state)
        recorder.ack(NEXT)
    again = root.with_name("again")
    for second in cuts(disk, recorder.trace, seed=seed, at_each=at_each):
        materialised(second.state, again)
        expected = first.acknowledged | second.acknowledged
        problems = log_problems(again / "store", {**submitted, NEXT: message(NEXT)}, expected, AFTER_NEXT)
        outcome.add(first, problems, second.state)
        shutil.rmtree(again)

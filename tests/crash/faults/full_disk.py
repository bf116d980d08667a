"""A disk that is full at some byte of a batch, by a limit on the size of files.

A process of its own, since the limit holds for all that the process writes.
"""

import json
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memlog.eventlog.log.writer import Log, Position
from tests.crash.faults.recovery import event_problems, message
from tests.crash.faults.simulation import in_memory
from tests.support.places import ROOT

_BEFORE = message("before")
_BATCH = [message(f"n{number}", "tea " * (number * number)) for number in range(12)]
_SUBMITTED = {each.id: each for each in (_BEFORE, *_BATCH) if each.id is not None}


def filled(seed: int, count: int) -> dict[str, Any]:
    """Fill the disk in a process of its own: how many `offsets`, `stopped` appends, and `violations`."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.faults.full_disk", str(seed), str(count)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _fill(seed: int, count: int) -> dict[str, Any]:
    chance, stopped, violations = random.Random(seed), 0, []
    with in_memory() as folder:
        start, end = _sizes(folder / "whole")
        offsets = range(start, end + 1)
        drawn = sorted(chance.sample(offsets, min(count, len(offsets))))
        for offset in drawn:
            acknowledged, problems = _fill_at(folder / "store", offset)
            stopped += acknowledged < len(_BATCH)
            violations += [f"full at byte {offset}: {problem}" for problem in problems]
            shutil.rmtree(folder / "store")
    return {"offsets": len(drawn), "stopped": stopped, "violations": violations}


def _sizes(store: Path) -> tuple[int, int]:
    """The size of the segment before the batch, and behind it."""
    Log(store).append([_BEFORE])
    (segment,) = (store / "log").rglob("*.jsonl")
    size = segment.stat().st_size
    Log(store).append(_BATCH)
    return size, segment.stat().st_size


def _fill_at(store: Path, size: int) -> tuple[int, list[str]]:
    """How many of the batch are acknowledged where files end at `size`, and what is wrong then and after."""
    log = Log(store)
    log.append([_BEFORE])
    drafts = [log.draft_event(each) for each in _BATCH]
    with _files_no_longer_than(size):
        outcomes = log.append_drafts_individually(drafts)
    stored = [each.id for each in outcomes if isinstance(each, Position)]
    problems = event_problems(store, _SUBMITTED, ["before", *stored])
    again = log.append_drafts_individually(drafts)
    problems += [f"with room again: {each}" for each in again if not isinstance(each, Position)]
    return len(stored), problems + event_problems(store, _SUBMITTED, _SUBMITTED)


@contextmanager
def _files_no_longer_than(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    print(json.dumps(_fill(int(sys.argv[1]), int(sys.argv[2]))))

"""Verifies a store beside processes that append, seal and project, and live copies of it: no false alarm.

    python -m tests.crash.storms.copies_and_seals [RUNS] [SEED]

Half of the runs verify the store itself, the other half a copy that was made meanwhile, with its seals copied
before or after its segments.
"""

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import memlog

_WRITER = """
import sys
from pathlib import Path
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments
from memlog.eventlog.log.writer import Log
log = Log(Path(sys.argv[1]), durability="os")
while True:
    for number in range(3):
        log.append([{"type": "memory_saved", "content": f"green {number} " * 40}])
    seal_unsealed_segments(log.store)
"""
_PROJECTOR = """
import sys
import memlog
while True:
    with memlog.open(sys.argv[1]) as store:
        for _ in range(20):
            store.maintenance.project(embed=False)
"""
_PAUSE = 0.02  # the writers make a segment in less, so the two steps of a copy differ


def run(count: int, seed: int, of_a_store: int = 20) -> Counter[str]:
    """Verify `count` times, and count the alarms by their message.

    of_a_store: after so many a new one is begun.
    """
    drawn, found = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        while found["runs"] < count:
            _with_writers(Path(folder), min(of_a_store, count - found["runs"]), drawn, found)
            print(dict(found), file=sys.stderr)
    return found


def _with_writers(folder: Path, count: int, drawn: random.Random, found: Counter[str]) -> None:
    """On a new store, so that reading it does not take longer and longer."""
    store = Path(tempfile.mkdtemp(dir=folder)) / "store"
    running = [_started(_WRITER, store) for _ in range(2)]
    try:
        while not list(store.glob("log/seals.*.jsonl")):
            assert all(process.poll() is None for process in running)
        running.append(_started(_PROJECTOR, store))
        for _ in range(count):
            kind = drawn.choice(["beside writers", "copy, seals first", "copy, seals last", "copy by cp -a"])
            with memlog.open(store if kind == "beside writers" else _copy(store, kind)) as opened:
                verification = opened.maintenance.verify()
            found["runs"] += 1
            found[kind] += 1
            found["arriving"] += any("arriv" in note for note in verification.notes)
            for alarm in (*verification.tampered, *verification.problems):
                found[f"alarm: {alarm}"] += 1
        assert all(process.poll() is None for process in running)
    finally:
        for process in running:
            process.kill()
            process.wait()
        shutil.rmtree(store.parent)


def _started(program: str, store: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", program, store])


def _copy(store: Path, kind: str) -> Path:
    target = store.parent / "copy"
    shutil.rmtree(target, ignore_errors=True)
    if kind == "copy by cp -a":
        copied = subprocess.run(["cp", "-a", store, target], stderr=subprocess.PIPE, text=True, check=False)
        # SQLite removes files of the read model meanwhile.
        assert all("/model/" in line for line in copied.stderr.splitlines()), copied.stderr
        # It was copied after the log, of which it may know more than the copy has: that is no false alarm.
        shutil.rmtree(target / "model", ignore_errors=True)
        return target
    steps = [lambda: _copy_seals(store, target), lambda: _copy_streams(store, target)]
    for step in steps if kind == "copy, seals first" else reversed(steps):
        step()
        time.sleep(_PAUSE)
    return target


def _copy_seals(store: Path, target: Path) -> None:
    (target / "log").mkdir(parents=True, exist_ok=True)
    for path in (store / "log").glob("seals*.jsonl"):
        shutil.copy2(path, target / "log" / path.name)


def _copy_streams(store: Path, target: Path) -> None:
    shutil.copytree(store / "log" / "memory", target / "log" / "memory")


def main() -> int:
    """Print the counts; 1 where there was an alarm."""
    given = [int(text) for text in sys.argv[1:]]
    count, seed = [*given, *(2_000, 1)[len(given) :]]
    found = run(count, seed)
    for what, times in sorted(found.items()):
        print(f"{times:7,} {what}")
    return int(any(what.startswith("alarm") for what in found))


if __name__ == "__main__":
    sys.exit(main())

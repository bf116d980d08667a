"""`memlog watch` beside four writers: every event is in the rows soon, also while 60,000 files change."""

import os
import random
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from tests.support.storm_checks import read_model
from tests.support.storm_workload import run_memlog
from tests.support.watched import Watch, appended, percentile, until

_EVENTS = 10_000
_A_SECOND = 500
_FILES = 60_000
_FILES_IN_A_FOLDER = 200
_BOUND = 0.25
_CHANGED = 100
_LOAD = 1.0
"""Of each processor, above which the bound says more of the machine than of memlog."""


def run(seconds: float, seed: int) -> dict[str, int]:
    """10,000 events by 4 processes, for so long, once at least; then as many while files are touched.

    Raises:
        AssertionError: an event has not come, or one in a hundred came later than 250 ms on a machine that
            does nothing else.
    """
    rng = random.Random(seed)
    counts = {"rounds": 0}
    end = time.monotonic() + seconds
    while not counts["rounds"] or time.monotonic() < end:
        with tempfile.TemporaryDirectory(prefix="memlog-watch-") as folder:
            _quiet(Path(folder, "quiet"), rng, counts)
        counts["rounds"] += 1
    with tempfile.TemporaryDirectory(prefix="memlog-watch-") as folder:
        _with_touched_files(Path(folder), rng, counts)
    return counts


def _quiet(store: Path, rng: random.Random, counts: dict[str, int]) -> None:
    watch = Watch(store)
    try:
        _measure(watch, store, rng, counts, "beside writers")
        assert watch.end() == 0
    finally:
        watch.close()


def _with_touched_files(folder: Path, rng: random.Random, counts: dict[str, int]) -> None:
    store, files = folder / "store", _files_in(folder / "files")
    assert run_memlog(store, "docs", "add", str(folder / "files")).returncode == 0
    watch = Watch(store, MEMLOG_MODEL=str(folder / "no model"))
    try:
        _touch(files)
        changed = rng.sample(files, _CHANGED)
        for path in changed:
            path.write_text(f"{path.name} has changed\n")
        _touch(files)
        started = time.monotonic()
        _measure(watch, store, rng, counts, "while files are touched")
        until(lambda: _changed_rows(store) == _CHANGED, 600)
        counts["s until all changed files were in the rows"] = round(time.monotonic() - started)
        assert watch.end() == 0
    finally:
        watch.close()


def _changed_rows(store: Path) -> int:
    with closing(read_model(store)) as db:
        return int(
            db.execute("SELECT count(*) FROM doc_chunks WHERE content GLOB '* has changed*'").fetchone()[0]
        )


def _measure(watch: Watch, store: Path, rng: random.Random, counts: dict[str, int], what: str) -> None:
    used, told = watch.cpu_seconds(), watch.told("projected")
    seconds = appended(store, _EVENTS, rng=rng, a_second=_A_SECOND)
    until(lambda: watch.told("projected") - told >= _EVENTS)
    worst, load = percentile(seconds, 0.99), os.getloadavg()[0] / (os.cpu_count() or 1)
    steps = [step["ms"] for step in watch.steps if step["projected"]]
    print(
        f"  {what}: p50 {percentile(seconds, 0.5) * 1000:.0f} ms, p99 {worst * 1000:.0f} ms, at most"
        f" {max(seconds) * 1000:.0f} ms; {len(steps)} steps of {percentile(steps, 0.5):.0f} ms, p99"
        f" {percentile(steps, 0.99):.0f} ms; {watch.cpu_seconds() - used:.1f} s of processors;"
        f" {watch.told('embedded')} embedded; load {load:.1f} a processor",
        file=sys.stderr,
        flush=True,
    )
    counts[f"events {what}"] = counts.get(f"events {what}", 0) + len(seconds)
    counts[f"ms p99 {what}"] = max(counts.get(f"ms p99 {what}", 0), round(worst * 1000))
    assert worst <= _BOUND or load > _LOAD, f"p99 {worst * 1000:.0f} ms {what}"


def _files_in(root: Path) -> list[Path]:
    files = []
    for number in range(_FILES):
        path = root / f"{number // _FILES_IN_A_FOLDER:04}" / f"{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"File {number}.\n")
        files.append(path)
    return files


def _touch(files: list[Path]) -> None:
    for path in files:
        os.utime(path)

"""Scrubs that are killed at any call of the disk, by a process that kills itself there, and finished."""

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import memlog

SECRET = "my number is 5551234"
_CALLS = 400  # of a scrub of such a store, and then some
_MOST_KILLS = 3


ScrubKilledAt = Callable[[Path, int], bool]
"""Scrubs the store in another process that is killed before so many calls of the disk; whether it was."""


@contextmanager
def victim_process() -> Iterator[ScrubKilledAt]:
    """A process whose children are killed: this one may have threads, and must not fork."""
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("scrub_victim.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def scrub_killed_at(path: Path, number: int) -> bool:
        process.stdin.write(json.dumps({"store": str(path), "call": number}) + "\n")
        process.stdin.flush()
        code = json.loads(process.stdout.readline())
        assert code in (0, -signal.SIGKILL), "a scrub failed"
        return code != 0

    with process:
        yield scrub_killed_at
        process.stdin.close()
        assert process.wait(10) == 0


def run(seconds: float, seed: int) -> dict[str, int]:
    """Kill scrubs of one store after the other, some of them twice or thrice, and look what is left.

    Raises:
        AssertionError: something else than what was forgotten has changed, or the last scrub left some of it.
            The store is kept; the message names it.
    """
    chance, end = random.Random(seed), time.monotonic() + seconds
    counts = {"stores": 0, "kills": 0, "lines": 0}
    with victim_process() as scrub_killed_at:
        while time.monotonic() < end:
            path = Path(tempfile.mkdtemp(prefix="memlog-scrubs-"))
            try:
                counts["lines"] += _fill(path, chance)
                kept = _kept(path)
                for _ in range(chance.randint(1, _MOST_KILLS)):
                    counts["kills"] += scrub_killed_at(path, chance.randrange(1, _CALLS))
                    assert _kept(path) == kept
                _finish(path, kept)
            except AssertionError as broken:
                raise AssertionError(f"seed {seed}, kept {path}: {broken}") from broken
            shutil.rmtree(path)
            counts["stores"] += 1
    return counts


def _fill(path: Path, chance: random.Random) -> int:
    """A store in which some lines were forgotten; how many."""
    with memlog.open(path) as store:
        for number in range(chance.randint(2, 20)):
            content = f"{SECRET} " * chance.choice([1, 1, 300]) if chance.random() < 0.5 else f"tea {number}"
            chat_id = str(chance.randint(1, 3))
            said = memlog.Message(channel="x", chat_id=chat_id, role="user", content=content)
            store.append([said] * chance.choice([1, 1, 2]))
        return len(store.erasure.forget(match="5551234").lines)


def _kept(path: Path) -> list[bytes]:
    """The lines of the log that nobody has forgotten."""
    lines = [
        line for each in sorted((path / "log").rglob("2*.jsonl")) for line in each.read_bytes().split(b"\n")
    ]
    return [line for line in lines if line.startswith(b"{") and SECRET.encode() not in line]


def _finish(path: Path, kept: list[bytes]) -> None:
    with memlog.open(path) as store:
        assert store.maintenance.verify().ok, "the read model is unlike a replay after a kill"
        store.erasure.scrub()
        assert store.erasure.prove("5551234").found == [], "it stands there still"
        assert store.maintenance.verify().ok, "the read model is unlike a replay"
    assert _kept(path) == kept, "something else has changed"

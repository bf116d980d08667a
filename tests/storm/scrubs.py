"""Scrubs that are killed at any call of the disk, by a process that kills itself there, and finished."""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from itertools import count
from pathlib import Path

import memlog
from memlog.eventlog import disk

SECRET = "my number is 5551234"
_CALLS = 400  # of a scrub of such a store, and then some
_MOST_KILLS = 3


def run(seconds: float, seed: int) -> dict[str, int]:
    """Kill scrubs of one store after the other, some of them twice or thrice, and look what is left.

    Raises:
        AssertionError: something else than what was forgotten has changed, or the last scrub left some of it.
            The store is kept; the message names it.
    """
    chance, end = random.Random(seed), time.monotonic() + seconds
    counts = {"stores": 0, "kills": 0, "lines": 0}
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
        return len(store.forget(match="5551234").lines)


def _kept(path: Path) -> list[bytes]:
    """The lines of the log that nobody has forgotten."""
    lines = [
        line for each in sorted((path / "log").rglob("2*.jsonl")) for line in each.read_bytes().split(b"\n")
    ]
    return [line for line in lines if line.startswith(b"{") and SECRET.encode() not in line]


def scrub_killed_at(path: Path, number: int) -> bool:
    """Scrub in another process that is killed before its `number`-th call of the disk; whether it was."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            try:
                _die_at(number)
                with memlog.open(path) as store:
                    store.scrub()
                os._exit(0)
            except BaseException:
                traceback.print_exc(file=sys.__stderr__)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a scrub failed"
    return os.WIFSIGNALED(status)


def _die_at(number: int) -> None:
    calls = count(1)

    def standing_in(real):
        def call(*args, **options):
            if next(calls) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        return call

    for name in disk.CALLS:
        setattr(disk, name, standing_in(getattr(disk, name)))


def _finish(path: Path, kept: list[bytes]) -> None:
    with memlog.open(path) as store:
        assert store.verify().ok, "the read model is unlike a replay after a kill"
        store.scrub()
        assert store.prove("5551234").found == [], "it stands there still"
        assert store.verify().ok, "the read model is unlike a replay"
    assert _kept(path) == kept, "something else has changed"

"""A running `memlog watch`, and how soon it shows what was acknowledged.

The rows themselves are looked at, by a connection of one's own, so that no read catches up by itself.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.storm_workload import (
    MEMLOG,
    Ack,
    AppendPipe,
    Failed,
    LineReader,
    message,
    text,
    wait_for_any,
)

CHATS = ("one", "two", "three", "four", "five")
_BETWEEN_LOOKS = 0.005
_PATIENCE = 60.0
_ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("MEMLOG_")}


class Watch:
    """A running `memlog watch`, which has looked for the first time; `steps` is what it has told since."""

    def __init__(self, store: Path, **environment: str) -> None:
        ours, its = os.pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self.process = subprocess.Popen(
            [MEMLOG, "--store", store, "watch", "--json"],
            stdin=subprocess.DEVNULL,
            stdout=its,
            stderr=self._errors,
            env=_ENVIRONMENT | environment,
            # Who runs the tests in the background hands down an ignored SIGINT, and Python keeps to it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(its)
        self._reader = LineReader(ours)
        self.steps: list[dict[str, Any]] = []
        until(lambda: self.hear() != [])

    def notes(self) -> list[str]:
        """What it has said on stderr up to now."""
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode().splitlines()

    def hear(self) -> list[dict[str, Any]]:
        """What it has told up to now."""
        self.steps += [json.loads(line) for line in self._reader.lines()]
        if self._reader.at_end:
            code = self.process.wait(_PATIENCE)
            raise Failed(f"memlog watch ended by itself with {code}: {self.notes()}")
        return self.steps

    def told(self, member: str) -> int:
        """The sum of a member over what it has told."""
        return sum(step[member] for step in self.hear())

    def cpu_seconds(self) -> float:
        """What it has used of the processors, its embedding too."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        """What it holds of the memory now."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )

    def end(self, with_signal: int = signal.SIGTERM) -> int:
        """Ask it to end; its exit code."""
        self.process.send_signal(with_signal)
        return self.process.wait(_PATIENCE)

    def close(self) -> None:
        """Leave nothing of it behind."""
        self.process.kill()
        self.process.wait()
        os.close(self._reader.fd)
        self._errors.close()


def until(is_so: Callable[[], bool], seconds: float = _PATIENCE) -> float:
    """Wait for it, and return how long that took.

    Raises:
        Failed: it was not so in time.
    """
    started = time.monotonic()
    while not is_so():
        if time.monotonic() - started > seconds:
            raise Failed(f"not so after {seconds:g} seconds")
        time.sleep(_BETWEEN_LOOKS)
    return time.monotonic() - started


class Appearing:
    """Follows acknowledged events into the rows; `seconds` is how long each took to come."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._db: tuple[str, sqlite3.Connection] | None = None
        self._waiting: dict[tuple[str, str], float] = {}
        self._looked = 0.0
        self.seconds: list[float] = []

    def acknowledged(self, ack: Ack) -> None:
        """It counts from now on."""
        self._waiting[ack.stream, ack.id] = time.monotonic()

    @property
    def missing(self) -> int:
        """How many are not there yet."""
        return len(self._waiting)

    def look(self) -> None:
        """Which have come? At most every few milliseconds."""
        now = time.monotonic()
        if not self._waiting or now - self._looked < _BETWEEN_LOOKS:
            return
        self._looked = now
        found = self._connection().execute(
            "SELECT e.stream, e.id FROM json_each(?) w CROSS JOIN events e"
            " ON e.stream = w.value ->> 0 AND e.id = w.value ->> 1",
            (json.dumps(list(self._waiting)),),
        )
        for key in found.fetchall():
            self.seconds.append(now - self._waiting.pop(key))

    def close(self) -> None:
        if self._db is not None:
            self._db[1].close()

    def _connection(self) -> sqlite3.Connection:
        current = (self._store / "model/CURRENT").read_text().strip()
        if self._db is None or self._db[0] != current:
            self.close()
            uri = f"{(self._store / 'model' / current).as_uri()}?mode=ro"
            self._db = (current, sqlite3.connect(uri, uri=True))
        return self._db[1]


def appended(
    store: Path, count: int, *, writers: int = 4, rng: random.Random, a_second: float | None = None
) -> list[float]:
    """Append `count` events by so many processes, as fast as they are acknowledged or so many a second, and
    return how long each took from there to its row, in seconds.

    Raises:
        Failed: one was not acknowledged, or did not come at all.
    """
    pipes = [AppendPipe(store) for _ in range(writers)]
    prefix = f"{rng.randrange(16**8):08x}"
    counted = [0] * writers
    given = 0
    started = time.monotonic()
    with closing(Appearing(store)) as appearing:
        while given < count or any(pipe.unanswered for pipe in pipes) or appearing.missing:
            due = count if a_second is None else min(count, int((time.monotonic() - started) * a_second) + 1)
            for pipe in pipes:
                if given < due and pipe.unanswered < 32:
                    burst = min(rng.randint(1, 8), due - given)
                    pipe.submit(_event(f"{prefix}-{given + n}", rng) for n in range(burst))
                    given += burst
            wait_for_any(pipes, 0.002)
            for number, pipe in enumerate(pipes):
                pipe.turn()
                for ack in pipe.acknowledged[counted[number] :]:
                    appearing.acknowledged(ack)
                counted[number] = len(pipe.acknowledged)
            appearing.look()
            if time.monotonic() - started > _PATIENCE + count / (a_second or 50):
                raise Failed(f"{appearing.missing} acknowledged events have not come")
        if [pipe.finish() for pipe in pipes] != [0] * writers or len(appearing.seconds) != count:
            raise Failed(f"{len(appearing.seconds)} of {count} events have come")
        return appearing.seconds


def percentile(values: list[float], share: float) -> float:
    """The value that so large a share of them does not exceed."""
    return sorted(values)[max(0, -(-int(len(values) * share * 1000) // 1000) - 1)]


def _event(event_id: str, rng: random.Random) -> dict[str, Any]:
    return message(event_id, rng.choice(CHATS), text(rng, int(40 * 20 ** rng.random() ** 2)))

"""Scrubs beside embed, watch, verify, seal, rebuilds and rolling segments, all of them killed at random.

After each scrub that ended, nothing of an erased text is left: no byte of it in the store, the home folder or
the folder for temporary files, no vector, and no key of one.
"""

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

import memlog
from memlog.eventlog.log.layout import EMBEDDINGS
from memlog.projector.lifecycle import Generations
from memlog.projector.passages import index
from memlog.projector.sqlite import connect, count_rows
from tests.support.storm_workload import message
from tests.support.surroundings import Surroundings

_MEMLOG = (sys.executable, str(Path(__file__).with_name("rolling_memlog.py")))
_MARK = "quetzal"
"""A word that is in every text that is to be erased, and in no other."""

_BUSY = 75
_EMBEDDING = 2
"""The first actors, which embed."""

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
_ROUNDS_A_STORE = 12
_PATIENCE = 120
_TICK = 0.02
_WARM = 10.0
"""Seconds at most for a process to start and to load the model."""

_LATE = 6.0
"""Seconds for what stood still to write what it has computed."""
_KILLS_A_TICK = 0.008

Command = Sequence[str]


def run(seconds: float, seed: int) -> dict[str, int]:
    """Rounds of append, forget and scrub on one store after the other, beside processes that are killed.

    Raises:
        AssertionError: something of an erased text is left, something was left outside the store, or a
            command failed, such as a verify by a false alarm. The folder is kept; the message names it.
    """
    chance, end = random.Random(seed), time.monotonic() + seconds
    counts: Counter[str] = Counter()
    while not counts["scrubs ended"] or time.monotonic() < end:
        folder = Path(tempfile.mkdtemp(prefix="memlog-erasures-"))
        try:
            _Storm(folder, chance, counts).hold(end)
        except AssertionError as broken:
            raise AssertionError(f"seed {seed}, kept {folder}: {broken}") from broken
        shutil.rmtree(folder)
        counts["stores"] += 1
    return dict(counts)


class _Actor:
    """A command that is run again and again, and killed now and then."""

    def __init__(self, storm: "_Storm", next_command: Callable[[], Command]) -> None:
        self._storm = storm
        self._next_command = next_command
        self._start()

    def _start(self) -> None:
        self._command = self._next_command()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - `_ended` closes it
        self._was_killed = self._is_paused = False
        self._process = subprocess.Popen(
            [*_MEMLOG, *self._command],
            env=self._storm.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
        )

    def turn(self) -> None:
        """See how it ended, and run it again."""
        if self._process.poll() is not None:
            self._ended()
            self._start()

    def end(self, number: signal.Signals) -> None:
        """Send it a signal, unless it stands still; `turn` runs it again."""
        if self._process.poll() is None and not self._is_paused:
            self._was_killed = True
            self._process.send_signal(number)

    def pause(self) -> None:
        """Have it stand still in whatever it is doing."""
        if self._process.poll() is None:
            self._is_paused = True
            self._process.send_signal(signal.SIGSTOP)

    def heartbeat(self) -> None:
        """Have it go on where it stood still."""
        self._is_paused = False
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self.heartbeat()
        self.end(signal.SIGTERM)
        self._process.wait(_PATIENCE)
        self._ended()

    def _ended(self) -> None:
        name, code = self._command[0], self._process.returncode
        self._errors.seek(0)
        said = self._errors.read().decode()
        self._errors.close()
        if self._was_killed:
            self._storm.counts[f"{name} killed"] += 1
            return
        assert code in (0, _BUSY), f"memlog {' '.join(self._command)} ended with {code}: {said[-2000:]}"
        self._storm.counts[f"{name} {'busy' if code else 'ended'}"] += 1


class _Storm:
    """One store, and all that is at work on it."""

    def __init__(self, folder: Path, chance: random.Random, counts: Counter[str]) -> None:
        self._folder, self._chance = folder, chance
        self.counts = counts
        self._store = folder / "store"
        self._around = Surroundings(folder / "around")
        self.environment = self._around.environment | {"MEMLOG_STORE": str(self._store)}
        self._keys: list[bytes] = []
        self._kept = 0

    def hold(self, end: float) -> None:
        self._append(_MARK)
        with self._actors() as actors:
            for number in range(_ROUNDS_A_STORE):
                self._round(number, actors)
                if time.monotonic() >= end:
                    break
        self._look()
        self._check(self._run("verify").returncode == 0, "verify finds damage when all has ended")
        self.counts["segments"] += len(list((self._store / "log").rglob("2*.jsonl")))

    @contextmanager
    def _actors(self) -> Iterator[list[_Actor]]:
        others = (
            ("query", "harbour"),
            ("context", "harbour"),
            ("project", "--from-scratch"),
            ("project", "--no-embed"),
            ("digest",),
            ("status",),
        )
        actors = [
            _Actor(self, lambda: ("watch",)),
            _Actor(self, lambda: ("embed",)),
            _Actor(self, lambda: ("verify", "--json")),
            _Actor(self, lambda: ("seal",)),
            _Actor(self, lambda: self._chance.choice(others)),
        ]
        try:
            yield actors
        finally:
            for actor in actors:
                actor.stop()

    def _round(self, number: int, actors: list[_Actor]) -> None:
        self._append(f"kept {number}")
        self._append(_MARK, count=24)
        self._keys += self._keys_of_passages()
        self._pass_time_until_embedding(actors)
        # What stands still now goes on with the erased texts that it has read when they are gone.
        paused = self._chance.sample(actors[:_EMBEDDING], self._chance.randint(1, _EMBEDDING))
        for actor in paused:
            actor.pause()
        self._until_done(actors, "forget", "--match", _MARK, "--yes")
        self._until_done(actors, "scrub", "--yes")
        self.counts["scrubs ended"] += 1
        self._look()
        for actor in paused:
            actor.heartbeat()
        # What was in flight when the scrub ended has come to its end, too.
        self._pass_time(actors, _LATE)
        self._look()

    def _append(self, word: str, count: int = 8) -> None:
        texts = [
            f"{word} {self._chance.random()} of the harbour " * self._chance.choice([1, 40, 60])
            for _ in range(count)
        ]
        chats = [self._chance.choice("123") for _ in texts]
        self._kept += len(texts)
        events = [message(f"m{self._kept}-{n}", *of) for n, of in enumerate(zip(chats, texts, strict=True))]
        lines = "".join(json.dumps(event) + "\n" for event in events)
        done = self._run("append", input=lines.encode())
        self._check(done.returncode == 0, f"append: {done.stderr.decode()}")

    def _keys_of_passages(self) -> list[bytes]:
        """The keys that the cache knows the vectors of what is to be erased by."""
        with memlog.open(self._store, lock_timeout=_PATIENCE) as store:
            store.maintenance.project(embed=False)
            db = store._engine.read_model.projector.connect_to_live()
            texts = [text for text in index.texts_to_embed(db) if _MARK in text]
        self._check(texts != [], "nothing waits to be erased")
        return [sha256(text.encode()).digest() for text in texts]

    def _until_done(self, actors: list[_Actor], *command: str) -> None:
        """Run a command until it has ended by itself; it is killed as the others are."""
        kills = self._chance.choice([0, 0, 1, 2])
        while True:
            process = subprocess.Popen(
                [*_MEMLOG, *command],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            if kills:
                self._pass_time(actors, self._chance.uniform(0.2, 1.2))
                process.send_signal(self._chance.choice(_SIGNALS))
            while process.poll() is None:
                self._pass_time(actors, _TICK)
            said = process.communicate(timeout=_PATIENCE)[1].decode()
            if process.returncode == 0:
                return
            self._check(kills > 0 or process.returncode == _BUSY, f"{command[0]}: {said[-2000:]}")
            if process.returncode == _BUSY:
                # One that stands still may hold the lock that was waited for.
                for actor in actors:
                    actor.heartbeat()
            self.counts[f"{command[0]} {'killed' if kills else 'busy'}"] += 1
            kills = max(0, kills - 1)

    def _pass_time(self, actors: list[_Actor], seconds: float) -> None:
        """Have everybody work, and kill one of them now and then."""
        end = time.monotonic() + seconds
        while True:
            for actor in actors:
                actor.turn()
            if self._chance.random() < _KILLS_A_TICK:
                self._chance.choice(actors).end(self._chance.choice(_SIGNALS))
            if (left := end - time.monotonic()) <= 0:
                return
            time.sleep(min(_TICK, left))

    def _pass_time_until_embedding(self, actors: list[_Actor]) -> None:
        """Until the first vectors come, so that others are being computed."""
        known, end = len(self._cached_keys()), time.monotonic() + _WARM
        while len(self._cached_keys()) <= known and time.monotonic() < end:
            self._pass_time(actors, _TICK)
        self._pass_time(actors, self._chance.uniform(0, 0.3))

    def _look(self) -> None:
        """See that nothing is left of what was erased."""
        self._check(self._around.left() == [], f"left outside the store: {self._around.left()}")
        some = [*self._keys[-16:], *self._chance.sample(self._keys, min(16, len(self._keys)))]
        for path in sorted(self._store.rglob("*")):
            try:
                data = path.read_bytes() if path.is_file() else b""
            except FileNotFoundError:
                continue
            self.counts["bytes searched"] += len(data)
            self._check(_MARK.encode() not in data, f"an erased text is in {path}")
            self._check(not any(key in data for key in some), f"the key of an erased text is in {path}")
        self._check(not self._cached_keys() & set(self._keys), "the cache has the vector of an erased text")
        self._look_for_stray_vectors()

    def _cached_keys(self) -> set[bytes]:
        path = self._store / EMBEDDINGS
        if not path.exists():
            return set()
        with closing(sqlite3.connect(path, timeout=_PATIENCE)) as db:
            if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'vectors'").fetchone():
                return set()
            return {key for (key,) in db.execute("SELECT text_sha256 FROM vectors")}

    def _look_for_stray_vectors(self) -> None:
        current = Generations(self._store).find_live_file()
        assert current is not None
        with closing(connect(current, "write")) as db:
            for shelf in index.SHELVES:
                if count_rows(db, f"sqlite_schema WHERE name = '{shelf.vectors}'"):
                    strays = f"{shelf.vectors} WHERE rowid NOT IN (SELECT chunk_no FROM {shelf.chunks})"
                    self._check(count_rows(db, strays) == 0, "a vector has no passage")
                    self.counts["vectors seen"] += count_rows(db, shelf.vectors)

    def _run(self, *command: str, input: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            [*_MEMLOG, *command],
            env=self.environment,
            input=input,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )

    def _check(self, holds: bool, problem: str) -> None:
        if not holds:
            raise AssertionError(problem)

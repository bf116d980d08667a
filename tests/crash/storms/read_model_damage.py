"""Damage to the read model: whatever stands in its files, reads answer as the log says, and the log stays.

A flip is found by SQLite, and then the read model is built anew at once; or SQLite reads it, and then
`verify` tells it apart from a replay, or nothing that is read depends on it.
"""

import hashlib
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import memlog
from memlog.eventlog.errors import DatabaseError
from memlog.projector.sqlite import choose_binding, error_types_of_binding

PAGE = 4096
_ROOT = 100
"""Where the b-tree header of page 1 begins, behind the header of the file."""

Damage = Callable[[Path], None]
"""Damages the file of the live generation, which nobody has open, or puts something beside it."""


class ReadModel:
    """A small store whose read model is put back after each damage.

    done: how often the read model was built anew (`with_repair`), verify told a difference (`told`), or
        nothing that is read was touched (`harmless`).
    """

    def __init__(self, store: Path) -> None:
        self.store = store
        self.done: Counter[str] = Counter(with_repair=0, told=0, harmless=0)
        with memlog.open(store, durability="os", model=store.parent) as opened:
            opened.append(_events())
            opened.maintenance.project(embed=False)
            self._digest = opened.maintenance.digest()
            self._answers = _ask(opened)
        (self._file,) = (store / "model").glob("*.db")
        self._bytes = self._file.read_bytes()
        self._log = _sums(store)

    @property
    def size(self) -> int:
        return len(self._bytes)

    def try_each(self, damages: Iterable[tuple[str, Damage]]) -> list[str]:
        """Do each damage to a whole read model, and read; what went wrong, in words."""
        return [f"{name}: {problem}" for name, damage in damages for problem in self._try(damage)]

    @property
    def unread(self) -> range:
        """Where page 1 has room between the list of its cells and the cells: SQLite reads nothing of it.

        https://www.sqlite.org/fileformat.html#b_tree_pages
        """
        is_interior = self._bytes[_ROOT] == 5
        cells, content = (int.from_bytes(self._bytes[_ROOT + at : _ROOT + at + 2]) for at in (3, 5))
        return range(_ROOT + (12 if is_interior else 8) + 2 * cells, content)

    def try_each_unread(self) -> list[str]:
        """Flip each byte in `unread`; what went wrong, in words.

        Page 1 says one thing alone: the schema, with the page where each table begins; all other pages are
        as they were. One that leaves the schema is harmless, whatever is asked: that is looked at in a
        fraction of the time. One that does not is tried as any other, and so is every two-hundredth.
        """
        self._put_back()
        whole, others = schema_in(self._file), [*self.unread[::200]]
        fd = os.open(self._file, os.O_WRONLY)
        for offset in self.unread:
            os.pwrite(fd, bytes([self._bytes[offset] ^ 0xFF]), offset)
            if offset not in others and schema_in(self._file) != whole:
                others.append(offset)
            os.pwrite(fd, self._bytes[offset : offset + 1], offset)
        os.close(fd)
        self.done["harmless"] += len(self.unread) - len(others)
        is_written = [] if self._file.read_bytes() == self._bytes else ["reading has changed the file"]
        return is_written + self.try_each(flipped(offset, 0xFF) for offset in others)

    def _try(self, damage: Damage) -> list[str]:
        self._put_back()
        damage(self._file)
        notes: list[str] = []
        problems: list[str] = []
        with memlog.open(self.store, notify=notes.append, model=self.store.parent) as opened:
            try:
                answers = _ask(opened)
                problems += self._outcome(opened, answers, notes)
            except Exception as error:
                problems.append(repr(error))
        if _sums(self.store) != self._log:
            problems.append("the log was touched")
        return problems

    def _outcome(self, opened: memlog.Store, answers: list[object], notes: list[str]) -> list[str]:
        try:
            digest = opened.maintenance.digest()
        except DatabaseError as error:
            return self._told(error)
        # Also where the digest was the first to read what is damaged: it heals, as any read does.
        rebuilt = sum("built one from the log" in note for note in notes)
        if rebuilt > 1:
            return [f"it was built {rebuilt} times"]
        if rebuilt:
            self.done["with_repair"] += 1
            # Asked again: what SQLite read of the damage before it saw it may have been another answer.
            is_well = opened.maintenance.digest() == self._digest and _ask(opened) == self._answers
            return [] if is_well else ["the new read model is another"]
        try:
            if digest == self._digest and answers == self._answers:
                self.done["harmless"] += 1
                return []
            found = opened.maintenance.verify()
        except DatabaseError as error:
            return self._told(error)
        if found.problems:
            self.done["told"] += 1
            return []
        if answers[:-1] == self._answers[:-1] and _ask(opened) == self._answers:
            # What was damaged was how far it had come: the next look at the log replayed a stream.
            self.done["with_repair"] += 1
            return []
        return ["it reads otherwise, and verify does not see it"]

    def _told(self, error: DatabaseError) -> list[str]:
        self.done["told"] += 1
        return [] if "--from-scratch" in error.hint else [f"no remedy: {error.hint}"]

    def _put_back(self) -> None:
        for path in (self.store / "model").glob("*.db*"):
            path.unlink()
        self._file.write_bytes(self._bytes)
        (self.store / "model" / "CURRENT").write_text(self._file.name + "\n")


def schema_in(path: Path) -> list[object] | None:
    """What SQLite reads in page 1 and below it: every table and index, and where it begins; None: nothing."""
    try:
        with closing(choose_binding().connect(f"{path.as_uri()}?immutable=1", uri=True)) as db:
            return [*db.execute("SELECT * FROM sqlite_schema")]
    except error_types_of_binding():
        return None


def flipped(offset: int, mask: int) -> tuple[str, Damage]:
    """One byte is another."""

    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[offset] ^= mask
        path.write_bytes(data)

    return f"byte {offset} ^ {mask}", flip


def overwritten(offset: int, data: bytes) -> tuple[str, Damage]:
    """Some bytes are others."""

    def overwrite(path: Path) -> None:
        before = path.read_bytes()
        path.write_bytes((before[:offset] + data + before[offset + len(data) :])[: len(before)])

    return f"{len(data)} bytes at {offset}", overwrite


def cut(size: int) -> tuple[str, Damage]:
    """The file ends early."""
    return f"cut to {size}", lambda path: path.write_bytes(path.read_bytes()[:size]) and None


def beside(suffix: str, data: bytes) -> tuple[str, Damage]:
    """A side file of SQLite's that is not its own."""
    name = f"{suffix} of {len(data)} bytes"
    return name, lambda path: path.with_name(path.name + suffix).write_bytes(data) and None


def run(seconds: float, seed: int) -> dict[str, int]:
    """Each byte of page 1, and between them whatever chance brings.

    An AssertionError names the folder that is kept.
    """
    rng = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="memlog-read-model-"))
    model = ReadModel(folder / "store")
    end, tried = time.monotonic() + seconds, 0
    for damage in _drawn(rng, model.size):
        if time.monotonic() > end:
            break
        problems = model.try_each([damage])
        assert problems == [], f"seed {seed}, kept in {folder}: {problems}"
        tried += 1
    shutil.rmtree(folder)
    return {"read models damaged": tried, **model.done}


def _drawn(rng: random.Random, size: int) -> Iterable[tuple[str, Damage]]:
    of_page_1 = (flipped(offset, 0xFF) for offset in range(PAGE))
    while True:
        if (damage := next(of_page_1, None)) is not None:
            yield damage
        offset = rng.randrange(size)
        yield rng.choice(
            [
                flipped(offset, 1 << rng.randrange(8)),
                overwritten(offset, rng.randbytes(rng.randint(1, 200))),
                overwritten(offset // PAGE * PAGE, rng.choice([bytes(PAGE), rng.randbytes(PAGE)])),
                cut(offset),
            ]
        )


def _events() -> list[object]:
    said: list[object] = [
        memlog.Message(
            id=f"m{number}",
            ts=f"2026-02-24T08:00:{number:02}.000Z",
            channel="x",
            chat_id="1",
            role="user",
            content=f"The backup of harbour {number} failed",
            meta={"model": "one", "number": number},
        )
        for number in range(40)
    ]
    said += [
        memlog.MemorySaved(
            id=f"y{number}",
            ts="2026-02-24T09:00:00.000Z",
            memory_id=f"y{number}",
            content=f"# Harbour {number}\n\nIts backup runs at night.",
            tags=["harbour", "night"],
        )
        for number in range(10)
    ]
    return said


def _ask(opened: memlog.Store) -> list[object]:
    """What every kind of read says."""
    status = opened.maintenance.status()
    report = opened.maintenance.project(embed=False)
    return [
        [hit.id for hit in opened.search("backup harbour", mode="text", k=50).hits],
        opened.memories.list(),
        opened.conversations.window(("x", "1"), last=50),
        opened.conversations.sessions(),
        opened.core.get(),
        opened.documents.list(),
        [status.events, status.messages, status.memories, status.quarantined, report.rows],
    ]


def _sums(store: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in (store / "log").rglob("*.jsonl")
    }

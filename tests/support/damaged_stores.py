"""Makes small stores, each with one damage planted, and some clean ones.

    python -m tests.support.damaged_stores FOLDER

`make` makes one in the format of today, `make_older` all those that an older memlog could make: the segments
of the first format have no writer. A copy of a store is another writer, to which the segments of the first
are still arriving, so a store of today is made where it is looked at.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import memlog
from memlog.eventlog import timestamps
from memlog.eventlog.integrity.copy_identity import Writer
from memlog.eventlog.integrity.seal_close import accept_losses
from memlog.eventlog.integrity.seal_file import SealFiles, read_seals
from memlog.eventlog.integrity.seal_format import compute_link_hash, encode_seal
from memlog.eventlog.log.layout import WRITERS, name_of_seals_file
from memlog.eventlog.log.streams import SegmentName
from memlog.eventlog.log.writer import Log
from tests.support.older_log import OlderLog
from tests.support.places import FIXTURES

CHAT = "conversations/telegram_7"
DAYS = ("2026-02-24", "2026-02-25", "2026-02-26")
SAID = (
    *("Is there any green tea left?", "Two tins, on the upper shelf.", "Then I order black tea only."),
    *("The kettle is on.", "Milk is out again.", "Oat milk will do.", "Thé vert pour demain 🍵"),
)


class Store:
    """A store with verbs for damage. sealed, second: segments of three lines; open: the newest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.writer = Writer(folder).find_or_create_name()
        names = (SegmentName(day, number, self.writer).filename for number, day in enumerate(DAYS))
        self.sealed, self.second, self.open = (self.log / CHAT / name for name in names)
        self.seals = self.log / name_of_seals_file(self.writer)

    def fill(self, ids: str = "") -> None:
        """Three days of a chat, two of a memory; what is older is sealed. ids: what they begin with."""
        for number, day in enumerate(DAYS):
            log = Log(self.folder, durability="os")
            messages = [said(f"{ids}m{number}-{each}", SAID[(3 * number + each) % 7]) for each in range(3)]
            with clock(f"{day}T08:00:00.000Z"):
                log.append(messages)
                log.append([{"type": "memory_saved", "id": f"{ids}s{number}", "content": SAID[number]}])

    def append(self, event: dict[str, Any], at: str) -> None:
        """Append an event at this time."""
        with clock(at):
            Log(self.folder, durability="os").append([event])

    def reseal(self, at: str) -> None:
        """Seal the first segment anew, from which bytes were erased."""
        with clock(at):
            SealFiles(self.log, self.writer).reseal(CHAT, self.sealed.name)

    def accept_loss(self, at: str) -> None:
        """Seal the first segment as lost."""
        with clock(at):
            accept_losses(self.folder)

    def project(self) -> None:
        """What is read of open segments is remembered."""
        with memlog.open(self.folder) as opened:
            opened.maintenance.project(embed=False)

    def replace(self, path: Path, old: bytes, new: bytes) -> None:
        """Change bytes, which must stand there."""
        data = path.read_bytes()
        assert old in data
        path.write_bytes(data.replace(old, new, 1))

    def lines(self, path: Path, pick: Callable[[list[bytes]], list[bytes]]) -> None:
        """Put other lines in the place of those that stand."""
        path.write_bytes(b"".join(pick(path.read_bytes().splitlines(keepends=True))))

    def add(self, path: Path, data: bytes) -> None:
        """Append bytes as another program does."""
        with path.open("ab") as file:
            file.write(data)


class OlderStore(Store):
    """A store of the first log format."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.sealed, self.second, self.open = (self.log / CHAT / f"{day}.jsonl" for day in DAYS)
        self.seals = self.log / "seals.jsonl"
        self._log = OlderLog(folder)

    def fill(self, ids: str = "") -> None:
        for number, day in enumerate(DAYS):
            at = f"{day}T08:00:00.000Z"
            for each in range(3):
                self.append(said(f"{ids}m{number}-{each}", SAID[(3 * number + each) % 7]), at)
            self.append({"type": "memory_saved", "id": f"{ids}s{number}", "content": SAID[number]}, at)

    def append(self, event: dict[str, Any], at: str) -> None:
        with clock(at):
            self._log.append(event, at)

    def reseal(self, at: str) -> None:
        self._log.blank_first_seal()
        self._log.seal(CHAT, self.sealed.name, at)

    def accept_loss(self, at: str) -> None:
        self._log.seal(CHAT, self.sealed.name, at, lost=_bytes_of_first_seal(self))


def _bytes_of_first_seal(store: Store) -> int:
    seal = read_seals(store.log).lines[0].seal
    assert seal is not None
    return seal.bytes


def said(event_id: str, content: str) -> dict[str, Any]:
    """A message."""
    return {
        **{"type": "message", "id": event_id, "channel": "telegram", "chat_id": "7", "role": "user"},
        "content": content,
    }


@contextmanager
def clock(now: str):
    """Has it be `now`, always."""
    before = timestamps.now
    timestamps.now = lambda: now
    try:
        yield
    finally:
        timestamps.now = before


def _swap(store: Store) -> None:
    first, second = store.sealed.read_bytes(), store.second.read_bytes()
    store.sealed.write_bytes(second)
    store.second.write_bytes(first)


def _flip_crc(store: Store) -> None:
    line = store.open.read_bytes().partition(b"\n")[0]
    store.replace(store.open, line[-3:], bytes([line[-3] ^ 1]) + line[-2:])


def _forge(store: Store) -> None:
    """Another number of lines, with a crc that is right."""
    first, *rest = store.seals.read_bytes().splitlines(keepends=True)
    seal = read_seals(store.log).lines[0].seal
    assert seal is not None
    forged = encode_seal(
        type(seal)(*(seal.stream, seal.segment, seal.bytes, 2, seal.sha256, seal.prev, seal.at))
    )
    assert forged != first
    store.seals.write_bytes(b"".join([forged, *rest]))


def _second_seal(store: Store) -> None:
    seal = read_seals(store.log).lines[0].seal
    assert seal is not None
    last = store.seals.read_bytes().splitlines()[-1]
    again = (seal.stream, seal.segment, seal.bytes, seal.lines, seal.sha256, compute_link_hash(last), seal.at)
    store.add(store.seals, encode_seal(type(seal)(*again)))


def _resealed(store: Store) -> None:
    store.sealed.write_bytes(store.sealed.read_bytes().replace(b"green tea", b"         "))
    store.lines(store.sealed, lambda lines: [b" " * (len(lines[0]) - 1) + b"\n", *lines[1:]])
    store.reseal("2026-02-27T08:00:00.000Z")


def _accepted(store: Store) -> None:
    store.sealed.unlink()
    store.accept_loss("2026-02-27T08:00:00.000Z")


def _repeat(store: Store) -> None:
    line = store.open.read_bytes().splitlines(keepends=True)[0]
    store.add(store.open, line + b'{"id":"m2-1","role":"user","content":"another"}\n{"type":"mess\n')


def _begin_anew(store: Store) -> None:
    """Without what is known to have been written, which would be lost."""
    for folder in (store.log, store.folder / WRITERS):
        shutil.rmtree(folder, ignore_errors=True)


def _only_foreign(store: Store) -> None:
    _begin_anew(store)
    store.sealed.parent.mkdir(parents=True)
    for day in DAYS[:2]:
        store.sealed.with_name(f"{day}.jsonl").write_bytes(b'{"role":"user","content":"green tea"}\n')


def _only_one_segment(store: Store) -> None:
    _begin_anew(store)
    store.append(said("m1", "green tea"), "2026-02-24T08:00:00.000Z")


def _after_a_projection(damage: Callable[[Store], object]) -> Callable[[Store], None]:
    def plant(store: Store) -> None:
        store.project()
        damage(store)

    return plant


def _of_another_copy(damage: Callable[[Store, Store], object]) -> Callable[[Store], None]:
    """Another copy of the store has sent what it wrote. damage: of what has come, first, second, open and
    seals of the other one; and of the store."""

    def plant(store: Store) -> None:
        with tempfile.TemporaryDirectory() as folder:
            other = Store(Path(folder))
            other.fill("other-")
            shutil.copytree(other.log, store.log, dirs_exist_ok=True)
        for name in ("sealed", "second", "open", "seals"):
            path: Path = getattr(other, name)
            setattr(other, name, store.log / path.relative_to(other.log))
        damage(other, store)

    return plant


def _cut_once_it_was_read(other: Store, store: Store) -> None:
    store.project()
    other.lines(other.open, lambda lines: lines[:2])


def _linked(store: Store, stream: str, *, is_loop: bool = False) -> None:
    """Move the folder of a stream away, and link to it, or make a link to itself."""
    folder, away = store.log / stream, store.folder / "away"
    folder.rename(away)
    folder.symlink_to(folder if is_loop else away)


def _conflict_copy(path: Path) -> None:
    shutil.copy(
        path, path.with_name(path.name.replace(".jsonl", ".sync-conflict-20260227-101500-ABCDEFG.jsonl"))
    )


CLEAN: dict[str, tuple[int, Callable[[Store], None]]] = {
    "clean": (0, lambda store: None),
    "clean-one-segment": (0, _only_one_segment),
    "clean-foreign": (0, _only_foreign),
    "clean-accepted-loss": (0, _accepted),
    "clean-resealed": (0, _resealed),
    "clean-pending-tail": (0, lambda store: store.add(store.open, b'{"role":"us')),
    "clean-odd-lines": (1, _repeat),
    "clean-torn-seal": (1, lambda store: store.add(store.seals, b'{"stream":"memory","segm')),
    "clean-projected": (0, Store.project),
    "clean-other-copy": (0, _of_another_copy(lambda other, store: None)),
    "clean-other-segment-arriving": (
        *(0, _of_another_copy(lambda other, store: other.lines(other.sealed, lambda lines: lines[:2]))),
    ),
    "clean-other-segment-not-here": (0, _of_another_copy(lambda other, store: other.sealed.unlink())),
    "clean-other-seals-not-here": (0, _of_another_copy(lambda other, store: other.seals.unlink())),
}
"""By name: the exit code of `verify --strict`, and what is done. Without --strict it is 0."""

DAMAGED: dict[str, tuple[int, str, Callable[[Store], None]]] = {
    "line-flipped-bit": (1, "1 line is", lambda store: store.replace(store.open, b"tea", b"tda")),
    "line-flipped-crc": (1, "1 line is", _flip_crc),
    "line-edited": (1, "1 line is", lambda store: store.replace(store.open, b"user", b"assistant")),
    "line-without-crc": (
        *(1, "1 line is"),
        lambda store: store.lines(
            store.open, lambda lines: [lines[0][:-19] + b" " * 17 + b"}\n", *lines[1:]]
        ),
    ),
    "line-with-crc-inside": (1, "1 line is", lambda store: store.replace(store.open, b'"}\n', b'","x":1}\n')),
    "line-space-behind-crc": (1, "1 line is", lambda store: store.replace(store.open, b'"}\n', b'" }\n')),
    "lines-glued": (1, "1 line is", lambda store: store.replace(store.open, b"\n", b" ")),
    "memory-edited": (
        *(1, "1 line is"),
        lambda store: store.replace(store.log / "memory" / store.open.name, b"tea", b"gin"),
    ),
    "sealed-gone": (3, "is gone", lambda store: store.sealed.unlink()),
    "sealed-cut": (3, ", has ", lambda store: store.sealed.write_bytes(store.sealed.read_bytes()[:-1])),
    "sealed-empty": (3, "has 0", lambda store: store.sealed.write_bytes(b"")),
    "sealed-flipped-bit": (
        3,
        "differ from those sealed",
        lambda store: store.replace(store.sealed, b"left", b"lefv"),
    ),
    "sealed-zeroed": (
        3,
        "differ from those sealed",
        lambda store: store.replace(store.sealed, b"left", b"\0" * 4),
    ),
    "sealed-lines-swapped": (
        *(3, "differ from those sealed"),
        lambda store: store.lines(store.sealed, lambda lines: [lines[1], lines[0], lines[2]]),
    ),
    "sealed-line-removed": (3, ", has ", lambda store: store.lines(store.sealed, lambda lines: lines[1:])),
    "sealed-line-repeated": (
        *(3, ", has "),
        lambda store: store.lines(store.sealed, lambda lines: [*lines, lines[0]]),
    ),
    "sealed-line-added": (
        *(3, ", has "),
        lambda store: store.add(store.sealed, b'{"role":"user","content":"late"}\n'),
    ),
    "sealed-with-crlf": (3, ", has ", lambda store: store.replace(store.sealed, b"\n", b"\r\n")),
    "sealed-renamed": (
        *(3, "is gone"),
        lambda store: store.sealed.rename(store.sealed.with_name(store.sealed.name.replace("24", "23"))),
    ),
    "sealed-swapped-files": (3, ", has ", _swap),
    "sealed-stream-gone": (3, "is gone", lambda store: shutil.rmtree(store.log / CHAT)),
    "seals-gone": (3, "its seal is missing", lambda store: store.seals.unlink()),
    "seals-empty": (3, "its seal is missing", lambda store: store.seals.write_bytes(b"")),
    "seals-first-removed": (
        *(3, ".jsonl:1: broken_chain"),
        lambda store: store.lines(store.seals, lambda lines: lines[1:]),
    ),
    "seals-last-removed": (
        *(3, "its seal is missing"),
        lambda store: store.lines(store.seals, lambda lines: lines[:-1]),
    ),
    "seals-swapped": (
        *(3, "broken_chain"),
        lambda store: store.lines(store.seals, lambda lines: [lines[1], lines[0], *lines[2:]]),
    ),
    "seals-repeated": (
        *(3, "broken_chain"),
        lambda store: store.lines(store.seals, lambda lines: [*lines, lines[-1]]),
    ),
    "seals-flipped-bit": (
        *(3, ".jsonl:1: bad_crc"),
        lambda store: store.replace(store.seals, b'"lines":3', b'"lines":2'),
    ),
    "seals-forged": (3, "broken_chain", _forge),
    "seals-second": (3, "second_seal", _second_seal),
    "open-gone": (3, "is gone; ", _after_a_projection(lambda store: store.open.unlink())),
    "open-cut": (
        *(3, "were read before"),
        _after_a_projection(lambda store: store.lines(store.open, lambda lines: lines[:2])),
    ),
    "open-edited": (
        *(3, "read before, have changed"),
        _after_a_projection(lambda store: store.replace(store.open, b"tea", b"gin")),
    ),
    "open-stream-gone": (
        3,
        "is gone; ",
        _after_a_projection(lambda store: shutil.rmtree(store.log / "memory")),
    ),
    "open-stream-linked": (
        3,
        "is gone; ",
        _after_a_projection(lambda store: _linked(store, "memory")),
    ),
    "sealed-stream-linked": (3, ", is gone", lambda store: _linked(store, CHAT)),
    "stream-that-is-a-loop": (3, ", is gone", lambda store: _linked(store, CHAT, is_loop=True)),
    "other-flipped-bit": (
        *(3, "differ from those sealed"),
        _of_another_copy(lambda other, store: other.replace(other.sealed, b"left", b"lefv")),
    ),
    "other-line-added": (
        *(3, ", has "),
        _of_another_copy(lambda other, store: other.add(other.sealed, b'{"role":"user","content":"late"}\n')),
    ),
    "other-open-cut": (
        *(3, "were read before"),
        _of_another_copy(_cut_once_it_was_read),
    ),
    "other-seals-first-removed": (
        *(3, ".jsonl:1: broken_chain"),
        _of_another_copy(lambda other, store: other.lines(other.seals, lambda lines: lines[1:])),
    ),
    "other-seals-flipped-bit": (
        *(3, ".jsonl:1: bad_crc"),
        _of_another_copy(lambda other, store: other.replace(other.seals, b'"lines":3', b'"lines":2')),
    ),
    "conflict-copy": (3, "is a conflict copy", lambda store: _conflict_copy(store.open)),
    "conflict-copy-of-seals": (3, "is a conflict copy", lambda store: _conflict_copy(store.seals)),
    "stranger": (1, "is not a segment", lambda store: store.add(store.log / "notes.txt", b"tea\n")),
}
"""By name: the exit code of `verify`, what it says, and the damage."""


OLDER: dict[str, dict[str, Any]] = json.loads((FIXTURES / "damaged/expected.json").read_text())
"""By name the stores of an older memlog, with what `verify` says of each."""


def make(folder: Path, name: str) -> Path:
    """Make the store of this name in `folder`, and return its folder."""
    *_, plant = (CLEAN | DAMAGED)[name]
    store = Store(folder / name)
    store.fill()
    plant(store)
    return store.folder


def make_older(folder: Path) -> None:
    """Make the stores of an older memlog in `folder`."""
    for name in OLDER:
        store = OlderStore(folder / name)
        store.fill()
        plant = (CLEAN | DAMAGED)[name][-1]
        plant(store)


if __name__ == "__main__":
    for each in (*CLEAN, *DAMAGED):
        make(Path(sys.argv[1]), each)
    sys.stdout.write(f"{len(CLEAN)} clean and {len(DAMAGED)} damaged stores in {sys.argv[1]}\n")

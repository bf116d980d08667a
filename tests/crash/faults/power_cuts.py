"""Every state in which a power cut may leave the files, made from a trace of what was asked of the disk.

The disk here keeps less than any real one promises. After a cut there is:

- of a file: what was synced. Of what was written since: any prefix, zeros of the same length, a prefix and
  zeros, all but one write;
- of a folder: the names that were synced. Of each name that was made, changed or removed since: the old
  state or the new one, whatever became of the others.
"""

import json
import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, product
from math import prod
from pathlib import Path

from memlog.eventlog.files import disk
from memlog.eventlog.log import layout
from tests.support.recorded_disk import TRUNCATE, Operation, Trace

State = dict[str, bytes | None]
"""What a walk below the root would find: bytes by path, a folder before what is in it; None is a folder."""

_SHORT = 256
"""A write of no more bytes is cut at each; of a longer one, some cuts are drawn."""

_SECTOR = 512
"""Where a write within a file is cut; what is appended to one is cut anywhere."""

_SUBSETS = 4
"""Of so many changes of names, every subset may be what is left; of more, some are drawn."""

_OF_SEGMENT = re.compile(rb'^\{"stream":("[^"\n]*"),"segment":("[^"\n]*"),"inode".*$', re.MULTILINE)
_INODE = re.compile(rb'"inode":\d+,"generation":(?:\d+|null)')


@dataclass
class Cut:
    """A state that a power cut may leave, and the events that had been acknowledged.

    after: how many operations of the trace had been done.
    """

    after: int
    state: State
    acknowledged: frozenset[str]


def cuts(
    disk: "SimulatedDisk", trace: Trace, *, seed: int, at_each: int, share: float = 1.0
) -> Iterator[Cut]:
    """The states after a cut before the first operation, and after each; none twice.

    disk: as it was before the trace.
    at_each: of more states after one operation, so many are drawn.
    share: of the writes, after so many of which the power is cut; it is after each other operation.
    """
    chance, seen = random.Random(seed), set()
    for number in range(len(trace) + 1):
        last = trace[number - 1] if number else None
        if last is not None and not disk.play(last):
            continue
        if last is not None and last.call == "write" and chance.random() > share:
            continue
        acknowledged = frozenset(disk.acknowledged)
        for state in disk.states(chance, at_each):
            key = hash((acknowledged, tuple(state.items())))
            if key not in seen:
                seen.add(key)
                yield Cut(number, state, acknowledged)


def materialised(state: State, root: Path) -> None:
    """Make `root`, with what stands in `state`: a power cut leaves each file its inode, and makes no copy."""
    root.mkdir()
    for name, data in state.items():
        if data is None:
            (root / name).mkdir(mode=0o700)
        else:
            with open(os.open(root / name, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
                file.write(_naming_inode(file.fileno(), data) if _names_its_inode(Path(name)) else data)
    for path in root.rglob(f"{layout.WRITERS}/*.segments"):
        path.write_bytes(
            _OF_SEGMENT.sub(partial(_naming_inode_of, path.parents[1] / "log"), path.read_bytes())
        )


def _naming_inode_of(log: Path, line: re.Match[bytes]) -> bytes:
    """A line of a file of segments, with the inode of the segment that it names."""
    stream, segment = json.loads(line[1]), json.loads(line[2])
    try:
        fd = os.open(log / stream / segment, os.O_RDONLY)
    except FileNotFoundError:
        return line[0]
    try:
        return _naming_inode(fd, line[0])
    finally:
        os.close(fd)


def _names_its_inode(path: Path) -> bool:
    return path.parent.name == layout.WRITERS or path.name == layout.WATERMARKS


def _naming_inode(fd: int, data: bytes) -> bytes:
    """`data` with the inode of the open file."""
    generation = disk.inode_generation(fd)
    here = b'"inode":%d,"generation":%s' % (os.fstat(fd).st_ino, json.dumps(generation).encode())
    return _INODE.sub(here, data, count=1)


@dataclass(eq=False)
class _File:
    """durable: what was synced; pending: the writes and truncations since, in their order."""

    durable: bytes = b""
    pending: list[Operation] = field(default_factory=list)

    def content(self) -> bytes:
        return _after(self.durable, self.pending)

    def sync(self) -> None:
        self.durable, self.pending = self.content(), []

    def outcomes(self, chance: random.Random) -> "list[_Outcome]":
        """What may stand in it after a cut: first with all writes, last with none."""
        numbers = range(len(self.pending))
        parts = [(number, length) for number in numbers for length in _lengths(self.pending[number], chance)]
        return [
            partial(self._without, frozenset()),
            *[partial(self._without, frozenset({number})) for number in numbers],
            *[partial(self._without, frozenset(chance.sample(numbers, k))) for k in _counts(len(numbers))],
            *[
                partial(self._up_to, number, length, fill)
                for number, length in parts
                for fill in (False, True)
            ],
            *[
                partial(self._up_to, number, 0, fill)
                for number in reversed(numbers)
                for fill in (True, False)
            ],
        ]

    def _without(self, missing: frozenset[int]) -> bytes:
        kept = [operation for number, operation in enumerate(self.pending) if number not in missing]
        return _after(self.durable, kept)

    def _up_to(self, number: int, length: int, fill: bool) -> bytes:
        """The writes before one, and its first bytes; fill: the file already has the size of the whole."""
        part = replace(self.pending[number], data=self.pending[number].data[:length])
        done = self.pending[:number] if length == 0 else [*self.pending[:number], part]
        found = _after(self.durable, done)
        return found + bytes(max(0, len(self.content()) - len(found))) if fill else found


@dataclass(eq=False)
class _Folder:
    """names: what stands in it; durable: what stood in it when it was synced; pending: the changes since."""

    names: "_Names" = field(default_factory=dict)
    durable: "_Names" = field(default_factory=dict)
    pending: "list[_Change]" = field(default_factory=list)

    def change(self, change: "_Change") -> None:
        self.names = _changed(self.names, [change])
        self.pending.append(change)

    def sync(self) -> None:
        self.durable, self.pending = self.names, []

    def outcomes(self, chance: random.Random) -> "list[_Outcome]":
        """What may stand in it after a cut: first with all changes, last with none."""
        return [partial(self._with, kept) for kept in _subsets(len(self.pending), chance)]

    def _with(self, kept: Sequence[bool]) -> "_Names":
        return _changed(
            self.durable, [change for change, keep in zip(self.pending, kept, strict=True) if keep]
        )


_Node = _File | _Folder
_Names = dict[str, _Node]
_Change = dict[str, _Node | None]
"""Names that change together; None is one that goes."""

_Outcome = Callable[[], bytes | _Names]
"""Makes what may stand in a file or folder."""


class SimulatedDisk:
    """A folder as it is, and as it may be after a power cut, while a trace is played to it.

    root: an existing folder. What stands in it now is durable.
    """

    def __init__(self, root: Path) -> None:
        self.acknowledged: set[str] = set()
        self._root = root
        self._top = _standing(root)
        self._open: dict[int, _Node] = {}
        self._places: dict[int, int | None] = {}

    def play(self, operation: Operation) -> bool:
        """Do one operation; return whether it can matter to what a cut leaves."""
        match operation.call:
            case "ack":
                self.acknowledged.update(operation.events)
            case "open":
                return self._opened(operation)
            case "close":
                self._open.pop(operation.fd, None)
                return False
            case "write" | "truncate":
                self._written(operation)
            case "sync" | "sync_data":
                return self._synced(operation.fd)
            case "make_folder":
                self._changed(operation.path, _Folder())
            case "unlink":
                self._changed(operation.path, None)
            case "rename":
                self._renamed(operation.path, operation.target)
            case _:
                return False
        return True

    def states(self, chance: random.Random, limit: int) -> Iterator[State]:
        """At most `limit` of the states that a cut may leave now: all, or so many drawn, extremes first."""
        nodes = [node for node in _below(self._top) if node.pending]
        for chosen in islice(_combined([node.outcomes(chance) for node in nodes], chance, limit), limit):
            fixed = {id(node): make() for node, make in zip(nodes, chosen, strict=True)}
            yield dict(_walked(self._top, fixed))

    def least(self) -> State:
        """What a cut leaves at least: nothing of what was not synced."""
        return dict(_walked(self._top, {}))

    def _opened(self, operation: Operation) -> bool:
        if self._root != operation.path and self._root not in operation.path.parents:
            return False
        node, is_new = self._node(operation.path), False
        if node is None:
            assert operation.flags & os.O_CREAT, f"{operation.path} is not known"
            node, is_new = _File(), True
            self._changed(operation.path, node)
        self._open[operation.fd] = node
        self._places[operation.fd] = None if operation.flags & os.O_APPEND else 0
        if operation.flags & os.O_TRUNC and isinstance(node, _File):
            node.pending.append(Operation(TRUNCATE, offset=0))
        return is_new

    def _written(self, operation: Operation) -> None:
        node = self._open[operation.fd]
        assert isinstance(node, _File)
        offset = operation.offset
        if offset < 0:
            place = self._places[operation.fd]
            offset = len(node.content()) if place is None else place
            self._places[operation.fd] = None if place is None else place + len(operation.data)
        node.pending.append(Operation(operation.call, offset=offset, data=operation.data))

    def _synced(self, fd: int) -> bool:
        node = self._open.get(fd)
        if node is None or not node.pending:
            return False
        node.sync()
        return True

    def _renamed(self, old: Path, new: Path) -> None:
        assert old.parent == new.parent, "only within a folder is a rename one change here"
        node, folder = self._node(old), self._node(old.parent)
        assert isinstance(folder, _Folder)
        assert node is not None
        folder.change({old.name: None, new.name: node})

    def _changed(self, path: Path, node: _Node | None) -> None:
        folder = self._node(path.parent)
        assert isinstance(folder, _Folder)
        folder.change({path.name: node})

    def _node(self, path: Path) -> _Node | None:
        node: _Node | None = self._top
        for name in path.relative_to(self._root).parts:
            assert isinstance(node, _Folder)
            node = node.names.get(name)
        return node


def _standing(path: Path) -> _Folder:
    names: _Names = {
        each.name: _standing(each) if each.is_dir() else _File(each.read_bytes()) for each in path.iterdir()
    }
    return _Folder(names, names)


def _below(folder: _Folder) -> Iterator[_Node]:
    """Everything that may stand somewhere after a cut: what stands now, and what stood."""
    found: dict[int, _Node] = {id(folder): folder}
    waiting: list[_Node] = [folder]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _Folder):
            every = [node.names, node.durable, *node.pending]
            children = [child for names in every for child in names.values() if child is not None]
            waiting += [child for child in children if id(child) not in found]
            found |= {id(child): child for child in children}
    yield from found.values()


def _walked(
    folder: _Folder, fixed: dict[int, bytes | _Names], above: str = ""
) -> Iterator[tuple[str, bytes | None]]:
    names = fixed.get(id(folder), folder.durable)
    assert isinstance(names, dict)
    for name, node in sorted(names.items()):
        if isinstance(node, _Folder):
            yield above + name, None
            yield from _walked(node, fixed, f"{above}{name}/")
        else:
            data = fixed.get(id(node), node.durable)
            assert isinstance(data, bytes)
            yield above + name, data


def _combined(
    outcomes: Sequence[Sequence[_Outcome]], chance: random.Random, limit: int
) -> Iterator[Sequence[_Outcome]]:
    """One outcome of each: all combinations where there are no more than `limit`, else drawn ones."""
    if prod(len(each) for each in outcomes) <= limit:
        yield from product(*outcomes)
        return
    if limit > 2:
        yield [each[0] for each in outcomes]
        yield [each[-1] for each in outcomes]
    while True:
        # Most are drawn one by one; some have all that was asked for but in one place, or nothing but there.
        rest = chance.choice((None, None, 0, -1))
        special = chance.randrange(len(outcomes))
        yield [
            chance.choice(each) if rest is None or number == special else each[rest]
            for number, each in enumerate(outcomes)
        ]


def _counts(of: int) -> list[int]:
    """How many writes are missing, in some draws: a disk need not write in the order in which it was told."""
    return sorted({2, 3, of // 2, of - 2} & set(range(2, of)))


def _subsets(count: int, chance: random.Random) -> Iterator[Sequence[bool]]:
    if count <= _SUBSETS:
        yield from product((True, False), repeat=count)
        return
    yield [True] * count
    for number in range(count):
        yield [each != number for each in range(count)]
        yield [each < number for each in range(count)]
        yield [chance.random() < 0.5 for _ in range(count)]
    yield [False] * count


def _changed(names: _Names, changes: Sequence[_Change]) -> _Names:
    found: _Change = dict(names)
    for change in changes:
        found |= change
    return {name: node for name, node in found.items() if node is not None}


def _after(data: bytes, operations: Sequence[Operation]) -> bytes:
    found = bytearray(data)
    for operation in operations:
        offset, end = operation.offset, operation.offset + len(operation.data)
        found += bytes(max(0, offset - len(found)))
        if operation.call == TRUNCATE:
            del found[offset:]
        else:
            found[offset:end] = operation.data
    return bytes(found)


def _lengths(operation: Operation, chance: random.Random) -> Sequence[int]:
    """How much of a write may have come: every prefix, or drawn ones."""
    length = len(operation.data)
    if length <= _SHORT:
        return range(1, length)
    if length % _SECTOR == 0 or not operation.data.endswith(b"\n"):
        return range(_SECTOR, length, _SECTOR)
    return sorted(chance.sample(range(1, length), _SHORT // 4))

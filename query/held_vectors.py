"""Vectors held in memory, for a process that asks often: they tell which few passages vec0 has to compare.

vec0 reads every vector from the file for each question, at 0.8 µs each; in memory it is 0.07 µs. What is near
is still vec0's word, so that both ways give the same answer to the last bit.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from memlog.projector import vectors
from memlog.projector.passages import Shelf
from memlog.projector.sqlite import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FLOAT_BYTES = 4

_SCANS = 20
"""Reading the vectors takes as long as vec0 takes for so many questions: who asks less never pays it."""

_MOST_BYTES = 64 * 1024 * 1024
"""More is not held: 43,690 vectors of 384 dimensions."""

_MOST_APART = 256
"""So many passages whose vectors are not held are compared one by one, at 16 µs each; with more of them all
are read anew."""

_SLACK = 16
"""So many more than asked for are named, since some may be gone by now."""

_BLUR = 1e-5
"""More than two sums of the same products in another order differ."""


class Few(NamedTuple):
    """Passages that may be the nearest, by chunk number; some may be gone by now.

    floor: whatever is not among them is less similar.
    """

    numbers: list[int]
    floor: float


@dataclass
class _Held:
    """The vectors of a shelf as they stood: of length 1, by chunk number, which is never used again.

    apart: passages that waited for a vector then. last: the greatest number then.
    """

    numbers: "NDArray[np.int64]"
    vectors: "NDArray[np.float32]"
    apart: list[int]
    last: int


class HeldVectors:
    """The vectors of one generation at a time. Nothing is held before the 20th question."""

    def __init__(self) -> None:
        self._of: tuple[Connection, str | None] | None = None
        self._held: dict[str, _Held] = {}
        self._scans: dict[str, int] = {}

    def few(self, db: Connection, shelf: Shelf, vector: bytes, limit: int) -> Few | None:
        """The passages of a shelf that may be the `limit` nearest to `vector`; None where all may be."""
        self._follow(db)
        held = self._held.get(shelf.vectors) or self._loaded(db, shelf, len(vector) // _FLOAT_BYTES)
        if held is None:
            return None
        apart = _apart(db, shelf, held)
        if len(apart) > _MOST_APART:
            self.drop(shelf)
            return None
        near = _near(held, vector, limit + _SLACK)
        # Where many are alike, to look each of them up takes longer than to go through all.
        if len(near.numbers) > 2 * (limit + _SLACK):
            return None
        return Few([*near.numbers, *apart], near.floor)

    def drop(self, shelf: Shelf) -> None:
        """Hold nothing of a shelf any more, until it has been asked often enough again."""
        self._held.pop(shelf.vectors, None)
        self._scans.pop(shelf.vectors, None)

    def _follow(self, db: Connection) -> None:
        of = db, vectors.model_of(db)
        if self._of is None or self._of[0] is not db or self._of[1] != of[1]:
            self._of = of
            self._held, self._scans = {}, {}

    def _loaded(self, db: Connection, shelf: Shelf, dimension: int) -> _Held | None:
        scans = self._scans[shelf.vectors] = self._scans.get(shelf.vectors, 0) + 1
        if scans % _SCANS or not _may_be_held(db, shelf, dimension):
            return None
        return self._held.setdefault(shelf.vectors, _read(db, shelf, dimension))


def _may_be_held(db: Connection, shelf: Shelf, dimension: int) -> bool:
    passages, waiting = db.execute(
        f"SELECT (SELECT count(*) FROM {shelf.chunks}), (SELECT count(*) FROM {shelf.queue})"
    ).fetchone()
    return bool(passages * dimension * _FLOAT_BYTES <= _MOST_BYTES and waiting <= _MOST_APART)


def _read(db: Connection, shelf: Shelf, dimension: int) -> _Held:
    import numpy as np

    rows = db.execute(f"SELECT rowid, embedding FROM {shelf.vectors}").fetchall()
    read = np.frombuffer(b"".join(embedding for _, embedding in rows), np.float32).reshape(-1, dimension)
    lengths = np.linalg.norm(read, axis=1, keepdims=True)
    (last,) = db.execute(f"SELECT coalesce(max(chunk_no), 0) FROM {shelf.chunks}").fetchone()
    return _Held(
        np.array([number for number, _ in rows], np.int64),
        read / np.maximum(lengths, _BLUR),
        [number for (number,) in db.execute(f"SELECT chunk_no FROM {shelf.queue}")],
        last,
    )


def _apart(db: Connection, shelf: Shelf, held: _Held) -> list[int]:
    """The passages whose vectors are not held, if they have any."""
    newer = db.execute(
        f"SELECT chunk_no FROM {shelf.chunks} WHERE chunk_no > ? LIMIT ?", (held.last, _MOST_APART + 1)
    )
    return [*held.apart, *(number for (number,) in newer)]


def _near(held: _Held, vector: bytes, count: int) -> Few:
    """Those of the held vectors that may be the `count` nearest."""
    import numpy as np

    if len(held.numbers) <= count:
        return Few(held.numbers.tolist(), -math.inf)
    asked = np.frombuffer(vector, np.float32)
    # Not the product of BLAS: its threads wait for each other on a busy machine (p95 of 12 ms for 0.7).
    cosines = np.einsum("ij,j->i", held.vectors, asked / max(float(np.linalg.norm(asked)), _BLUR))
    least = float(np.partition(cosines, -count)[-count]) - _BLUR
    return Few(held.numbers[cosines >= least].tolist(), least + _BLUR / 2)

"""Vectors held in memory, for a process that asks often.

vec0 reads every vector from the file for each question, at 0.8 µs each; in memory it is 0.07 µs.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from memlog.projector.passages import vectors
from memlog.projector.passages.index import Shelf
from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query.search.similarity import cosines, nearest_first, similarities

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


class _ShelfVectors(msgspec.Struct):
    """The vectors of a shelf as they stood, by chunk number, which is never used again.

    vectors: [passages, dimension]. lengths: of each. apart: passages that waited for a vector then.
    last: the greatest number then.
    """

    numbers: "NDArray[np.int64]"
    vectors: "NDArray[np.float32]"
    lengths: "NDArray[np.float32]"
    apart: list[int]
    last: int


class _Near(NamedTuple):
    """Rows of what is held; whatever is not among them is less similar than `floor`."""

    rows: "NDArray[np.intp]"
    floor: float


class HeldVectors:
    """The vectors of one generation at a time. Nothing is held before the 20th question."""

    def __init__(self) -> None:
        self._of: tuple[Connection, str | None] | None = None
        self._held: dict[str, _ShelfVectors] = {}
        self._scans: dict[str, int] = {}

    def nearest(self, db: Connection, shelf: Shelf, vector: bytes, limit: int) -> dict[int, float] | None:
        """The `limit` passages of a shelf nearest to `vector`, nearest first, by chunk number with their
        cosine similarities; None where vec0 has to tell."""
        self._follow(db)
        held = self._held.get(shelf.vectors) or self._loaded(db, shelf, len(vector) // _FLOAT_BYTES)
        if held is None:
            return None
        apart, near = _apart(db, shelf, held), _near(held, vector, limit + _SLACK)
        # Where many are alike, or much is new, to look at each of them takes longer than vec0 does.
        if len(near.rows) > 2 * (limit + _SLACK):
            return None
        if len(apart) <= _MOST_APART:
            found = _similarities(held, near, vector) | similarities(db, shelf, apart, vector)
            nearest = nearest_first(_standing(db, shelf, found), limit)
            if near.floor == -math.inf or (len(nearest) == limit and min(nearest.values()) > near.floor):
                return nearest
        self._drop(shelf)
        return None

    def _drop(self, shelf: Shelf) -> None:
        self._held.pop(shelf.vectors, None)
        self._scans.pop(shelf.vectors, None)

    def _follow(self, db: Connection) -> None:
        of = db, vectors.model_of(db)
        if self._of != of:
            self._of = of
            self._held, self._scans = {}, {}

    def _loaded(self, db: Connection, shelf: Shelf, dimension: int) -> _ShelfVectors | None:
        scans = self._scans[shelf.vectors] = self._scans.get(shelf.vectors, 0) + 1
        if scans % _SCANS or not _may_be_held(db, shelf, dimension):
            return None
        return self._held.setdefault(shelf.vectors, _read(db, shelf, dimension))


def _may_be_held(db: Connection, shelf: Shelf, dimension: int) -> bool:
    passages, waiting = db.execute(
        f"SELECT (SELECT count(*) FROM {shelf.chunks}), (SELECT count(*) FROM {shelf.queue})"
    ).fetchone()
    return bool(passages * dimension * _FLOAT_BYTES <= _MOST_BYTES and waiting <= _MOST_APART)


def _read(db: Connection, shelf: Shelf, dimension: int) -> _ShelfVectors:
    import numpy as np

    rows = db.execute(f"SELECT rowid, embedding FROM {shelf.vectors}").fetchall()
    read = np.frombuffer(b"".join(embedding for _, embedding in rows), np.float32).reshape(-1, dimension)
    (last,) = db.execute(f"SELECT coalesce(max(chunk_no), 0) FROM {shelf.chunks}").fetchone()
    return _ShelfVectors(
        np.array([number for number, _ in rows], np.int64),
        read,
        np.maximum(np.linalg.norm(read, axis=1), _BLUR),
        [number for (number,) in db.execute(f"SELECT chunk_no FROM {shelf.queue}")],
        last,
    )


def _apart(db: Connection, shelf: Shelf, held: _ShelfVectors) -> list[int]:
    """The passages whose vectors are not held, if they have any."""
    newer = db.execute(
        f"SELECT chunk_no FROM {shelf.chunks} WHERE chunk_no > ? LIMIT ?", (held.last, _MOST_APART + 1)
    )
    return [*held.apart, *(number for (number,) in newer)]


def _near(held: _ShelfVectors, vector: bytes, count: int) -> _Near:
    """The held vectors that may be the `count` nearest."""
    import numpy as np

    if len(held.numbers) <= count:
        return _Near(np.arange(len(held.numbers)), -math.inf)
    asked = np.frombuffer(vector, np.float32)
    # Not the product of BLAS: its threads wait for each other on a busy machine (p95 of 12 ms for 0.7).
    products = np.einsum("ij,j->i", held.vectors, asked / max(float(np.linalg.norm(asked)), _BLUR))
    rough = products / held.lengths
    least = float(np.partition(rough, -count)[-count]) - _BLUR
    return _Near(np.flatnonzero(rough >= least), least + _BLUR / 2)


def _similarities(held: _ShelfVectors, near: _Near, vector: bytes) -> dict[int, float]:
    found = cosines(held.vectors[near.rows], vector)
    return dict(zip(held.numbers[near.rows].tolist(), found, strict=True))


def _standing(db: Connection, shelf: Shelf, found: dict[int, float]) -> dict[int, float]:
    """Those of `found` that are still there."""
    rows = db.execute(
        f"SELECT chunk_no FROM {shelf.chunks} WHERE chunk_no IN (SELECT value FROM json_each(?))",
        (as_list([*found]),),
    )
    return {number: found[number] for (number,) in rows}

"""Cosine similarities between passages and a vector, from the file or from vectors cached in memory.

For each question, vec0 reads every vector from the file, at 0.8 µs each; a cached one takes 0.07 µs.
"""

import math
from typing import TYPE_CHECKING

import msgspec

from memlog.projector.passages import vectors
from memlog.projector.passages.index import PassageTables
from memlog.projector.sqlite import Connection, to_json_list

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FLOAT_BYTES = 4

_SCANS = 20
"""After this many questions, the vectors are cached: reading them takes as long as this many vec0 scans."""

_MOST_BYTES = 64 * 1024 * 1024
"""The most bytes of cached vectors: 43,690 vectors of 384 dimensions."""

_MAX_UNCACHED = 256
"""The most passages without a cached vector that are compared one by one, at 16 µs each. With more, the cache
is reread."""

_SLACK = 16
"""The number of additional candidates taken, since some passages may have been deleted."""

_ROUNDING = 1e-5
"""More than the rounding error between sums of the same products in different orders."""

_MIN_LENGTH = 1e-12


class _ShelfVectors(msgspec.Struct):
    """A snapshot of a shelf's vectors, in order of chunk number. Chunk numbers are never reused.

    vectors: [passages, dimension]. lengths: their norms. uncached: passages without a vector at the time.
    last: the highest chunk number.
    """

    numbers: "NDArray[np.int64]"
    vectors: "NDArray[np.float32]"
    lengths: "NDArray[np.float32]"
    uncached: list[int]
    last: int


class HeldVectors:
    """A cache of one generation's vectors, filled at the 20th question."""

    def __init__(self) -> None:
        self._of: tuple[Connection | str | None, ...] | None = None
        self._held: dict[str, _ShelfVectors] = {}
        self._scans: dict[str, int] = {}

    def find_nearest_passages(
        self, db: Connection, shelf: PassageTables, vector: bytes, limit: int
    ) -> dict[int, float] | None:
        """Return the cosine similarities of the `limit` passages nearest to `vector`, nearest first.

        Keys are chunk numbers. None if the cache cannot tell, so that vec0 must search instead.
        """
        self._drop_stale(db)
        held = self._held.get(shelf.vectors) or self._load_when_due(db, shelf, len(vector) // _FLOAT_BYTES)
        if held is None:
            return None
        uncached = _uncached_passages(db, shelf, held)
        rows, floor = _shortlist(held, vector, limit + _SLACK)
        # If many are alike, or many are new, looking each up takes longer than vec0.
        if len(rows) > 2 * (limit + _SLACK):
            return None
        if len(uncached) <= _MAX_UNCACHED:
            of_rows = compute_cosines_of_rows(held.vectors[rows], vector)
            similar = dict(zip(held.numbers[rows].tolist(), of_rows, strict=True))
            similar |= compute_similarities_of_passages(db, shelf, uncached, vector)
            among = "WHERE chunk_no IN (SELECT value FROM json_each(?))"
            present = db.execute(f"SELECT chunk_no FROM {shelf.chunks} {among}", (to_json_list([*similar]),))
            nearest = take_highest_similarities({number: similar[number] for (number,) in present}, limit)
            if floor == -math.inf or (len(nearest) == limit and min(nearest.values()) > floor):
                return nearest
        self._held.pop(shelf.vectors, None)
        self._scans.pop(shelf.vectors, None)
        return None

    def _drop_stale(self, db: Connection) -> None:
        of = db, *(vectors.read_model_of_vectors(db, of) for of in vectors.SETS)
        if self._of != of:
            self._of = of
            self._held, self._scans = {}, {}

    def _load_when_due(self, db: Connection, shelf: PassageTables, dimension: int) -> _ShelfVectors | None:
        scans = self._scans[shelf.vectors] = self._scans.get(shelf.vectors, 0) + 1
        if scans % _SCANS or not _do_vectors_fit_in_memory(db, shelf, dimension):
            return None
        return self._held.setdefault(shelf.vectors, _read_vectors_of_shelf(db, shelf, dimension))


def _do_vectors_fit_in_memory(db: Connection, shelf: PassageTables, dimension: int) -> bool:
    passages, waiting = db.execute(
        f"SELECT (SELECT count(*) FROM {shelf.chunks}), (SELECT count(*) FROM {shelf.queue})"
    ).fetchone()
    return bool(passages * dimension * _FLOAT_BYTES <= _MOST_BYTES and waiting <= _MAX_UNCACHED)


def _read_vectors_of_shelf(db: Connection, shelf: PassageTables, dimension: int) -> _ShelfVectors:
    import numpy as np

    rows = db.execute(f"SELECT rowid, embedding FROM {shelf.vectors}").fetchall()
    read = np.frombuffer(b"".join(embedding for _, embedding in rows), np.float32).reshape(-1, dimension)
    (last,) = db.execute(f"SELECT coalesce(max(chunk_no), 0) FROM {shelf.chunks}").fetchone()
    return _ShelfVectors(
        np.array([number for number, _ in rows], np.int64),
        read,
        np.maximum(np.linalg.norm(read, axis=1), _ROUNDING),
        [number for (number,) in db.execute(f"SELECT chunk_no FROM {shelf.queue}")],
        last,
    )


def _uncached_passages(db: Connection, shelf: PassageTables, held: _ShelfVectors) -> list[int]:
    newer = db.execute(
        f"SELECT chunk_no FROM {shelf.chunks} WHERE chunk_no > ? LIMIT ?", (held.last, _MAX_UNCACHED + 1)
    )
    return [*held.uncached, *(number for (number,) in newer)]


def _shortlist(held: _ShelfVectors, vector: bytes, count: int) -> "tuple[NDArray[np.intp], float]":
    """Return the rows of the cached vectors that may be among the `count` nearest.

    All other rows score below the number returned with them.
    """
    import numpy as np

    if len(held.numbers) <= count:
        return np.arange(len(held.numbers)), -math.inf
    query = np.frombuffer(vector, np.float32)
    # Not a BLAS product: its threads wait for each other on a busy machine (p95 of 12 ms instead of 0.7).
    products = np.einsum("ij,j->i", held.vectors, query / max(float(np.linalg.norm(query)), _ROUNDING))
    rough = products / held.lengths
    least = float(np.partition(rough, -count)[-count]) - _ROUNDING
    return np.flatnonzero(rough >= least), least + _ROUNDING / 2


def compute_similarities_of_passages(
    db: Connection, shelf: PassageTables, numbers: list[int], vector: bytes
) -> dict[int, float]:
    """Return the cosine similarity to `vector` of each passage that has a vector, keyed by chunk number.

    vector: float32, little-endian, with the dimension of the generation's model. Takes 16 µs per passage.
    """
    known, read = stored_vectors(db, shelf, numbers)
    return dict(zip(known, compute_cosines_of_rows(read, vector), strict=True))


def stored_vectors(
    db: Connection, shelf: PassageTables, numbers: list[int]
) -> "tuple[list[int], NDArray[np.float32]]":
    """Return the `numbers` that have a vector, and their vectors, of shape [passages, dimension]."""
    import numpy as np

    # CROSS JOIN: vec0 looks each of them up, and never scans.
    rows = db.execute(
        f"SELECT v.rowid, v.embedding FROM json_each(?) a CROSS JOIN {shelf.vectors} v"
        " WHERE v.rowid = a.value",
        (to_json_list(numbers),),
    ).fetchall()
    read = np.frombuffer(b"".join(embedding for _, embedding in rows), np.float32)
    return [number for number, _ in rows], read.reshape(len(rows), -1) if rows else read.reshape(0, 1)


def compute_cosines_of_rows(vectors: "NDArray[np.float32]", vector: bytes) -> list[float]:
    """Return the cosine similarity to `vector` of each row of `vectors`, [passages, dimension].

    Each is computed separately in double precision, so that it does not depend on the other rows.
    """
    import numpy as np

    query = np.frombuffer(vector, np.float32).astype(np.float64)
    wide = vectors.astype(np.float64)
    # Not einsum: its order of summation depends on the number of rows.
    lengths = np.sqrt((wide * wide).sum(axis=1)) * np.sqrt((query * query).sum())
    similar: list[float] = ((wide * query).sum(axis=1) / np.maximum(lengths, _MIN_LENGTH)).tolist()
    return similar


def take_highest_similarities(similar: dict[int, float], limit: int) -> dict[int, float]:
    """Return the `limit` highest similarities, highest first, with ties ordered by chunk number."""
    ordered = sorted(similar.items(), key=lambda each: (-each[1], each[0]))
    return dict(ordered[:limit])

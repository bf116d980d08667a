"""How near passages are to a vector: by cosine, reckoned in one way wherever the vectors come from."""

from typing import TYPE_CHECKING

from memlog.projector.passages.index import Shelf
from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NO_LENGTH = 1e-12


def similarities(db: Connection, shelf: Shelf, numbers: list[int], vector: bytes) -> dict[int, float]:
    """The cosine similarities to `vector` of those passages of `numbers` that have a vector, by chunk number.

    vector: float32, little endian, of the dimension of the generation's model. A passage takes 16 µs.
    """
    import numpy as np

    # CROSS JOIN: vec0 is asked for each of them, never for all.
    rows = db.execute(
        f"SELECT v.rowid, v.embedding FROM json_each(?) a CROSS JOIN {shelf.vectors} v"
        " WHERE v.rowid = a.value",
        (as_list(numbers),),
    ).fetchall()
    read = np.frombuffer(b"".join(embedding for _, embedding in rows), np.float32)
    found = cosines(read.reshape(len(rows), -1) if rows else read.reshape(0, 1), vector)
    return dict(zip((number for number, _ in rows), found, strict=True))


def cosines(vectors: "NDArray[np.float32]", vector: bytes) -> list[float]:
    """The cosine similarity of each of `vectors` [passages, dimension] to `vector`.

    Each is reckoned by itself, in double precision: the same two vectors give the same number, whatever
    others stand beside them.
    """
    import numpy as np

    asked = np.frombuffer(vector, np.float32).astype(np.float64)
    wide = vectors.astype(np.float64)
    # Not einsum: how it adds up a row depends on how many there are.
    lengths = np.sqrt((wide * wide).sum(axis=1)) * np.sqrt((asked * asked).sum())
    found: list[float] = ((wide * asked).sum(axis=1) / np.maximum(lengths, _NO_LENGTH)).tolist()
    return found


def nearest_first(found: dict[int, float], limit: int) -> dict[int, float]:
    """The `limit` greatest similarities, greatest first; of equal ones, that of the smaller number."""
    ordered = sorted(found.items(), key=lambda each: (-each[1], each[0]))
    return dict(ordered[:limit])

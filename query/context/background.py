"""Sentences and prompts that every store is compared with, and a sample of the store itself.

How near a prompt is to an entry tells little by itself: some prompts are near everything. So a similarity is
compared with those of sentences that have nothing to do with the store, and of a part of its own entries.
"""

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memlog.projector.embedding.models import Model, is_bundled
from memlog.projector.passages import index, vectors
from memlog.projector.passages.index import Shelf
from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.projector.text.stemming import ENGLISH, language_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TEXTS = Path(__file__).with_name("background.json")
"""By language: `sentences` such as memories have, and prompts of two kinds: `personal` ones, which a memory
answers, and `general` ones. Written for memlog."""

VECTORS = Path(__file__).with_name("background.f16")
"""The vectors of `TEXTS` in their order by the bundled model, as float16. `python -m tests.eval.told
--background` writes it."""

_LARGEST_SAMPLE = {index.MEMORY: 400, index.DOCS: 100}
"""Passages of a shelf. Of fixtures/told all are in it; a sample bounds what a large store costs."""


def reads(model: Model, text: str) -> bool:
    """Whether a model reads the language of a text. The bundled model reads English; of others nothing is
    known."""
    return not is_bundled(model) or language_of(text) == ENGLISH


class BackgroundVectors(NamedTuple):
    """Vectors of the background, [texts, dimension]."""

    sentences: "NDArray[np.float32]"
    personal: "NDArray[np.float32]"
    general: "NDArray[np.float32]"


def texts() -> list[str]:
    """The texts of the background: sentences, personal and general prompts."""
    (kinds,) = json.loads(TEXTS.read_bytes()).values()
    return [text for of_kind in kinds.values() for text in of_kind]


@cache
def background() -> BackgroundVectors:
    """The background in English, as the bundled model sees it."""
    import numpy as np

    (kinds,) = json.loads(TEXTS.read_bytes()).values()
    read = np.fromfile(VECTORS, np.float16).astype(np.float32).reshape(sum(map(len, kinds.values())), -1)
    ends = np.cumsum([len(of_kind) for of_kind in kinds.values()])[:-1]
    return BackgroundVectors(*np.split(read, ends))


class StoreSample:
    """Vectors of some passages of a store in English, or of all languages for a model that reads all.

    Every 2ⁿth passage by number is in it, so that a new message seldom changes it, and the same log gives
    the same sample. What was read is kept for the next prompt.
    """

    def __init__(self) -> None:
        self._of: tuple[Connection, str | None] | None = None
        self._known: dict[tuple[str, int], NDArray[np.float32] | None] = {}

    def vectors(self, db: Connection, model: Model) -> "list[NDArray[np.float32]]":
        """The vectors of the sample, each [dimension]."""
        of = db, vectors.model_of(db)
        if self._of != of:
            self._of, self._known = of, {}
        known = {}
        for shelf, most in _LARGEST_SAMPLE.items():
            numbers = _sampled(db, shelf, most)
            new = [number for number in numbers if (shelf.vectors, number) not in self._known]
            read = _read(db, shelf, new, model) if new else {}
            for number in numbers:
                key = shelf.vectors, number
                known[key] = self._known[key] if key in self._known else read.get(number)
        # Of passages without a vector, nothing is known yet.
        self._known = known
        return [vector for vector in known.values() if vector is not None]


def _sampled(db: Connection, shelf: Shelf, most: int) -> list[int]:
    """The numbers of the passages in the sample."""
    (last,) = db.execute(f"SELECT coalesce(max(chunk_no), 0) FROM {shelf.chunks}").fetchone()
    step = 1
    while last // step > most:
        step *= 2
    rows = db.execute(
        f"SELECT chunk_no FROM {shelf.chunks} WHERE chunk_no IN (SELECT value FROM json_each(?))",
        (as_list([*range(step, last + 1, step)]),),
    )
    return [number for (number,) in rows]


def _read(db: Connection, shelf: Shelf, numbers: list[int], model: Model) -> "dict[int, NDArray[np.float32]]":
    """The vectors of passages by number; none of those in a language that the model does not read."""
    import numpy as np

    # CROSS JOIN: vec0 reads each of them, never all.
    rows = db.execute(
        f"SELECT c.chunk_no, c.content, v.embedding FROM json_each(?) a CROSS JOIN {shelf.chunks} c"
        f" CROSS JOIN {shelf.vectors} v WHERE c.chunk_no = a.value AND v.rowid = a.value",
        (as_list(numbers),),
    )
    return {
        number: np.frombuffer(embedding, np.float32)
        for number, content, embedding in rows
        if reads(model, content)
    }

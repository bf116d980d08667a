"""Reference texts for scoring a context: background sentences and prompts, and a sample of the store.

A similarity alone says little, since some prompts are close to everything. It is therefore compared with the
prompt's similarities to unrelated sentences and to a sample of the store.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memlog.projector.embedding.models import Model, is_bundled_model
from memlog.projector.passages import index, vectors
from memlog.projector.passages.index import PassageTables
from memlog.projector.passages.vectors import VectorSet
from memlog.projector.sqlite import Connection, to_json_list
from memlog.projector.text.stemming import ENGLISH, OTHER_SCRIPT, detect_language
from memlog.projector.text.tokens import is_cjk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LANGUAGES = ("english", "russian", "finnish", "german", "chinese")
"""The languages of the background."""

TEXTS = Path(__file__).with_name("background.json")
"""For each language, `sentences` that resemble memories, and two kinds of prompts: `personal` ones, which a
memory could answer, and `general` ones. Written for memlog."""

VECTORS = Path(__file__).with_name("background.f16")
"""The bundled model's vectors of the English `TEXTS`, in order, as float16. `python -m tests.eval.told
--background` writes this file."""

MULTILINGUAL_VECTORS = Path(__file__).with_name("background-multilingual.f16")
"""The multilingual model's vectors of all `TEXTS`."""

_LARGEST_SAMPLE = (400, 100)
"""The most passages sampled from each shelf, which bounds the cost of a large store. The sample includes all
passages of fixtures/told."""


def supports_language(model: Model, text: str) -> bool:
    """Whether `model` can read the language of `text`: the bundled model only reads English."""
    return not is_bundled_model(model) or detect_language(text) == ENGLISH


def detect_background_language(text: str) -> str:
    """Detect the language of `text`; if it has no background texts, the result is not in `LANGUAGES`."""
    found = detect_language(text)
    return "chinese" if found == OTHER_SCRIPT and any(map(is_cjk, text)) else found


class BackgroundVectors(NamedTuple):
    """Vectors of one language's background texts, each array of shape [texts, dimension]."""

    sentences: "NDArray[np.float32]"
    personal: "NDArray[np.float32]"
    general: "NDArray[np.float32]"


def load_background_texts(name: str) -> dict[str, list[str]]:
    """Return a language's background texts, keyed by kind: sentences, personal prompts, general prompts."""
    kinds: dict[str, list[str]] = json.loads(TEXTS.read_bytes())[name]
    return kinds


@cache
def english_background_vectors() -> BackgroundVectors:
    """Return the bundled model's vectors for the English background texts."""
    return _read_vectors(VECTORS, [ENGLISH])[ENGLISH]


@cache
def multilingual_background_vectors() -> dict[str, BackgroundVectors]:
    """Return the multilingual model's vectors for the background texts, keyed by language."""
    return _read_vectors(MULTILINGUAL_VECTORS, LANGUAGES)


def _read_vectors(path: Path, names: Sequence[str]) -> dict[str, BackgroundVectors]:
    import numpy as np

    counts = [len(of_kind) for name in names for of_kind in load_background_texts(name).values()]
    read = np.fromfile(path, np.float16).astype(np.float32).reshape(sum(counts), -1)
    parts = np.split(read, np.cumsum(counts)[:-1])
    return {name: BackgroundVectors(*parts[3 * place : 3 * place + 3]) for place, name in enumerate(names)}


class StoreSample:
    """Vectors of a sample of the store's passages, keyed by language and cached between prompts.

    The sample is every 2ⁿth passage by number, so it is deterministic and a new message rarely changes it.
    """

    def __init__(self) -> None:
        self._of: dict[VectorSet, tuple[Connection, str | None]] = {}
        self._known: dict[VectorSet, dict[tuple[str, int], tuple[str, NDArray[np.float32]] | None]] = {}

    def load_vectors_by_language(self, db: Connection, model: Model) -> "dict[str, NDArray[np.float32]]":
        """Return the model's vectors of the sample, keyed by language, of shape [passages, dimension]."""
        import numpy as np

        vector_set = vectors.choose_vector_set_for_model(model)
        of = db, vectors.read_model_of_vectors(db, vector_set)
        if self._of.get(vector_set) != of:
            self._of[vector_set], self._known[vector_set] = of, {}
        before, known = self._known[vector_set], {}
        for shelf, most in zip(index.passage_tables(vector_set), _LARGEST_SAMPLE, strict=True):
            numbers = _numbers_of_sampled_passages(db, shelf, most)
            new = [number for number in numbers if (shelf.vectors, number) not in before]
            read = _read_passages(db, shelf, new) if new else {}
            for number in numbers:
                key = shelf.vectors, number
                known[key] = before[key] if key in before else read.get(number)
        self._known[vector_set] = known
        by_language: defaultdict[str, list[NDArray[np.float32]]] = defaultdict(list)
        for name, vector in filter(None, known.values()):
            by_language[name].append(vector)
        return {name: np.stack(of_language) for name, of_language in by_language.items()}


def count_passages_not_in_english(db: Connection) -> tuple[int, int]:
    """Return the number of sampled passages not in English, and the size of the sample."""
    found = [
        detect_background_language(content) != ENGLISH
        for shelf, most in zip(index.SHELVES, _LARGEST_SAMPLE, strict=True)
        for (content,) in db.execute(
            f"SELECT content FROM {shelf.chunks} WHERE chunk_no IN (SELECT value FROM json_each(?))",
            (to_json_list(_numbers_of_sampled_passages(db, shelf, most)),),
        )
    ]
    return sum(found), len(found)


def _numbers_of_sampled_passages(db: Connection, shelf: PassageTables, most: int) -> list[int]:
    (last,) = db.execute(f"SELECT coalesce(max(chunk_no), 0) FROM {shelf.chunks}").fetchone()
    step = 1
    while last // step > most:
        step *= 2
    rows = db.execute(
        f"SELECT chunk_no FROM {shelf.chunks} WHERE chunk_no IN (SELECT value FROM json_each(?))",
        (to_json_list([*range(step, last + 1, step)]),),
    )
    return [number for (number,) in rows]


def _read_passages(
    db: Connection, shelf: PassageTables, numbers: list[int]
) -> "dict[int, tuple[str, NDArray[np.float32]]]":
    import numpy as np

    # CROSS JOIN: vec0 looks up each passage, and never scans.
    rows = db.execute(
        f"SELECT c.chunk_no, c.content, v.embedding FROM json_each(?) a CROSS JOIN {shelf.chunks} c"
        f" CROSS JOIN {shelf.vectors} v WHERE c.chunk_no = a.value AND v.rowid = a.value",
        (to_json_list(numbers),),
    )
    return {
        number: (detect_background_language(content), np.frombuffer(embedding, np.float32))
        for number, content, embedding in rows
    }

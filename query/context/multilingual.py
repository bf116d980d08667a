"""How near the multilingual model finds things to a prompt, whatever the languages of both.

Its cosines alone tell little: "favourite cafés: Suomi" is near everything. Two measures tell more. An entry
may be nearer to the prompt than other texts of its language are, and it may be nearer to this prompt than to
other prompts of the prompt's language. docs/languages.md has figures.
"""

from collections.abc import Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

from memlog.projector.embedding.models import Embedder
from memlog.projector.passages.vectors import MULTILINGUAL
from memlog.projector.sqlite import Connection
from memlog.query.context.background import BackgroundVectors, StoreSample, in_every_language, language
from memlog.query.context.floor import passages_of
from memlog.query.search import nearest
from memlog.query.search.candidates import Candidate
from memlog.query.search.hits import Hit
from memlog.query.search.vector_cache import stored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NEIGHBOURS = 3
"""Of the background prompts of each kind, the nearest ones that tell what a prompt is like."""


class Nearness(NamedTuple):
    """Deviations by which an entry is nearer to a prompt than other texts of its language are, and nearer to
    this prompt than to other prompts."""

    multilingual: float
    nearer: float


class MultilingualPrompt:
    """A prompt as the multilingual model sees it. silent: gets why it sees none."""

    def __init__(
        self, db: Connection, text: str, embedder: Embedder, sample: StoreSample, silent: dict[str, str]
    ) -> None:
        self._db, self._text, self._embedder, self._sample = db, text, embedder, sample
        self._silent = silent
        self._pools: dict[str, tuple[float, float]] = {}

    @cached_property
    def vector(self) -> "NDArray[np.float32] | None":
        """Of the prompt, [dimension]."""
        found = nearest.embed_query(self._text, self._db, self._embedder, self._silent)
        if found is None:
            return None
        import numpy as np

        return np.frombuffer(found, np.float32)

    def nearness(self, found: Sequence[tuple[Candidate, Hit]]) -> dict[int, Nearness]:
        """Return how near each of the hits is that has a vector, by its place."""
        if self.vector is None:
            return {}
        import numpy as np

        away, deviation = self._from_other_prompts
        result: dict[int, Nearness] = {}
        for shelf, places in passages_of(self._db, found, MULTILINGUAL).items():
            if not places:
                continue
            numbers, read = stored(self._db, shelf, [*places])
            # Not the product of BLAS: its threads wait for each other on a busy machine.
            both = np.einsum("ij,kj->ik", read, np.stack([self.vector, away])) if numbers else ()
            for number, (cosine, specific) in zip(numbers, both, strict=True):
                place = places[number]
                mean, spread = self._others(language(found[place][1].content))
                near = Nearness(float((cosine - mean) / spread), float(specific / deviation))
                # Of the passages of a long message the nearest one.
                result[place] = max(result.get(place, near), near)
        return result

    def likeness(self) -> float:
        """Return its similarity to personal prompts, less that to general ones, in any language."""
        import numpy as np

        assert self.vector is not None
        every = in_every_language().values()
        near = (
            np.sort(np.concatenate(of_kind) @ self.vector)[-_NEIGHBOURS:].mean()
            for of_kind in ([each.personal for each in every], [each.general for each in every])
        )
        personal, general = near
        return float(personal - general)

    def _others(self, name: str) -> tuple[float, float]:
        """The mean and the deviation of its similarity to the background and the store, in a language."""
        import numpy as np

        if name not in self._pools:
            stored = self._sample.vectors(self._db, self._embedder)
            of_background = [each.sentences for each in _of_language(name)]
            compared = np.concatenate([*of_background, *([stored[name]] if name in stored else [])])
            similar = compared @ self.vector
            self._pools[name] = float(similar.mean()), float(similar.std())
        return self._pools[name]

    @cached_property
    def _from_other_prompts(self) -> "tuple[NDArray[np.float32], float]":
        """The way from the mean of other prompts of its language to it, [dimension], and how much the
        similarity of a background sentence to these differs."""

        assert self.vector is not None
        away = self.vector - _prompts(language(self._text)).mean(0)
        return away, _deviation(language(self._text))


@cache
def _prompts(name: str) -> "NDArray[np.float32]":
    """Background prompts of a language."""
    import numpy as np

    return np.concatenate([part for each in _of_language(name) for part in each[1:]])


@cache
def _deviation(name: str) -> float:
    """How much the similarity of a background sentence to prompts of a language differs."""
    import numpy as np

    sentences = np.concatenate([each.sentences for each in in_every_language().values()])
    return float((_prompts(name) @ sentences.T).std(0).mean())


def _of_language(name: str) -> list[BackgroundVectors]:
    """The background in a language; in all, where it has none in that one."""
    known = in_every_language()
    return [known[name]] if name in known else [*known.values()]

"""The options of a search's ranking. Their defaults were chosen on LoCoMo's conversations 1 to 5.

docs/search.md has the figures, and those of conversations 6 to 10.
"""

from typing import Annotated

from msgspec import Meta

from memlog.eventlog.errors import BadInput
from memlog.eventlog.limits import DEPTH, Fusion
from memlog.query.request import Request

Weight = Annotated[float, Meta(ge=0, le=1000)]

_POOLS: dict[Fusion, tuple[float, float]] = {"rrf": (1, 1.5), "convex": (4, 4)}
"""The candidates of words and of vectors before the cut, as multiples of the depth. A sum of scores needs
more: a missing entry adds nothing."""

_VECTORS_ALONE = 2.0
"""For a search by vectors only: with 1.5 its R@10 is .01 lower, that of a hybrid search is not."""


class Ranking(Request, frozen=True, kw_only=True):
    """How the two sides of a search are ranked and joined.

    Raises:
        BadInput: a value is out of its range, or both weights are 0.
    """

    fusion: Annotated[
        Fusion,
        "Join the sides by rank (rrf), or by the sum of their scores, scaled to 0 to 1 (convex).",
    ] = "rrf"
    rank_constant: Annotated[
        Weight,
        "k of reciprocal rank fusion: how little it matters to be first rather than second.",
    ] = 10.0
    text_weight: Annotated[Weight, "How much words count."] = 1.0
    vector_weight: Annotated[Weight, "How much meaning counts."] = 0.5
    depth: Annotated[
        int,
        DEPTH.meta,
        "Candidates of each side, at least as many as hits; four times as many with convex.",
    ] = DEPTH.default
    context: Annotated[bool, "Whether the neighbours of a message count for it."] = True
    priors: Annotated[
        bool,
        "Whether length, a speaker or topic that the text names, and being a question count.",
    ] = True
    salience: Annotated[bool, "Whether the present relevance of memories counts."] = True

    def __post_init__(self) -> None:
        """Refuse two weights of 0."""
        super().__post_init__()
        if not (self.text_weight or self.vector_weight):
            raise BadInput("text_weight and vector_weight are both 0", hint="one of them must count")

    def text_pool(self, k: int) -> int:
        """The number of full-text candidates for `k` hits."""
        return int(_POOLS[self.fusion][0] * max(self.depth, k))

    def vector_pool(self, k: int, *, alone: bool) -> int:
        """The number of vector candidates for `k` hits.

        alone: whether the full text is not searched.
        """
        times = max(_POOLS[self.fusion][1], _VECTORS_ALONE if alone else 0)
        return int(times * max(self.depth, k))

    def cut(self, k: int) -> int:
        """The number of candidates that a side contributes for `k` hits."""
        return max(self.depth, k) if self.fusion == "rrf" else self.text_pool(k)

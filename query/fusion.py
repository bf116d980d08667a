"""Reciprocal rank fusion (Cormack, Clarke & Büttcher, SIGIR 2009): lists are joined by rank, since the
scores of different lists cannot be compared."""

from collections.abc import Sequence

from memlog.query.candidates import Candidate, Owner

RANK_CONSTANT = 60
"""k of the paper: how little it matters to be first rather than second."""


def fused(lists: Sequence[Sequence[Candidate]]) -> list[tuple[Candidate, float]]:
    """Every candidate of `lists` once, best first, with score(d) = Σ 1 / (k + rank(d)).

    Of a candidate that several lists have, the last list's is kept.
    Equal scores are ordered by time (newer first), kind, stream and id.
    """
    scores: dict[tuple[Owner, tuple[str, str]], float] = {}
    kept: dict[tuple[Owner, tuple[str, str]], Candidate] = {}
    for candidates in lists:
        for rank, candidate in enumerate(candidates, start=1):
            name = candidate.name
            scores[name] = scores.get(name, 0.0) + 1 / (RANK_CONSTANT + rank)
            kept[name] = candidate
    names = sorted(scores, key=lambda name: (kept[name].kind, name))
    names.sort(key=lambda name: kept[name].ts, reverse=True)
    names.sort(key=lambda name: round(scores[name], 12), reverse=True)
    return [(kept[name], scores[name]) for name in names]


def best_possible(sides: int) -> float:
    """The score of what is first on each of `sides`."""
    return sides / (RANK_CONSTANT + 1)

"""Joins the lists of a search, by rank or by score."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple

from memlog.query.search.candidates import SCORE_DIGITS, Ref
from memlog.query.search.ranking import Ranking

_HIGHEST = 1.5
"""The highest sum of a scaled score and a prior."""

InOrder = Callable[[Iterable[Ref]], list[Ref]]
"""Orders entries of equal scores."""

Says = Callable[[Ref], Hashable]
"""What an entry has in common with its copies, of which the best is taken; None for one that is not taken."""


def _itself(ref: Ref) -> Hashable:
    return ref


class Ranked(NamedTuple):
    """An entry of a list.

    found: its score with the addition of its neighbours. prior: its likelihood for any question.
    scaled: `found` between the lowest and the highest of the list, from 0 to 1, plus the prior.
    """

    ref: Ref
    found: float
    prior: float
    scaled: float


class Ranks(NamedTuple):
    """A list, best first, and its weight."""

    weight: float
    ranked: list[Ranked]


def ranked(
    scores: Mapping[Ref, float],
    priors: Mapping[Ref, float],
    cut: int,
    in_order: InOrder,
    says: Says = _itself,
) -> list[Ranked]:
    """The best `cut` of a list, by scaled scores plus priors."""
    if not scores:
        return []
    low = min(scores.values())
    span = max(scores.values()) - low
    scaled = {
        ref: round(((score - low) / span if span else 1.0) + priors.get(ref, 0.0), SCORE_DIGITS)
        for ref, score in scores.items()
    }
    return [
        Ranked(ref, scores[ref], priors.get(ref, 0.0), score)
        for ref, score in _best(scaled, cut, in_order, says)
    ]


def fused(
    lists: Iterable[Ranks],
    ranking: Ranking,
    factors: Mapping[Ref, float],
    cut: int,
    in_order: InOrder,
    says: Says = _itself,
) -> list[tuple[Ref, float]]:
    """The best `cut` of all lists, best first, each with its fused score.

    rrf: Σ weight / (k + rank) (Cormack, Clarke & Büttcher, SIGIR 2009). convex: Σ weight · scaled score
    (Bruch, Gai & Ingber, ACM TOIS 2023, https://arxiv.org/abs/2210.11934).
    factors: of scores; 1 by default.
    """
    scores: dict[Ref, float] = {}
    for weight, rows in lists:
        for rank, row in enumerate(rows, start=1):
            part = 1 / (ranking.rank_constant + rank) if ranking.fusion == "rrf" else row.scaled
            scores[row.ref] = scores.get(row.ref, 0.0) + weight * part
    multiplied = {
        ref: round(score * factors.get(ref, 1.0), 2 * SCORE_DIGITS) for ref, score in scores.items()
    }
    return _best(multiplied, cut, in_order, says)


def _best(scores: Mapping[Ref, float], cut: int, in_order: InOrder, says: Says) -> list[tuple[Ref, float]]:
    """The best `cut` without copies, by falling score; only possible ones are ordered."""
    by_score: dict[float, list[Ref]] = {}
    for ref, score in scores.items():
        by_score.setdefault(score, []).append(ref)
    taken: dict[Hashable, tuple[Ref, float]] = {}
    for score in sorted(by_score, reverse=True):
        refs = by_score[score]
        for ref in in_order(refs) if len(refs) > 1 else refs:
            text = says(ref)
            if text is not None:
                taken.setdefault(text, (ref, score))
            if len(taken) == cut:
                return [*taken.values()]
    return [*taken.values()]


def best_possible(weights: Iterable[float], ranking: Ranking) -> float:
    """The score of an entry that is first on a list of each weight, with the highest prior."""
    first = 1 / (ranking.rank_constant + 1)
    return sum(weights) * (first if ranking.fusion == "rrf" else _HIGHEST if ranking.priors else 1.0)

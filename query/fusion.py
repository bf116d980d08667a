"""Joins the lists of a search, by rank or by score."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from memlog.query.candidates import SCORE_DIGITS, Candidate, Name, Scored, in_order
from memlog.query.ranking import Ranking

_HIGHEST = 1.5
"""What a scaled score with the highest prior comes to."""


class Ranked(NamedTuple):
    """A candidate in its place on a list.

    found: its score with what its neighbours add. prior: how likely it is, whatever was asked.
    scaled: `found` between the lowest and the highest of the list, from 0 to 1, and the prior.
    """

    candidate: Candidate
    found: float
    prior: float
    scaled: float


_Row = tuple[Candidate, float, float, float]


class Ranks(NamedTuple):
    """A list, best first, and how much it counts."""

    weight: float
    ranked: list[Ranked]


def ranked(candidates: Sequence[Scored], priors: Mapping[Name, float], cut: int) -> list[Ranked]:
    """The best `cut` of a list, once its scores are scaled and each candidate has its prior."""
    if not candidates:
        return []
    scores = [score for _, score in candidates]
    low, span = min(scores), max(scores) - min(scores)
    rows = []
    for candidate, score in candidates:
        prior = priors.get(candidate.name, 0.0)
        scaled = (score - low) / span if span else 1.0
        rows.append((candidate, round(scaled + prior, SCORE_DIGITS), score, prior))
    return [
        Ranked(candidate, score, prior, scaled)
        for candidate, scaled, score, prior in in_order(_best_rows(rows, cut))[:cut]
    ]


def _best_rows(rows: list[_Row], cut: int) -> list[_Row]:
    """The best `cut` rows, and what is equal to the last of them."""
    least = sorted((row[1] for row in rows), reverse=True)[:cut][-1]
    return [row for row in rows if row[1] >= least]


def fused(lists: Iterable[Ranks], ranking: Ranking, factors: Mapping[Name, float]) -> list[Scored]:
    """Every candidate of `lists` once, best first, with its score.

    rrf: Σ weight / (k + rank) (Cormack, Clarke & Büttcher, SIGIR 2009). convex: Σ weight · scaled score
    (Bruch, Gai & Ingber, ACM TOIS 2023, https://arxiv.org/abs/2210.11934).
    factors: what a score is multiplied by; 1 where none is named.
    Of a candidate that several lists have, the last one is kept that found it itself.
    """
    scores: dict[Name, float] = {}
    kept: dict[Name, Candidate] = {}
    for weight, rows in lists:
        for rank, row in enumerate(rows, start=1):
            name = row.candidate.name
            scores[name] = scores.get(name, 0.0) + weight * _part(row, rank, ranking)
            if name not in kept or row.candidate.score is not None:
                kept[name] = row.candidate
    return in_order(
        (kept[name], round(score * factors.get(name, 1.0), 2 * SCORE_DIGITS))
        for name, score in scores.items()
    )


def best_possible(weights: Iterable[float], ranking: Ranking) -> float:
    """The score of what is first on a list of each of these weights, and has nothing but favour."""
    first = 1 / (ranking.rank_constant + 1)
    return sum(weights) * (first if ranking.fusion == "rrf" else _HIGHEST if ranking.priors else 1.0)


def _part(row: Ranked, rank: int, ranking: Ranking) -> float:
    return 1 / (ranking.rank_constant + rank) if ranking.fusion == "rrf" else row.scaled

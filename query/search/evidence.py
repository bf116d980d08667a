"""Explains hits: which side of a search found each, at which rank, with which score."""

from collections.abc import Mapping

from memlog.query.search.candidates import SCORE_DIGITS, Ref
from memlog.query.search.fusion import Ranks
from memlog.query.search.hits import Evidence, Hit
from memlog.query.search.pool import Lists


def add_evidence(
    hits: Mapping[Ref, Hit], sides: Mapping[str, Lists], ranks: Mapping[str, list[Ranks]], *, explain: bool
) -> None:
    """Set the similarity of each hit, and with `explain` the rank and score that each side gave it."""
    seen: dict[Ref, dict[str, Evidence]] = {ref: {} for ref in hits}
    for side, lists in ranks.items():
        scores = {each.ref: each.score for rows in sides[side] for each in rows if each.ref in hits}
        for weight, rows in lists:
            for rank, row in enumerate(rows, start=1):
                if row.ref in hits:
                    prior = round(row.prior, SCORE_DIGITS)
                    seen[row.ref][side] = Evidence(rank, scores.get(row.ref), row.found, prior, weight)
    for ref, hit in hits.items():
        evidence = seen[ref]
        if "vector" in evidence and (similarity := evidence["vector"].score) is not None:
            hit.similarity = max(0.0, similarity)
        hit.only_context = all(side.score is None for side in evidence.values())
        if explain:
            hit.explain = evidence

"""Ranking and fusion: scaled scores and priors in a list, and two lists that become one."""

import math

import pytest

import memlog
from memlog import Ranking
from memlog.query.candidates import Candidate
from memlog.query.fusion import Ranks, best_possible, fused, ranked
from memlog.query.traits import Traits, words_of


def found(name, *, ts="2026", score=0.0):
    return Candidate("message", "message", ("s", name), score, ts)


A, B, C = map(found, "abc")


def lists(*rows, weights=(1.0, 1.0)):
    return [Ranks(weight, ranked(row, {}, 50)) for weight, row in zip(weights, rows, strict=True)]


def names(rows):
    return [row[0].key[1] for row in rows]


def test_rank_fusion_is_the_weighted_sum_of_reciprocal_ranks():
    ranking = Ranking(rank_constant=60)
    rows = fused(lists([(A, 2), (B, 1)], [(B, 9), (C, 1)], weights=(1.0, 0.5)), ranking, {})
    expected = {"b": 1 / 62 + 0.5 / 61, "a": 1 / 61, "c": 0.5 / 62}
    assert {candidate.key[1]: score for candidate, score in rows} == pytest.approx(expected)
    assert names(rows) == ["b", "a", "c"]
    assert best_possible([1.0, 0.5], ranking) == 1.5 / 61


def test_convex_fusion_is_the_weighted_sum_of_scaled_scores():
    ranking = Ranking(fusion="convex", priors=False)
    rows = fused(lists([(A, 30), (B, 20), (C, 10)], [(C, 0.9), (B, 0.1)], weights=(1.0, 0.6)), ranking, {})
    expected = {"a": 1.0, "c": 0.6, "b": 0.5}
    assert {candidate.key[1]: score for candidate, score in rows} == pytest.approx(expected)
    assert best_possible([1.0, 0.6], ranking) == 1.6


def test_a_prior_moves_a_candidate_within_its_list_and_the_cut_comes_behind_it():
    rows = ranked([(A, 3.0), (B, 2.0), (C, 1.0)], {B.name: 0.6}, 2)
    assert [(row.candidate.key[1], row.found, row.prior, row.scaled) for row in rows] == [
        ("b", 2.0, 0.6, 1.1),
        ("a", 3.0, 0.0, 1.0),
    ]


def test_equal_scores_are_all_the_highest():
    assert [row.scaled for row in ranked([(A, 3.0), (B, 3.0)], {}, 50)] == [1.0, 1.0]
    assert ranked([], {}, 50) == []


def test_equal_candidates_are_ordered_newer_first_then_by_kind_stream_and_id():
    rows = [(B, 1.0), (A, 1.0), (found("old", ts="2025"), 1.0), (found("new", ts="2027"), 1.0)]
    assert names(fused(lists(rows, weights=(1.0,)), Ranking(), {})) == ["new", "a", "b", "old"]


def test_a_factor_multiplies_the_fused_score():
    rows = fused(lists([(A, 2), (B, 1)], weights=(1.0,)), Ranking(), {B.name: 1.2})
    assert names(rows) == ["b", "a"]


@pytest.mark.parametrize(
    ("traits", "prior"),
    [
        (Traits(None, 240, ".", None), 0.2),
        (Traits(None, 5000, ".", None), 0.2),
        (Traits(None, 120, ".", None), 0.1),
        (Traits(None, 120, "?", None), 0.0),
        (Traits(None, 120, "？", None), 0.0),
        (Traits("Aino", 120, ".", None), 0.4),
        (Traits("aino virtanen", 120, ".", None), 0.4),
        (Traits("Pekka", 120, ".", None), 0.1),
        (Traits(None, 0, "", None), 0.0),
    ],
)
def test_length_speaker_and_being_a_question_make_the_prior(traits, prior):
    assert traits.prior(words_of("What did AINO say?")) == pytest.approx(prior)


@pytest.mark.parametrize(("vividness", "factor"), [(None, 1.0), (0.0, 0.9), (0.5, 1.0), (1.0, 1.1)])
def test_salience_and_importance_are_a_mild_factor(vividness, factor):
    assert Traits(None, 10, ".", vividness).factor == pytest.approx(factor)


@pytest.mark.parametrize(
    "values",
    [
        {"fusion": "mean"},
        {"depth": 0},
        {"rank_constant": -1},
        {"rank_constant": math.nan},
        {"text_weight": -0.1},
        {"vector_weight": math.inf},
        {"text_weight": 0, "vector_weight": 0},
    ],
)
def test_what_no_list_can_be_ranked_by_is_refused(values):
    with pytest.raises(memlog.BadInput):
        Ranking(**values)

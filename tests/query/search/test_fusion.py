"""Ranking and fusion: scaled scores and priors in a list, and two lists that become one."""

import math

import pytest

from memlog import Ranking
from memlog.projector.sqlite import choose_binding
from memlog.query.search.fulltext import LIKELIHOOD, SearchedMessage, SearchedPassage, candidate_priors
from memlog.query.search.hits import (
    Candidate,
    Ranks,
    best_possible_score,
    fuse_lists,
    rank_entries,
    sort_candidates_with_equal_scores,
)
from tests.support.refusals import refused

A, B, C = 1, 2, 3


def by_number(refs):
    return sorted(refs)


def lists(*rows, weights=(1.0, 1.0)):
    return [
        Ranks(weight, rank_entries(row, {}, 50, by_number)) for weight, row in zip(weights, rows, strict=True)
    ]


def names(rows):
    return [ref for ref, _ in rows]


def test_rank_fusion_is_the_weighted_sum_of_reciprocal_ranks():
    ranking = Ranking(rank_constant=60)
    rows = fuse_lists(lists({A: 2, B: 1}, {B: 9, C: 1}, weights=(1.0, 0.5)), ranking, {}, 50, by_number)
    expected = {B: 1 / 62 + 0.5 / 61, A: 1 / 61, C: 0.5 / 62}
    assert dict(rows) == pytest.approx(expected)
    assert names(rows) == [B, A, C]
    assert best_possible_score([1.0, 0.5], ranking) == 1.5 / 61


def test_convex_fusion_is_the_weighted_sum_of_scaled_scores():
    ranking = Ranking(fusion="convex", priors=False)
    found = lists({A: 30, B: 20, C: 10}, {C: 0.9, B: 0.1}, weights=(1.0, 0.6))
    rows = fuse_lists(found, ranking, {}, 50, by_number)
    assert dict(rows) == pytest.approx({A: 1.0, C: 0.6, B: 0.5})
    assert best_possible_score([1.0, 0.6], ranking) == 1.6


def test_a_prior_moves_a_candidate_within_its_list_and_the_cut_comes_behind_it():
    rows = rank_entries({A: 3.0, B: 2.0, C: 1.0}, {B: 0.6}, 2, by_number)
    assert rows == [(B, 2.0, 0.6, 1.1), (A, 3.0, 0.0, 1.0)]


def test_equal_scores_are_all_the_highest():
    assert [row.scaled for row in rank_entries({A: 3.0, B: 3.0}, {}, 50, by_number)] == [1.0, 1.0]
    assert rank_entries({}, {}, 50, by_number) == []


def test_what_has_equal_scores_is_put_in_order_before_the_cut():
    rows = lists({C: 1.0, B: 1.0, A: 1.0, 4: 2.0}, weights=(1.0,))
    assert names(fuse_lists(rows, Ranking(), {}, 2, by_number)) == [4, A]


def test_equal_candidates_are_ordered_newer_first_then_by_kind_stream_and_id():
    found = [("b", "2026"), ("a", "2026"), ("old", "2025"), ("new", "2027")]
    equal = sort_candidates_with_equal_scores(
        Candidate("message", "message", ("s", name), 0.0, ts) for name, ts in found
    )
    assert [each.key[1] for each in equal] == ["new", "a", "b", "old"]


def test_a_factor_multiplies_the_fused_score():
    rows = fuse_lists(lists({A: 2, B: 1}, weights=(1.0,)), Ranking(), {B: 1.2}, 50, by_number)
    assert names(rows) == [B, A]


LIKELY = [
    ("x" * 240, 0.2),
    ("x" * 5000, 0.2),
    ("x" * 120, 0.1),
    ("x" * 119 + "?", 0.0),
    ("x" * 119 + "？", 0.0),
    ("x" * 118 + "? ", 0.0),
    ("", 0.0),
]


def test_length_and_being_a_question_make_the_likelihood():
    for text, likelihood in LIKELY:
        db = choose_binding().connect(":memory:")
        (found,) = db.execute(
            f"SELECT {LIKELIHOOD.format('content')} FROM (SELECT ? AS content)", (text,)
        ).fetchone()
        assert found == pytest.approx(likelihood), (text[-9:], len(text))


def test_a_speaker_that_the_question_names_is_more_likely():
    for speaker, prior in ((None, 0.1), ("Aino", 0.4), ("aino virtanen", 0.4), ("Pekka", 0.1)):
        messages = {A: SearchedMessage(("s", "a"), "2026", speaker, 0.1, is_wanted=True)}
        assert candidate_priors(messages, {}, "What did AINO say?") == {A: pytest.approx(prior)}, (
            speaker,
            prior,
        )


def test_salience_and_importance_are_a_mild_factor():
    for relevance, factor in ((None, 1.0), (0.0, 0.9), (0.5, 1.0), (1.0, 1.1)):
        assert SearchedPassage(0.1, relevance).factor == pytest.approx(factor), (relevance, factor)


def test_what_no_list_can_be_ranked_by_is_refused():
    for values in (
        {"fusion": "mean"},
        {"depth": 0},
        {"rank_constant": -1},
        {"rank_constant": math.nan},
        {"text_weight": -0.1},
        {"vector_weight": math.inf},
        {"text_weight": 0, "vector_weight": 0},
    ):
        with refused(values):
            Ranking(**values)

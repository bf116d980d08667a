"""The saves of the evaluation are what it says, and a third of them is decided as it must be."""

from collections import Counter

import pytest

from tests.eval import dedup


@pytest.fixture(scope="module")
def asked():
    return dedup.saves()


def test_1000_saves_are_500_originals_300_exact_and_200_near_duplicates_in_four_languages(asked):
    assert Counter(save.kind for save in asked) == {"original": 500, "exact": 300, "near": 200}
    assert Counter(save.language for save in asked if save.kind == "near") == dict.fromkeys(
        ("en", "ru", "fi", "zh"), 50
    )
    assert len({save.text for save in asked if save.kind != "exact"}) == 700


def test_the_saves_are_the_same_in_every_run(asked):
    assert dedup.saves() == asked


def test_nothing_is_said_a_second_time_before_it_was_said_once(asked):
    said = set()
    for save in asked:
        assert (save.kind == "original") == (save.group not in said)
        said.add(save.group)


def test_no_original_has_two_near_duplicates(asked):
    groups = [save.group for save in asked if save.kind == "near"]
    assert len(groups) == len(set(groups))


def test_150_pairs_in_20_languages_say_two_things():
    pairs = dedup.different()
    assert len({(one, other) for _, one, other in pairs}) == len(pairs) == 150
    headings = {tuple(heading.split()) for heading, _, _ in pairs}
    assert {kind for _, kind in headings} == {"negation", "label", "tense", "code"}
    assert len({language for language, _ in headings} - {"[code]"}) == 20


def test_a_third_of_the_saves_is_decided_as_it_must_be_and_every_text_stays_in_a_history(tmp_path):
    result = dedup.run(dedup.saves(share=3), tmp_path / "store")
    assert result.saves == 334
    assert (result.precision, result.merged) == (1, [])
    assert result.recall >= dedup.LEAST["recall"]
    assert dedup.failures(result) == result.lost == []
    text = dedup.report(result)
    assert f"precision {result.precision:.3f}, recall {result.recall:.3f}" in text
    for save, decision, _ in result.wrong:
        assert f"{save.text!r}: {decision}" in text

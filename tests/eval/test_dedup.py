"""The saves of the evaluation are what it says, and a third of them is decided as it must be."""

from tests.eval import dedup


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

"""20,000 inputs that nobody would write: none crashes the decoder, an append or the full text."""

from tests.crash.storms.fuzz import lines, questions, searched_store, try_lines, try_questions

SEED = 20260224


def test_no_line_crashes_the_decoder_or_an_append():
    """Each is an event, or a bad line with its reason; what an append takes is read again as it was given."""
    assert try_lines(lines(SEED), 18_000) == []


def test_no_question_crashes_the_full_text(tmp_path):
    """Nothing that is typed is FTS5's syntax; what is given as that may be refused."""
    with searched_store(tmp_path / "store") as store:
        assert try_questions(store, questions(SEED), 2_000) == []

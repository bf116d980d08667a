"""Work on long texts gives what the same work on the whole text gives, in linear time."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlog.eventlog.codec.content_ids import fold_content
from memlog.eventlog.text import PIECE, normalise_to_nfkc, split_into_pieces

LETTERS = st.sampled_from(
    "aB \n.\t\xa0\u0301\u0316\u0315\u0f73\uff9e\uff9f각\u1100\u1161\u11a8か\u3099\u0344ﷺé\u09c7\u09be²\u00a8"
)
RUNS = st.lists(st.tuples(st.lists(LETTERS, min_size=1, max_size=4).map("".join), st.integers(1, 90)))


def of_runs(runs: list[tuple[str, int]]) -> str:
    return "".join(text * count for text, count in runs)


@given(RUNS.map(of_runs))
def test_nfkc_is_that_of_unicode(text: str) -> None:
    assert normalise_to_nfkc(text) == unicodedata.normalize("NFKC", text)


@given(RUNS.map(of_runs), st.integers(1, 50))
def test_pieces_are_the_text_and_none_is_longer(text: str, size: int) -> None:
    found = list(split_into_pieces(text, size))
    assert "".join(found) == text
    assert all(0 < len(piece) <= size for piece in found) or found == [""]


@given(RUNS.map(of_runs), st.integers(0, 3))
def test_a_memory_of_any_length_has_the_id_of_its_whole_text(text: str, times: int) -> None:
    long = (text + " \n ") + "é  x\n" * (times * PIECE // 8) + text
    assert fold_content(long) == " ".join(unicodedata.normalize("NFKC", long).casefold().split())


@pytest.mark.deep
@pytest.mark.parametrize("marks", ["\u0315\u0316", "\u0f73", "\uff9e\u0301"])
def test_a_run_of_combining_marks_takes_linear_time(marks: str) -> None:
    began = time.process_time()
    normalise_to_nfkc("a" + marks * 200_000)
    assert time.process_time() - began < 3  # Unicode's own algorithm takes a minute

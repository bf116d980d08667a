"""Chunks: BEHAVIOUR A1, as windows."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlog.eventlog.errors import BadInput
from memlog.projector.chunking import ELEMENT_TOKENS, ChunkSizes, chunks
from memlog.projector.tokens import Ruler, count_tokens, surely_within

SIZES = ChunkSizes()
SENTENCES = " ".join(f"This is sentence number {number} of a long text about tea." for number in range(200))
CODE = "```python\n" + "".join(f"line_{number} = {number}\n" for number in range(90)) + "```\n"


def passages(text):
    return [text[chunk.start : chunk.end] for chunk in chunks(text, SIZES)]


@pytest.mark.parametrize(("window", "overlap"), [(63, 0), (511, 0), (400, 400), (400, -1), (64, 80)])
def test_sizes_that_no_chunk_can_have_are_refused(window, overlap):
    with pytest.raises(BadInput, match=f"passages of {window} tokens"):
        ChunkSizes(window, overlap)


@pytest.mark.parametrize(
    "sizes", [ChunkSizes(64, 0), ChunkSizes(64, 63), ChunkSizes(510, 0), ChunkSizes(510, 509)]
)
def test_the_extreme_sizes_leave_nothing_out(sizes):
    text = f"# Tea\n\n{SENTENCES}\n\n{CODE}\n" + "word " * 700
    ends = [(chunk.start, chunk.end) for chunk in chunks(text, sizes)]
    assert ends[0][0] == 0
    assert ends[-1][1] >= len(text.rstrip())
    for (_, before), (after, _) in pairwise(ends):
        assert text[before:after].strip() == ""


def test_a_blank_text_has_no_chunk():
    assert chunks("", SIZES) == chunks(" \n\t ", SIZES) == []


def test_a_text_within_the_window_is_one_chunk_to_the_letter():
    text = "# Tea\n\nGreen.\n\n```\ncode\n```\n"
    (chunk,) = chunks(text, SIZES)
    assert (chunk.section, chunk.start, chunk.end) == ("Tea", 0, len(text))


def test_windows_have_at_most_400_tokens_and_overlap_by_up_to_80():
    ruler = Ruler(SENTENCES)
    windows = chunks(SENTENCES, SIZES)
    assert len(windows) > 3
    for window in windows:
        assert ruler.count(window.start, window.end) <= 400
    for before, after in pairwise(windows):
        assert 0 < ruler.count(after.start, before.end) <= 80


def test_windows_break_at_sentences():
    for passage in passages(SENTENCES):
        assert passage.startswith("This is")
        assert passage.rstrip().endswith("tea.")


def test_chinese_is_broken_at_its_sentences():
    text = "绿茶要用八十度的水。" * 120
    for passage in passages(text):
        assert passage.endswith("。")
        assert passage.startswith("绿")


def test_a_long_text_without_any_sentence_end_is_windowed_all_the_same():
    text = "word " * 1500
    ruler = Ruler(text)
    windows = chunks(text, SIZES)
    assert windows[0].start == 0
    assert windows[-1].end == len(text)
    for before, after in pairwise(windows):
        assert ruler.count(before.start, before.end) == 400
        assert ruler.count(after.start, before.end) == 80


def test_an_element_that_the_model_can_take_is_never_broken():
    assert 400 < count_tokens(CODE) <= ELEMENT_TOKENS
    text = SENTENCES + "\n\n" + CODE + "\n" + SENTENCES
    assert sum(CODE.strip() in passage for passage in passages(text)) == 1


@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_headings_and_blank_lines_inside_a_fence_are_code(fence):
    block = f"{fence}\n# not a heading\n\nstill code\n{fence}\n"
    text = SENTENCES + "\n\n" + block + "\n" + SENTENCES
    assert sum(block.strip() in passage for passage in passages(text)) == 1
    assert {chunk.section for chunk in chunks(text, SIZES)} == {None}


def test_a_longer_element_is_split_at_line_ends():
    block = "```\n" + "".join(f"step {number}: do the thing\n" for number in range(300)) + "```\n"
    for passage in passages(block):
        assert passage.endswith("\n")
        assert count_tokens(passage) <= 400


def test_a_longer_line_is_split_at_tokens_and_no_word_is_broken():
    block = "```\n" + "alpha beta gamma delta " * 400 + "\n```\n"
    words = {"alpha", "beta", "gamma", "delta", "```"}
    for passage in passages(block):
        assert set(passage.split()) <= words


def test_sections_are_the_path_of_headings():
    text = f"# One\n\n{SENTENCES}\n\n## Two\n\n{SENTENCES}\n\n# Three\n\n{SENTENCES}"
    assert list(dict.fromkeys(chunk.section for chunk in chunks(text, SIZES))) == [
        "One",
        "One > Two",
        "Three",
    ]


def test_a_heading_stands_with_what_follows_it():
    text = f"{SENTENCES}\n\n## Two\n\n{CODE}"
    assert not any(passage.rstrip().endswith("## Two") for passage in passages(text))


texts = st.lists(
    st.sampled_from(
        [SENTENCES[:900], CODE, "# Head\n", "\n\n", "- item one\n", "| a | b |\n", "слово " * 90, "茶" * 300]
    )
    | st.text(max_size=40),
    max_size=12,
).map("".join)


@settings(max_examples=60, deadline=None)
@given(texts)
def test_chunks_leave_nothing_out_and_fit_the_model(text):
    found = chunks(text, SIZES)
    covered = 0
    for chunk in found:
        assert not text[covered : chunk.start].strip()
        assert chunk.end > covered
        assert count_tokens(text[chunk.start : chunk.end]) <= ELEMENT_TOKENS
        covered = chunk.end
    assert not text[covered:].strip()


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200), st.integers(1, 400))
def test_what_surely_fits_is_within_the_limit(text, limit):
    if surely_within(text, limit):
        assert count_tokens(text) <= limit

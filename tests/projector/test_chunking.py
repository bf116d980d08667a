"""Chunks: BEHAVIOUR A1, as windows."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlog.eventlog.errors import BadInput
from memlog.eventlog.settings import PASSAGE
from memlog.projector.passages.chunking import Chunk, ChunkSizes, split_into_chunks
from memlog.projector.text.tokens import Ruler, count_tokens, has_surely_few_tokens
from tests.support.examples import examples

SIZES = ChunkSizes()
SENTENCES = " ".join(f"This is sentence number {number} of a long text about tea." for number in range(200))
CODE = "```python\n" + "".join(f"line_{number} = {number}\n" for number in range(90)) + "```\n"


def passages(text):
    return [chunk.content for chunk in split_into_chunks(text, SIZES)]


def open_fence(text):
    """The marks of the fence that is open at the end of `text`, as CommonMark has it; None where none is."""
    marks = None
    for line in text.splitlines():
        found = re.match(r"(?:[ ]*[-*+] )?\s*(`{3,}(?=[^`]*$)|~{3,})(.*)", line)
        if found and marks is None:
            marks = found[1]
        elif found and marks and found[1].startswith(marks) and not found[2].strip():
            marks = None
    return marks


def test_sizes_that_no_chunk_can_have_are_refused():
    for window, overlap, wrong in [
        (63, 0, "window is 63"),
        (511, 0, "window is 511"),
        (400, 400, "passages of 400 tokens cannot overlap by 400"),
        (400, -1, "overlap is -1"),
        (64, 80, "passages of 64 tokens cannot overlap by 80"),
    ]:
        with pytest.raises(BadInput, match=wrong):
            ChunkSizes(window, overlap)


def test_the_extreme_sizes_leave_nothing_out():
    for sizes in [ChunkSizes(64, 0), ChunkSizes(64, 63), ChunkSizes(510, 0), ChunkSizes(510, 509)]:
        text = f"# Tea\n\n{SENTENCES}\n\n{CODE}\n" + "word " * 700
        ends = [(chunk.start, chunk.end) for chunk in split_into_chunks(text, sizes)]
        assert ends[0][0] == 0, sizes
        assert ends[-1][1] >= len(text.rstrip()), sizes
        for (_, before), (after, _) in pairwise(ends):
            assert text[before:after].strip() == "", sizes


def test_a_blank_text_has_no_chunk():
    assert split_into_chunks("", SIZES) == split_into_chunks(" \n\t ", SIZES) == []


def test_a_text_within_the_window_is_one_chunk_to_the_letter():
    text = "# Tea\n\nGreen.\n\n```\ncode\n```\n"
    (chunk,) = split_into_chunks(text, SIZES)
    assert chunk == Chunk("Tea", 0, len(text), text)


def test_windows_have_at_most_400_tokens_and_overlap_by_up_to_80():
    ruler = Ruler(SENTENCES)
    windows = split_into_chunks(SENTENCES, SIZES)
    assert len(windows) > 3
    for window in windows:
        assert ruler.count_tokens(window.start, window.end) <= 400
    for before, after in pairwise(windows):
        assert 0 < ruler.count_tokens(after.start, before.end) <= 80


ITEMS = "".join(f"- item {number} of a list that is as long as a line of prose\n" for number in range(80))


@pytest.mark.parametrize("text", [ITEMS, SENTENCES + "\n\n" + ITEMS, ITEMS + "\n" + SENTENCES], ids=len)
def test_overlap_between_consecutive_chunks_of_prose_and_lists(text):
    ruler = Ruler(text)
    windows = split_into_chunks(text, SIZES)
    assert len(windows) > 2
    for before, after in pairwise(windows):
        assert 0 < ruler.count_tokens(after.start, before.end) <= 80
        assert ruler.count_tokens(after.start, after.end) <= 400
        assert text[: after.start].endswith(("\n", " "))


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
    windows = split_into_chunks(text, SIZES)
    assert windows[0].start == 0
    assert windows[-1].end == len(text)
    for before, after in pairwise(windows):
        assert ruler.count_tokens(before.start, before.end) == 400
        assert ruler.count_tokens(after.start, before.end) == 80


def test_an_element_that_the_model_can_take_is_never_broken():
    assert 400 < count_tokens(CODE) <= PASSAGE
    text = SENTENCES + "\n\n" + CODE + "\n" + SENTENCES
    assert sum(CODE.strip() in passage for passage in passages(text)) == 1


def test_headings_and_blank_lines_inside_a_fence_are_code():
    for fence in ["```", "~~~~"]:
        block = f"{fence}\n# not a heading\n\nstill code\n{fence}\n"
        text = SENTENCES + "\n\n" + block + "\n" + SENTENCES
        assert sum(block.strip() in passage for passage in passages(text)) == 1, fence
        assert {chunk.section for chunk in split_into_chunks(text, SIZES)} == {None}, fence


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


STEPS = "".join(f"    step_{number}(wait={number})\n" for number in range(300))


def test_each_part_of_a_long_fence_has_its_fence_and_language():
    for newline in ["\n", "\r\n"]:
        for opening, closing, repeated in [
            ("```python", "```", "```python"),
            ("``` python title=x", "```", "``` python title=x"),
            ("~~~~ yaml", "~~~~", "~~~~ yaml"),
            ("  ```sh", "  ```", "  ```sh"),
            ("```", "`````", "```"),
            ("```sh " + "and more " * 150, "```", "```sh"),
            ("- ```python", "  ```", "```python"),
            ("    ```python", "    ```", "    ```python"),
            ("```python", "", "```python"),
        ]:
            block = f"{opening}\n{STEPS}{closing}\n".replace("\n", newline)
            first, *others = passages(block)
            assert len(others) >= 3, (newline, opening)
            assert first.startswith(opening.replace("\n", newline)), (newline, opening)
            for part in others:
                assert part.startswith(repeated + newline), (newline, opening)
            for part in [first, *others]:
                assert open_fence(part) is None, (newline, opening)
                assert part.rstrip().endswith(("```", "~~~~")), (newline, opening)
                assert count_tokens(part) <= SIZES.window, (newline, opening)


def test_a_fence_may_hold_a_shorter_fence():
    inner = f"```python\n{STEPS}```\n"
    parts = passages(f"````markdown\n{inner}# no heading\n{inner}````\n")
    assert len(parts) > 4
    for part in parts:
        assert part.startswith("````markdown\n")
        assert part.endswith("\n````\n")
    assert {chunk.section for chunk in split_into_chunks(f"````\n{inner}# no heading\n````\n", SIZES)} == {
        None
    }


def test_marks_with_text_behind_them_close_no_fence():
    text = f"```\n{STEPS}```python\n# no heading\n```\n# Heading\n\n{SENTENCES}"
    sections = [chunk.section for chunk in split_into_chunks(text, SIZES)]
    assert set(sections) == {None, "Heading"}


def test_a_fence_in_a_list_ends_where_the_list_ends():
    text = f"- ```\n  never closed\n\n# Heading\n\n{SENTENCES}"
    assert {chunk.section for chunk in split_into_chunks(text, SIZES)} >= {"Heading"}


def test_code_within_a_line_is_no_fence():
    text = f"```this is code``` and text.\n\n# Heading\n\n{SENTENCES}"
    assert {chunk.section for chunk in split_into_chunks(text, SIZES)} == {None, "Heading"}


def test_a_line_of_code_that_is_cut_stands_in_a_fence_on_both_sides():
    for part in passages("```\n" + "alpha beta gamma delta " * 400 + "\n```\n"):
        assert re.fullmatch(r"```\n[^`]+\n```\n", part)


def test_each_part_of_a_long_table_has_its_header():
    header = "| tea | minutes |\n| :--- | ---: |\n"
    rows = "".join(f"| sort {number} | {number % 5} |\n" for number in range(200))
    first, *others = passages(header + rows)
    assert len(others) >= 3
    for part in [first, *others]:
        assert part.startswith(header)
        assert part.count(header) == 1
        assert count_tokens(part) <= SIZES.window


def test_a_table_without_a_line_under_its_first_row_has_no_header():
    rows = [f"| sort {number} | {number % 5} |" for number in range(200)]
    for part in passages("\n".join(rows))[1:]:
        assert part.startswith("| sort")
        assert not part.startswith(rows[0])


def test_each_part_of_a_section_has_its_heading():
    text = f"# Tea\n\n{SENTENCES}\n\n## Sorts\n\n{SENTENCES}"
    found = split_into_chunks(text, SIZES)
    assert [chunk.content.partition("\n")[0] for chunk in found if chunk.section == "Tea"][:2] == [
        "# Tea"
    ] * 2
    for chunk in found:
        assert chunk.content.startswith("# Tea\n" if chunk.section == "Tea" else "## Sorts\n")
        assert chunk.content.count("# Tea") == (chunk.section == "Tea")
        assert count_tokens(chunk.content) <= SIZES.window


def test_a_heading_that_is_half_a_window_long_is_not_repeated():
    heading = "# " + "word " * 250
    parts = passages(f"{heading}\n\n{SENTENCES}")
    assert sum(part.startswith("# word") for part in parts) == 1


def test_an_element_that_leaves_its_heading_no_room_loses_neither():
    code = "```\n" + "tea " * 500 + "\n```\n"
    assert count_tokens(code) in range(505, 511)
    text = f"{SENTENCES}\n\n# A heading of seven words in all\n\n{code}"
    found = split_into_chunks(text, SIZES)
    assert any("# A heading of seven words" in text[chunk.start : chunk.end] for chunk in found)
    assert found[-1].content == code


def test_titles_have_no_carriage_return():
    assert split_into_chunks("# Tea\r\n\r\nGreen.\r\n", SIZES)[0].section == "Tea"
    text = f"# Tea\r\n\r\n{SENTENCES}\r\n\r\n## Green\r\n\r\n{SENTENCES}"
    assert {chunk.section for chunk in split_into_chunks(text, SIZES)} == {"Tea", "Tea > Green"}


def test_sections_are_the_path_of_headings():
    text = f"# One\n\n{SENTENCES}\n\n## Two\n\n{SENTENCES}\n\n# Three\n\n{SENTENCES}"
    assert list(dict.fromkeys(chunk.section for chunk in split_into_chunks(text, SIZES))) == [
        "One",
        "One > Two",
        "Three",
    ]


def test_a_heading_stands_with_what_follows_it():
    text = f"{SENTENCES}\n\n## Two\n\n{CODE}"
    assert not any(passage.rstrip().endswith("## Two") for passage in passages(text))


_pieces = st.sampled_from(
    [
        *(
            SENTENCES[:900],
            CODE,
            "# Head\n",
            "## Deeper\r\n",
            "\n\n",
            "- item one\n",
            "слово " * 90,
            "茶" * 300,
        ),
        *(
            "```python\n",
            "```\n",
            "````\n",
            "~~~\n",
            "  ```\n",
            "- ```sh\n",
            "    ```\n",
            "\r\n",
            STEPS[:6000],
        ),
        *(
            "| a | b |\n",
            "| --- | --- |\n",
            "| c | d |\n" * 150,
            "- " + "item " * 600 + "\n",
            "# " + "w " * 300,
        ),
    ]
)
texts = st.lists(_pieces | st.text(max_size=40), max_size=12).map("".join)


@settings(max_examples=examples(15))
@given(texts)
def test_chunks_leave_nothing_out_and_fit_the_model(text):
    found = split_into_chunks(text, SIZES)
    covered = 0
    assert [chunk.start for chunk in found] == sorted(chunk.start for chunk in found)
    for chunk in found:
        assert not text[covered : chunk.start].strip()
        assert chunk.end > covered
        assert text[chunk.start : chunk.end] in chunk.content
        assert count_tokens(chunk.content) <= PASSAGE
        covered = chunk.end
    assert not text[covered:].strip()
    assert split_into_chunks(text, SIZES) == found


@settings(max_examples=examples(10))
@given(st.lists(st.sampled_from(["```", "  ```", "````", "~~~", "   ~~~~~"]), max_size=4))
def test_fences_that_are_closed_are_closed_in_each_part(fences):
    text = "".join(
        f"{SENTENCES[:200]}\n\n{marks}sh\n{STEPS[: 1500 * (number + 1)]}{marks}\n\n"
        for number, marks in enumerate(fences)
    )
    for part in passages(text):
        assert open_fence(part) is None
        assert count_tokens(part) <= PASSAGE


@settings(max_examples=examples(40))
@given(st.text(max_size=200), st.integers(1, 400))
def test_what_surely_fits_is_within_the_limit(text, limit):
    if has_surely_few_tokens(text, limit):
        assert count_tokens(text) <= limit

"""The counters of a context's budget."""

from typing import get_args

import pytest

from memlog.query.context.token_counters import Counter, tokens, weight


@pytest.mark.parametrize(
    ("counter", "text", "count"),
    [
        ("model", "green tea, twice", 4),
        ("model", "", 0),
        ("chars4", "1234567", 1),
        ("chars4", "12345678", 2),
        ("heuristic", "green tea and more", 3),
        ("heuristic", "喝绿茶", 5),
        ("heuristic", "喝绿茶 twice a day", 7),
        ("heuristic", "- [FACT] tea [M1]", 3),
        ("heuristic", "зелёный чай, vihreä tee", 3),
    ],
)
def test_a_counter_counts_as_the_page_says(counter, text, count):
    assert tokens(text, counter) == count


@pytest.mark.parametrize("counter", get_args(Counter))
def test_a_word_without_end_weighs_by_its_length(counter):
    assert weight("x" * 16_000, counter) >= 1000

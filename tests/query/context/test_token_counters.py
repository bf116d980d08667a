"""The counters of a context's budget."""

from typing import get_args

from memlog.query.context.token_counters import Counter, tokens, weight

COUNTS = [
    ("model", "green tea, twice", 4),
    ("model", "", 0),
    ("chars4", "1234567", 1),
    ("chars4", "12345678", 2),
    ("heuristic", "green tea and more", 3),
    ("heuristic", "喝绿茶", 5),
    ("heuristic", "喝绿茶 twice a day", 7),
    ("heuristic", "- [FACT] tea [M1]", 3),
    ("heuristic", "зелёный чай, vihreä tee", 3),
]


def test_a_counter_counts_as_the_page_says():
    for counter, text, count in COUNTS:
        assert tokens(text, counter) == count, (counter, text, count)


def test_a_word_without_end_weighs_by_its_length():
    for counter in get_args(Counter):
        assert weight("x" * 16_000, counter) >= 1000, counter

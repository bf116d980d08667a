"""A long text gives the sentences that say most about a question, whatever its sentences end with."""

import pytest

from memlog.query.context.excerpts import EXCERPT_TOKENS, Excerpts
from memlog.query.context.token_counters import count_text_tokens
from memlog.query.search.request import parse_query

LONG = {
    "full stops": ("It rains. " * 400 + "The kettle is broken. " + "It snows. " * 400, "kettle"),
    "no signs": (
        "alpha beta river house " * 400 + "the kettle is broken " + "gamma delta tree " * 100,
        "kettle",
    ),
    "Thai": ("สวัสดี" * 400 + "กาต้มน้ำเสีย" + "ครับ" * 400, "กาต้มน้ำเสีย"),
    "danda": ("नमस्ते दुनिया। " * 200 + "केतली टूटी है। " + "ठीक है। " * 200, "केतली"),
    "Arabic": ("هل أنت بخير؟ " * 200 + "الغلاية مكسورة؟ " + "نعم؟ " * 200, "الغلاية"),
    "Chinese": ("天气很好。" * 200 + "水壶坏了。" + "下雨了。" * 200, "水壶"),
    "code": ("foo(); " * 300 + "kettle(); " + "bar(); " * 300, "kettle"),
    "returns": ("a\r" * 600 + "the kettle\r" + "b\r" * 300, "kettle"),
    "one word": ("x" * 5000 + " kettle", "kettle"),
}


@pytest.mark.parametrize("shape", LONG)
def test_a_long_text_is_cut_to_what_answers_whatever_its_sentences_end_with(shape: str) -> None:
    text, asked = LONG[shape]
    cut = Excerpts(parse_query(asked), "model").cut_to_best_sentences(text)
    assert asked in cut
    assert "…" in cut
    assert count_text_tokens(cut, "model") <= EXCERPT_TOKENS + 10


def test_a_short_text_stays_whole() -> None:
    for text in ("The kettle is broken.", "", "…", "\n\n"):
        assert Excerpts(parse_query("kettle"), "model").cut_to_best_sentences(text) == text

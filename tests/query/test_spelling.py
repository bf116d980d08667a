"""A question finds English words in either spelling."""

import memlog
from memlog.projector.text.tokens import other_spelling

PAIRS = [
    ("colour", "color"),
    ("colours", "colors"),
    ("favourite", "favorite"),
    ("neighbourhood", "neighborhood"),
    ("theatre", "theater"),
    ("grey", "gray"),
]


def test_each_spelling_is_the_others_other():
    for british, american in PAIRS:
        assert (other_spelling(british), other_spelling(american)) == (american, british), (british, american)


def test_other_words_have_one_spelling():
    words = ["tea", "hour", "four", "colony", "honest", "цвет", "茶", ""]
    assert [word for word in words if other_spelling(word) is not None] == []


def test_a_question_in_one_spelling_finds_a_text_in_the_other(tmp_path):
    with memlog.open(tmp_path, durability="os") as store:
        for number, pair in enumerate(PAIRS):
            for text, name in zip(pair, "ba", strict=True):
                store.memories.save(f"about the {text} of it", memory_id=f"{name}{number}")
        for number, pair in enumerate(PAIRS):
            for asked in pair:
                found = {hit.id for hit in store.search(asked, mode="text").hits}
                assert found >= {f"a{number}", f"b{number}"}, asked

"""However a topic is spelled, and in whatever number, it has one key."""

import pytest

import memlog
from memlog.query.facts.topic_keys import LONGEST, fact_words, key_of
from tests.support.refusals import refused

KEYS = [
    (
        "favorite_colors",
        "favourite_colors|favorite colour|my favorite colors|My-Favourite-Colours|fav colour"
        "|любимые_цвета"
        "|мой любимый цвет|lempivärit|lempivärini|minun suosikkivärini|favorite\u00ad_colors",
    ),
    ("favorite_cryptos", "favourite crypto|favorite_cryptocurrencies|любимая криптовалюта|lempikryptoni"),
    (
        "favorite_tv",
        "favourite TV|favorite tv shows|favourite television series|любимый сериал|lempi-tv-sarjat",
    ),
    ("favorite_candies", "favourite candy|favorite candies|favourite sweets|любимые конфеты|lempikarkit"),
    ("favorite_movies", "favourite movie|my favorite movies"),
    ("favorite_cities", "favourite city|favorite-cities"),
    ("favorite_programming_languages", "favourite programming language"),
    ("favorite_theaters", "favourite theatre"),
    ("favorite_music", "favourite music"),
    ("city", "cities|City|my city"),
    ("wife_favorite_color", "wife's favourite colour"),
    ("status", "status"),
    ("house", "houses"),
    ("virus", "viruses"),
    ("box", "boxes"),
    ("hero", "heroes"),
    ("news", "news"),
    ("child", "children"),
    ("любимые_города", "любимые города|мои любимые города"),
    ("lempikaupungit", "lempikaupungit"),
    ("喜欢的颜色", "喜欢的颜色"),
    ("c++", "C++"),
]


def test_spelling_and_number_map_to_one_key():
    for key, spellings in KEYS:
        assert {key_of(spelling) for spelling in spellings.split("|")} == {key}, key
        assert key_of(key) == key, key


def test_a_built_in_topic_is_its_own_key_and_no_word_names_two():
    for said in fact_words().values():
        assert [key_of(key) for key in said.topics] == list(said.topics)
        words = [word for each in said.topics.values() for word in each.split()]
        assert len(words) == len(set(words))


def test_a_similar_topic_has_another_key():
    for others in ("favourite car colour", "colour", "favourite flower", "любимые цветы", "väri"):
        assert key_of(others) != "favorite_colors", others


def test_what_can_be_no_key_is_refused():
    for name in ("", "   ", "___", "?!", "\u200b", "a\tb", "a\nb", "a\x00b", "\x1b[31m", "x" * 300):
        with refused(name) as caught:
            key_of(name)
        assert caught.value.hint, repr(name)


def test_the_longest_key_is_taken():
    assert key_of("x" * LONGEST) == "x" * LONGEST
    with pytest.raises(memlog.BadInput):
        key_of("x" * (LONGEST + 1))

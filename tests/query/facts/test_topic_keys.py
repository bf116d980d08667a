"""However a topic is spelled, and in whatever number, it has one key."""

import pytest

import memlog
from memlog.query.facts.answers import NOT_STORED
from memlog.query.facts.topic_keys import LONGEST, load_fact_words, make_topic_key
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
    ("favorite_movies", "favourite movies|My-Favorite-Movies|fav movies"),
    ("favorite_programming_languages", "favourite programming languages"),
    ("favorite_music", "favourite music"),
    ("city", "City|my city|“city”|CITY:"),
    ("wife's_favourite_colour", "Wife’s favourite-colour"),
    ("любимые_города", "любимые города|мои любимые города"),
    ("lempikaupungit", "lempikaupungit"),
    ("喜欢的颜色", "喜欢的颜色"),
    ("c++", "C++"),
]

APART = """http https|postgre Postgres|texa Texas|kubernete Kubernetes|redi Redis
|nf nfs|car cars|glass glasses|new news|box boxes|levi Levi's|cheque check|metre meter
|programme program|child children|favorite favorites
|net .net|env .env|favorite team, favorite teams"""

ALIKE = [
    ("cities", "city"),
    ("city", "Cities"),
    ("favourite movies", "favorite movie"),
    ("favourite theatre", "favorite theaters"),
    ("children", "child"),
    ("wife's favourite colour", "wife favorite colors"),
    ("colour", "color"),
]


def test_spellings_of_one_name_map_to_one_key():
    for key, spellings in KEYS:
        assert {make_topic_key(spelling) for spelling in spellings.split("|")} == {key}, key
        assert make_topic_key(key) == key, key


def test_names_that_differ_in_a_letter_are_two_topics_of_which_each_has_its_value(tmp_path):
    pairs = [pair.split("," if "," in pair else None) for pair in APART.split("|")]
    with memlog.open(tmp_path) as store:
        for at, names in enumerate(pairs):
            for name in names:
                store.facts.set(name, f"value of {name}", single=True, chat=f"x:{at}")
        for at, names in enumerate(pairs):
            values = [store.facts.get(name, chat=f"x:{at}").answer for name in names]
            assert values == [f"value of {name}" for name in names]
            store.facts.remove(names[1], chat=f"x:{at}")
            left = [fact.value for fact in store.facts.list(chat=f"x:{at}")]
            assert left == [f"value of {names[0]}"], names


def test_asking_finds_the_other_number_or_spelling_of_a_topic_after_the_topic_itself(tmp_path):
    with memlog.open(tmp_path) as store:
        for at, (stored, asked) in enumerate(ALIKE):
            store.facts.set(stored, "first", chat=f"x:{at}")
            assert store.facts.get(asked, chat=f"x:{at}").answer == "first", asked
            store.facts.set(asked, "second", chat=f"x:{at}")
            assert store.facts.get(asked, chat=f"x:{at}").answer == "second", asked
            assert store.facts.get(stored, chat=f"x:{at}").answer == "first", stored
            assert store.facts.ask(f"my {stored}", chat=f"x:{at}").answer in ("first", NOT_STORED), stored
        store.facts.set("http", "80", single=True)
        assert not store.facts.get("https").found


def test_a_key_of_an_older_log_stays_and_is_found_by_the_name_that_made_it(tmp_path):
    stored = ["postgre", "texa", "city", "favorite_theaters", "wife_favorite_color"]
    asked = ["Postgres", "Texas", "cities", "favourite theatre", "wife's favourite colour"]
    with memlog.open(tmp_path) as store:
        store.append([memlog.FactStored(topic_key=key, value=key) for key in stored])
        assert [store.facts.get(name).answer for name in asked] == stored
        hits = [
            store.search(key, filters={"topic": name}).hits for key, name in zip(stored, asked, strict=True)
        ]
        assert [hit.content for (hit,) in hits] == [f"{key}: {key}" for key in stored]
        store.facts.set("Postgres", "new", single=True)
        assert (store.facts.get("Postgres").answer, store.facts.get("postgre").answer) == ("new", "postgre")


def test_a_built_in_topic_is_its_own_key_and_no_word_names_two():
    for said in load_fact_words().values():
        assert [make_topic_key(key) for key in said.topics] == list(said.topics)
        words = [word for each in said.topics.values() for word in each.split()]
        assert len(words) == len(set(words))


def test_a_similar_topic_has_another_key():
    for others in ("favourite car colour", "colour", "favourite flower", "любимые цветы", "väri"):
        assert make_topic_key(others) != "favorite_colors", others


def test_what_can_be_no_key_is_refused():
    for name in ("", "   ", "___", "?!", "\u200b", "a\tb", "a\nb", "a\x00b", "\x1b[31m", "x" * 300):
        with refused(name) as caught:
            make_topic_key(name)
        assert caught.value.hint, repr(name)


def test_the_longest_key_is_taken():
    assert make_topic_key("x" * LONGEST) == "x" * LONGEST
    with pytest.raises(memlog.BadInput):
        make_topic_key("x" * (LONGEST + 1))

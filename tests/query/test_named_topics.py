"""A question that names a memory's topic raises that topic."""

import pytest

import memlog
from memlog import Filters, Ranking


@pytest.fixture
def store(tmp_path):
    with memlog.open(tmp_path / "store", durability="os") as opened:
        yield opened


def save(store, memory_id, topic, number):
    """All say the same, and the newest of equals comes first."""
    ts = f"2026-02-{number:02}T08:00:00.000Z"
    store.memories.save("The kettle was bought in May", memory_id=memory_id, topic=topic, ts=ts)


def ids(store, question, mode="text", **asked):
    return [hit.id for hit in store.search(question, mode=mode, **asked).hits]


@pytest.fixture
def three(store):
    """In the order in which they come where no topic counts: other, plain, kitchen."""
    save(store, "kitchen", "kitchen_things", 1)
    save(store, "plain", None, 2)
    save(store, "other", "camping", 3)
    return store


def test_a_named_topic_comes_first(three):
    for question in (
        "kettle among kitchen things",
        "Kitchen thing: the kettle",
        "THINGS of the kitchen, a kettle?",
    ):
        for mode in ("text", "vector", "hybrid"):
            assert ids(three, question, mode) == ["kitchen", "other", "plain"], (question, mode)


def test_a_topic_of_which_a_word_is_missing_is_not_named(three):
    for question in ("the kettle", "the kettle in the kitchen", "kettle things"):
        assert ids(three, question) == ["other", "plain", "kitchen"], question


def test_without_priors_a_topic_does_not_count(three):
    asked = "kettle among kitchen things"
    for mode in ("text", "vector", "hybrid"):
        assert ids(three, asked, mode, ranking=Ranking(priors=False)) == ["other", "plain", "kitchen"], mode


def test_explain_shows_what_a_topic_adds(three):
    hits = three.search("kettle among kitchen things", mode="text", explain=True).hits
    priors = {hit.id: hit.explain["text"].prior for hit in hits}
    assert priors["kitchen"] == pytest.approx(priors["plain"] + 0.3)
    assert priors["other"] == priors["plain"]


def test_a_topic_is_named_in_either_spelling(store):
    save(store, "a", "favourite_colours", 1)
    save(store, "b", None, 2)
    assert ids(store, "kettle, favorite color") == ["a", "b"]


def test_a_topic_without_a_word_is_never_named(store):
    save(store, "a", "!!!", 1)
    save(store, "b", None, 2)
    assert ids(store, "kettle") == ["b", "a"]


def test_a_fact_is_raised_by_its_key(store):
    for number, topic in enumerate(("favorite_teas", "teas_of_my_favorite_shop"), start=1):
        said = {"topic_key": topic, "value": "sencha", "ts": f"2026-02-{number:02}T08:00:00Z"}
        store.append([{"type": "fact_stored"} | said])
    found = [hit.id for hit in store.search("favourite tea", mode="text").hits]
    assert found == ["favorite_teas/0", "teas_of_my_favorite_shop/0"]


def test_a_topic_filters(three):
    asked = Filters(topic="kitchen_things")
    for mode in ("text", "vector", "hybrid"):
        assert ids(three, "kettle", mode, filters=asked) == ["kitchen"], mode
        assert ids(three, "kettle", mode, filters=Filters(topic="kitchen")) == [], mode

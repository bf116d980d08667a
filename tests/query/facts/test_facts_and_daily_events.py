"""Facts and daily events are found as memories are, by words and by meaning, with the filters of memories."""

import pytest

import memlog
from memlog import DailyEventRecorded, FactRemoved, FactStored, Filters

MODES = ("text", "vector", "hybrid")


@pytest.fixture
def store(tmp_path):
    with memlog.open(tmp_path / "store", durability="os") as opened:
        yield opened


@pytest.fixture(scope="module")
def one_of_each(tmp_path_factory):
    """A store with a fact and a daily event, for tests that only read."""
    with memlog.open(tmp_path_factory.mktemp("each"), durability="os") as opened:
        opened.append([fact("Green", id="f1", ts="2026-02-24T08:00:00Z")])
        opened.daily.record("Twelve guests came", date="2026-02-24", channel="telegram", event_id="e1")
        opened.maintenance.project()
        yield opened


def fact(value, rank=2, topic="favorite_colors", **more):
    kind = "ranked" if rank else "single"
    return FactStored(topic_key=topic, value=value, kind=kind, rank=rank, chat_id="telegram:7", **more)


def found(store, question, mode="text", **filters):
    return [hit.content for hit in store.search(question, mode=mode, filters=Filters(**filters)).hits]


# Facts


def test_a_fact_is_found_as_a_memory(store):
    (position,) = store.append([fact("Green", id="f1", ts="2026-02-24T08:00:00Z")])
    for mode in MODES:
        (hit,) = store.search("favorite colors", mode=mode).hits
        assert (hit.kind, hit.source, hit.category, hit.chat) == ("memory", "fact", "facts", "telegram:7")
        assert (hit.content, hit.snippet) == ("favorite_colors 2: Green", "favorite_colors 2: Green")
        assert (hit.id, hit.event_id) == ("favorite_colors/2/telegram:7", "f1"), mode
        assert hit.ts == "2026-02-24T08:00:00.000Z"
        assert (hit.position.stream, hit.position.offset) == ("facts", position.offset)
        assert (hit.title, hit.role, hit.file) == (None, None, None)


def test_a_fact_is_found_by_its_value_and_its_topic_in_either_spelling(store):
    store.append([fact("Green"), fact("Helsinki", 0, "city")])
    for question in (
        "favorite_colors",
        "favorite color",
        "favourite colour",
        "What is my favourite colour?",
        "favourites",
        "my second favorite: green",
        "Green",
        "colours I like",
    ):
        assert found(store, question) == ["favorite_colors 2: Green"], question


def test_a_single_fact_has_no_rank_and_that_of_the_store_no_chat(store):
    store.append([FactStored(topic_key="city", value="Helsinki")])
    (hit,) = store.search("city", mode="text").hits
    assert (hit.id, hit.content, hit.chat) == ("city/0", "city: Helsinki", None)


CHANGES = {
    "another rank": (fact("Blue", 1), ["favorite_colors 1: Blue", "favorite_colors 2: Green"]),
    "replaced": (fact("Black"), ["favorite_colors 2: Black"]),
    "older": (fact("Black", ts="2026-02-20T08:00:00Z"), ["favorite_colors 2: Green"]),
    "removed": (FactRemoved(topic_key="favorite_colors", chat_id="telegram:7"), []),
    "rank removed": (FactRemoved(topic_key="favorite_colors", chat_id="telegram:7", rank=2), []),
    "other rank": (
        FactRemoved(topic_key="favorite_colors", chat_id="telegram:7", rank=1),
        ["favorite_colors 2: Green"],
    ),
    "other chat": (FactRemoved(topic_key="favorite_colors"), ["favorite_colors 2: Green"]),
    "redacted": ({"type": "redacted", "target_id": "f1", "stream": "facts"}, []),
}


@pytest.mark.parametrize(("change", "left"), CHANGES.values(), ids=CHANGES)
def test_what_no_longer_stands_is_no_longer_found(store, change, left):
    store.append([fact("Green", id="f1", ts="2026-02-24T08:00:00Z")])
    assert found_in_both(store) == [["favorite_colors 2: Green"]] * 2
    store.append([change])
    assert found_in_both(store) == [left] * 2
    store.maintenance.project(from_scratch=True)
    assert found_in_both(store) == [left] * 2
    assert store.maintenance.verify().problems == []


def found_in_both(store):
    return [sorted(found(store, "favorite colors", mode)) for mode in ("text", "vector")]


OF_FACTS = [
    ({"category": "facts"}, True),
    ({"category": "other"}, False),
    ({"source": "fact"}, True),
    ({"source": "manual"}, False),
    ({"topic": "favorite_colors"}, True),
    ({"topic": "my favourite colour"}, True),
    ({"topic": "city"}, False),
    ({"chat": ("telegram", "7")}, True),
    ({"chat": ("telegram", "8")}, False),
    ({"since": "2026-02-24T08:00:00.000Z"}, True),
    ({"since": "2026-02-24T08:00:00.001Z"}, False),
    ({"until": "2026-02-24T08:00:00.000Z"}, False),
    ({"until": "2026-02-24T08:00:00.001Z"}, True),
    ({"kinds": frozenset({"memory"})}, True),
    ({"kinds": frozenset({"message", "document"})}, False),
    ({"role": "user"}, False),
    ({"tag": "tea"}, False),
    ({"min_salience": 1.0}, True),
    ({"exclude": frozenset({"favorite_colors/2/telegram:7"})}, False),
    ({"exclude": frozenset({"f1"})}, False),
]


def test_filters_apply_to_facts(one_of_each):
    for filters, is_found in OF_FACTS:
        for mode in ("text", "vector"):
            hits = found(one_of_each, "favorite colors", mode, **filters)
            assert ("favorite_colors 2: Green" in hits) is is_found, (filters, mode)


def test_facts_of_any_topics_and_chats_have_ids_of_their_own(store):
    odd = [("a", 1, "x:1"), ("a/1", 1, None), ("a/1/x:1", 0, None), ("a", 0, "x:1"), ("a%2F1", 1, None)]
    odd += [("a", 1, "x:1/0"), ("a/1/x:1", 1, "x:1"), ("a", 1, None)]
    store.append(
        [
            FactStored(
                topic_key=topic, kind="ranked" if rank else "single", rank=rank, value="tea", chat_id=chat
            )
            for topic, rank, chat in odd
        ]
    )
    ids = [hit.id for hit in store.search("tea", mode="text", k=20).hits]
    assert len(set(ids)) == len(ids) == len(odd)


def test_the_line_behind_a_fact_is_shown_by_the_id_of_the_hit(store):
    store.append([fact("Green", id="f1"), fact("Black", id="f2")])
    shown = store.get("favorite_colors/2/telegram:7")
    assert shown is not None
    assert (shown.id, '"Black"' in shown.raw) == ("f2", True)


@pytest.mark.parametrize("topic", ["Favourite Colour", "favorite_colors"])
def test_a_key_that_others_wrote_is_found_in_any_spelling(store, topic):
    store.append([fact("Green", topic="Favourite Colour"), fact("Blue", 1)])
    assert found(store, "colour", topic=topic) == ["Favourite Colour 2: Green", "favorite_colors 1: Blue"]


# Daily events


def test_a_daily_event_is_found_as_a_memory(store):
    position = store.daily.record("Twelve guests came", date="2026-02-24", channel="telegram", event_id="e1")
    for mode in MODES:
        (hit,) = store.search("guests who came", mode=mode).hits
        assert (hit.kind, hit.source) == ("memory", "daily_event"), mode
        assert (hit.category, hit.chat) == ("daily_events", None)
        assert (hit.id, hit.event_id, hit.content) == ("e1", "e1", "Twelve guests came")
        assert (hit.ts, hit.position.offset) == ("2026-02-24T00:00:00.000Z", position.offset)


def test_a_daily_event_is_found_by_its_day(store):
    store.daily.record("Twelve guests came", date="2026-02-24")
    store.daily.record("The oven was repaired", date="2026-02-25")
    assert found(store, '"2026-02-24"') == ["Twelve guests came"]
    assert found(store, "what happened on 2026-02-25")[0] == "The oven was repaired"


OF_DAILY_EVENTS = [
    ({"category": "daily_events"}, True),
    ({"category": "summaries"}, False),
    ({"source": "daily_event"}, True),
    ({"source": "fact"}, False),
    ({"since": "2026-02-24T00:00:00.000Z"}, True),
    ({"since": "2026-02-25T00:00:00.000Z"}, False),
    ({"until": "2026-02-24T00:00:00.000Z"}, False),
    ({"until": "2026-02-25T00:00:00.000Z"}, True),
    ({"chat": ("telegram", "7")}, False),
    ({"topic": "guests"}, False),
    ({"kinds": frozenset({"memory"})}, True),
    ({"kinds": frozenset({"message", "document"})}, False),
    ({"exclude": frozenset({"e1"})}, False),
]


def test_filters_apply_to_daily_events(one_of_each):
    for filters, is_found in OF_DAILY_EVENTS:
        for mode in ("text", "vector"):
            hits = found(one_of_each, "guests", mode, **filters)
            assert ("Twelve guests came" in hits) is is_found, (filters, mode)


def test_a_distilled_daily_event_is_found_still_and_a_forgotten_one_is_not(store):
    store.daily.record("Twelve guests came", date="2026-02-24", event_id="e1")
    store.daily.compress("e1")
    assert found(store, "guests") == ["Twelve guests came"]
    store.erasure.forget("e1")
    for mode in ("text", "vector"):
        assert found(store, "guests", mode) == []
    assert store.maintenance.verify().problems == []


def test_a_daily_event_that_says_nothing_is_not_found(store):
    store.append([DailyEventRecorded(event_date="2026-02-24", summary=" ")])
    assert found(store, '"2026-02-24"') == []
    assert store.maintenance.verify().problems == []

"""Categories, decays and pruning as a Python program uses them."""

import json
import math
from datetime import UTC, datetime, timedelta

import pytest

import memlog
from memlog.eventlog.categories import CATEGORIES
from memlog.query.memories import compute_freshness, compute_relevance
from memlog.service.memory import fading
from tests.support.damaged_stores import clock
from tests.support.refusals import refused

KNOWN = ", ".join(CATEGORIES)
NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def at_noon():
    """All of a test happens at one time."""
    with clock(as_text(NOON)):
        yield


def as_text(time):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def ago(days):
    return as_text(NOON - timedelta(days=days))


def ids(found):
    return [memory.memory_id for memory in found]


def saliences(memories):
    return {memory.memory_id: memory.salience for memory in memories.list()}


def lines(store, kind):
    """What the log says of one type, line by line."""
    segments = sorted((store.path / "log/memory").iterdir())
    events = [json.loads(line) for segment in segments for line in segment.read_text().splitlines()]
    return [event for event in events if event["type"] == kind]


# Categories and kinds


OF_NO_CATEGORY = {
    "save": lambda store: store.memories.save("tea", category="preferences"),
    "save nothing": lambda store: store.memories.save("tea", category=""),
    "update": lambda store: store.memories.update("m", category="Decisions"),
    "list": lambda store: store.memories.list(category="drinks"),
    "prune": lambda store: store.memories.prune(categories=["temp", "tmp"]),
    "decay": lambda store: store.memories.decay({"contex": 0.9}),
    "list facts": lambda store: store.memories.list(category="facts"),
    "filter": lambda store: memlog.Filters(category="drinks"),
}
OF_NO_KIND = {
    "save": lambda memories: memories.save("tea", kind="opinion"),
    "update": lambda memories: memories.update("m", kind="opinion"),
    "list": lambda memories: memories.list(kind="opinion"),
}


def test_an_unknown_category_is_refused_and_the_error_lists_the_known(store):
    store.memories.save("tea", memory_id="m")
    for name, ask in OF_NO_CATEGORY.items():
        with refused(name, match=f"not one of {KNOWN}\n"):
            ask(store)
        assert len(store.memories.history("m")) == 1, name


def test_an_unknown_kind_is_refused_and_the_error_lists_the_known(memories):
    memories.save("tea", memory_id="m")
    for name, ask in OF_NO_KIND.items():
        with refused(name, match="kind is 'opinion'") as caught:
            ask(memories)
        assert caught.value.hint == "use one of: 'fact', 'preference', 'insight'", name
        assert len(memories.history("m")) == 1, name


def test_decision_is_read_as_decisions_wherever_a_category_is_named(store):
    memories = store.memories
    memories.save("green tea", memory_id="saved", category="decision")
    memories.save("black tea", memory_id="updated", category="temp")
    memories.update("updated", category="decision")
    store.append([memlog.MemorySaved(memory_id="raw", content="white tea", category="decision")])
    store.append([memlog.MemorySaved(memory_id="raw update", content="red tea")])
    store.append([memlog.MemoryUpdated(memory_id="raw update", category="decision")])
    for name in ("decision", "decisions"):
        assert {memory.category for memory in memories.list(category=name)} == {"decisions"}
        assert len(memories.list(category=name)) == 4
        found = store.search("tea", mode="text", filters=memlog.Filters(category=name))
        assert {hit.category for hit in found.hits} == {"decisions"}
        assert len(found.hits) == 4
    assert memories.decay({"decision": 0.5}).rates == {"decisions": 0.5}
    store.append([memlog.SalienceDecayed(rates={"decision": 0.5})])
    store.append([memlog.SalienceDecayed(rates={"decision": 0.1, "decisions": 0.5})])
    assert set(saliences(memories).values()) == {0.125}
    assert [line["category"] for line in lines(store, "memory_saved")[:2]] == ["decisions", "temp"]


def test_a_category_that_memlog_does_not_know_behaves_as_other(store):
    memories = store.memories
    store.append([memlog.MemorySaved(memory_id="raw", content="rye bread", category="recipes", ts=ago(200))])
    memories.save("oat bread", memory_id="other", ts=ago(200))
    memories.save("warm bread", memory_id="context", category="context", ts=ago(200))
    store.append([memlog.SummaryWritten(channel="x", chat_id="1", content="bread was baked")])
    raw, other = memories.get("raw"), memories.get("other")
    assert (raw.category, raw.freshness) == ("recipes", other.freshness)
    assert set(ids(memories.list(category="other"))) == {"raw", "other"}
    found = store.search("bread", mode="text", filters=memlog.Filters(category="other"))
    assert {hit.id for hit in found.hits} == {"raw", "other"}
    memories.decay({"other": 0.5})
    assert saliences(memories) == {"raw": 0.5, "other": 0.5, "context": 1.0}
    store.append([memlog.SalienceDecayed(rates={"recipes": 0.5, "other": 1.0})])
    assert saliences(memories) == {"raw": 0.25, "other": 0.5, "context": 1.0}


def test_a_memory_under_a_name_that_searches_find_others_under_is_of_other(store):
    store.append([memlog.MemorySaved(memory_id="m", content="rye bread", category="facts", ts=ago(5000))])
    assert ids(store.memories.list(category="other")) == ["m"]
    assert ids(store.memories.prune(categories=["other"], threshold=0.1).memories) == ["m"]


# What else cannot be a memory


def test_an_importance_beyond_0_to_1_is_refused(store):
    store.memories.save("tea", memory_id="m")
    for importance in (2, -0.1, math.nan, math.inf):
        with refused(importance):
            store.memories.save("coffee", importance=importance)
        with refused(importance):
            store.memories.update("m", importance=importance)
        assert len(lines(store, "memory_saved")) == 1, importance


def test_an_empty_content_is_refused(memories):
    memories.save("tea", memory_id="m")
    with pytest.raises(memlog.BadInput):
        memories.save("")
    with pytest.raises(memlog.BadInput):
        memories.update("m", content="")
    assert memories.get("m").content == "tea"


def test_a_deleted_memory_cannot_be_updated(memories):
    memories.save("tea", memory_id="m")
    memories.delete("m")
    with pytest.raises(memlog.NotFound) as caught:
        memories.update("m", content="coffee")
    assert caught.value.code == "memory_not_found"
    assert len(memories.history("m")) == 2


def test_a_salience_beyond_0_to_1_is_refused(memories):
    for least in (2, -1, math.nan):
        with refused(least, match="min_salience is"):
            memories.list(min_salience=least)


# What events did, and what age does


def test_what_events_did_and_what_age_does_are_shown_apart(store):
    memories = store.memories
    memories.save("tea", memory_id="m", category="event", importance=0.8, ts=ago(60))
    store.append([memlog.SalienceDecayed(rates={"event": 0.5}, ts=ago(30))])
    for found in (memories.get("m"), memories.list()[0]):
        assert (found.importance, found.salience, found.age_days) == (0.8, 0.5, 60)
        assert found.freshness == compute_freshness("event", 60) == 0.5
        assert found.relevance == compute_relevance(0.8, 0.5, "event", 60) == 0.2


def test_age_counts_from_the_last_change_of_what_a_memory_says(memories):
    memories.save("tea", memory_id="m", ts=ago(90))
    memories.touch("m")
    assert memories.get("m").age_days == 90
    memories.update("m", content="coffee", ts=ago(10))
    assert memories.get("m").age_days == 10
    memories.archive("m")
    assert memories.get("m").age_days == 10


def test_a_list_is_ordered_by_what_events_did_and_not_by_age(memories):
    memories.save("old", memory_id="old", category="temp", ts=ago(500))
    memories.save("new", memory_id="new", ts=ago(1))
    memories.update("new", salience=0.9)
    assert ids(memories.list()) == ["old", "new"]
    assert memories.get("old").relevance < memories.get("new").relevance


# Decays


def test_a_decay_multiplies_by_the_rates_of_the_table(memories):
    for name in CATEGORIES:
        memories.save(name, memory_id=name, category=name, ts=ago(1))
    done = memories.decay()
    assert (done.decision, done.event_id) == ("decayed", f"decay-{done.ts[:10]}")
    assert done.position.id == done.event_id
    assert done.rates == saliences(memories) == {name: each.rate for name, each in CATEGORIES.items()}


def test_a_decay_says_how_many_memories_it_changed(memories):
    memories.save("older", memory_id="older", category="context", ts=ago(1))
    memories.save("unknown", memory_id="unknown", category="event", ts=ago(1))
    memories.save("kept", memory_id="kept", category="identity", ts=ago(1))
    memories.save("gone", memory_id="gone", category="context", ts=ago(1))
    memories.update("gone", salience=0)
    memories.save("archived", memory_id="archived", category="temp", ts=ago(1))
    memories.archive("archived")
    before = saliences(memories)
    changed = memories.decay().changed
    after = saliences(memories)
    lower = [name for name in before if after[name] < before[name]]
    assert sorted(lower) == ["older", "unknown"]
    assert changed == len(lower) + 1  # the archived one
    assert memories.decay().changed == 0


def test_one_decay_counts_a_day_whatever_number_of_times_it_is_called(store):
    store.memories.save("tea", memory_id="m", category="context", ts=ago(2))
    first = store.memories.decay()
    for rates in (None, {"context": 0.1}):
        again = store.memories.decay(rates)
        assert (again.decision, again.position) == ("already done today", None)
        assert (again.event_id, again.ts, again.rates) == (first.event_id, first.ts, first.rates)
    assert saliences(store.memories) == {"m": 0.9}
    assert len(lines(store, "salience_decayed")) == 1


def test_a_decay_of_another_day_counts_besides(store):
    yesterday = ago(1)
    store.memories.save("tea", memory_id="m", category="context", ts=ago(2))
    store.append([memlog.SalienceDecayed(id=f"decay-{yesterday[:10]}", ts=yesterday, rates={"context": 0.9})])
    assert store.memories.decay().decision == "decayed"
    assert saliences(store.memories) == {"m": 0.9 * 0.9}


def test_rates_that_are_given_stand_in_the_place_of_the_tables(store):
    for name in ("context", "temp"):
        store.memories.save(name, memory_id=name, category=name, ts=ago(1))
    assert store.memories.decay({"context": 0.25}).rates == {"context": 0.25}
    assert saliences(store.memories) == {"context": 0.25, "temp": 1.0}
    assert lines(store, "salience_decayed")[0]["rates"] == {"context": 0.25}


def test_a_rate_beyond_0_to_1_is_refused(store):
    for rate in [1.5, -1, -0.001, math.nan, math.inf, "0.9", True, None]:
        with refused(rate, match="the rate of context is"):
            store.memories.decay({"temp": 0.5, "context": rate})
        with refused(rate, match="no rates were given"):
            store.memories.decay({})
        assert not (store.path / "log").exists(), rate


def test_of_two_calls_at_once_the_first_line_counts_and_both_say_so(store):
    """The other one comes between what this one has read and what it appends."""
    store.memories.save("tea", memory_id="m", category="context", ts=ago(1))
    others = []

    def append_behind(events):
        others.append(store.memories.decay({"context": 0.5}))
        return store.append(events)

    decide = store._engine.read_model.query_for_decision
    done = fading.append_todays_decay(append_behind, decide, {"context": 0.25})
    assert [done.decision, others[0].decision] == ["already done today", "decayed"]
    assert (done.rates, done.position) == ({"context": 0.5}, None)
    assert saliences(store.memories) == {"m": 0.5}


def _decay(path, barrier, answers):
    with clock(as_text(NOON)), memlog.open(path) as store:
        barrier.wait(60)
        answers.put([store.memories.decay().decision for _ in range(3)])


def test_two_processes_that_decay_at_once_are_one_event(spawning, store):
    store.memories.save("tea", memory_id="m", category="context", ts=ago(1))
    barrier, answers = spawning.Barrier(2), spawning.Queue()
    processes = [spawning.Process(target=_decay, args=(store.path, barrier, answers)) for _ in range(2)]
    for process in processes:
        process.start()
    said = answers.get(timeout=60) + answers.get(timeout=60)
    for process in processes:
        process.join(60)
    assert sorted(said) == ["already done today"] * 5 + ["decayed"]
    assert saliences(store.memories) == {"m": 0.9}
    assert store.maintenance.verify().ok


def test_a_day_whose_decay_was_forgotten_is_not_decayed_again(store):
    store.memories.save("tea", memory_id="m", category="context", ts=ago(1))
    done = store.memories.decay()
    store.erasure.forget(done.event_id)
    assert saliences(store.memories) == {"m": 1.0}
    with pytest.raises(memlog.BadInput, match=f"{done.event_id} cannot decay anything"):
        store.memories.decay()
    assert len(lines(store, "salience_decayed")) == 1


def test_an_event_that_has_the_days_id_is_no_decay(store):
    today = ago(0)[:10]
    store.append([memlog.MemorySaved(id=f"decay-{today}", memory_id="m", content="tea")])
    with pytest.raises(memlog.BadInput, match=f"decay-{today} cannot decay anything"):
        store.memories.decay()
    assert store.maintenance.status().conflicts == 0


# Pruning


def test_what_has_faded_to_the_threshold_is_archived_and_no_longer_searched(store):
    for days in (8, 9):
        store.memories.save(f"tea {days}", memory_id=f"temp {days}", category="temp", ts=ago(days))
    for days in (26, 27):
        store.memories.save(f"tea {days}", memory_id=f"debug {days}", category="debug", ts=ago(days))
    store.memories.save("tea", memory_id="old", ts=ago(5000))
    done = store.memories.prune()
    assert ids(done.memories) == ["debug 27", "temp 9"]
    assert (done.archived, done.threshold, done.categories) == (2, 0.001, ["temp", "debug"])
    assert set(ids(store.memories.list(archived=True))) == {"temp 9", "debug 27"}
    assert {hit.id for hit in store.search("tea", mode="text").hits} == {"temp 8", "debug 26", "old"}
    assert store.memories.prune().memories == []
    assert len(lines(store, "memory_archived")) == 2


def test_a_dry_run_archives_nothing(store):
    store.memories.save("tea", memory_id="m", category="temp", ts=ago(100))
    done = store.memories.prune(dry_run=True)
    assert (ids(done.memories), done.archived, done.dry_run) == (["m"], 0, True)
    assert lines(store, "memory_archived") == []


def test_what_says_that_it_is_of_the_future_is_pruned_once(store):
    store.memories.save("tea", memory_id="m", category="temp", importance=0.0, ts=ago(-1000))
    assert [store.memories.prune().archived for _ in range(2)] == [1, 0]
    assert store.memories.list() == []


def test_other_categories_and_thresholds_are_pruned_where_they_are_named(store):
    memories = store.memories
    memories.save("a", memory_id="context", category="context", importance=1.0, ts=ago(30))
    memories.save("b", memory_id="other", importance=0.1, ts=ago(120))
    store.append(
        [memlog.MemorySaved(memory_id="raw", content="c", category="recipes", importance=0.1, ts=ago(120))]
    )
    memories.save("d", memory_id="temp", category="temp", ts=ago(100))
    assert ids(memories.prune(categories=["context"], threshold=0.49).memories) == []
    assert ids(memories.prune(categories=["context"], threshold=0.5).memories) == ["context"]
    assert ids(memories.prune(categories=("other", "other"), threshold=0.05).memories) == ["other", "raw"]
    assert ids(memories.list()) == ["temp"]


def test_a_decay_takes_part_in_what_is_pruned(store):
    store.memories.save("tea", memory_id="m", category="temp", ts=ago(1))
    assert store.memories.prune().archived == 0
    store.append([memlog.SalienceDecayed(rates={"temp": 0.004}, ts=ago(0))])
    assert ids(store.memories.prune().memories) == ["m"]


def test_what_cannot_be_pruned_by_is_refused(memories):
    for asked in ({"threshold": 1.5}, {"threshold": -1}, {"threshold": math.nan}, {"categories": []}):
        with refused(asked):
            memories.prune(**asked)


# What is used stays


def test_what_is_asked_for_daily_stays_and_the_rest_fades_as_before(store):
    kettle = "The kettle stands in the blue cupboard of the kitchen"
    others = [f"The old kettle number {number} stands in a cupboard" for number in range(4)]
    for name, text in [("kettle", kettle), ("never", "The lamp is green"), *enumerate(others)]:
        store.memories.save(text, memory_id=str(name), category="context", dedup=False)
    store.maintenance.embed()
    for day in range(60):
        with clock(as_text(NOON + timedelta(days=day))):
            store.memories.decay()
            given = store.context("Where is the kettle of the kitchen, in which cupboard?")
            lines = [entry.id for entry in given.entries]
            assert lines[0] == "kettle", day
            if day < 10:
                assert len(lines) == 5
    found = saliences(store.memories)
    kept = {name for name, salience in found.items() if salience == 1}
    assert "kettle" in kept
    assert len(kept) == 2
    faded = [salience for name, salience in found.items() if name not in kept]
    assert faded == [pytest.approx(0.9**60)] * 4
    digest = store.maintenance.digest()
    store.maintenance.project(from_scratch=True, embed=False)
    assert store.maintenance.digest() == digest


def test_saying_it_again_restores_it_and_brings_it_back(store):
    name = store.memories.save("The kettle is blue", category="context", ts=ago(2)).memory_id
    store.append(memlog.SalienceDecayed(ts=ago(1), rates={"context": 0.1}))
    assert saliences(store.memories) == {name: pytest.approx(0.1)}
    store.memories.archive(name)
    assert store.memories.save("The kettle is blue").decision == "already known"
    assert saliences(store.memories) == {name: 1.0}
    assert [hit.id for hit in store.search("kettle").hits] == [name]


def test_what_always_holds_is_not_used_by_being_given(store):
    store.memories.save("Never boil the kettle dry", memory_id="rule", category="context", ts=ago(1))
    store.memories.decay()
    assert [entry.part for entry in store.context("How do I boil the kettle?").entries] == ["always"]
    assert saliences(store.memories) == {"rule": 0.9}

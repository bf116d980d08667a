"""Facts: set, shown, removed; the last one wins, in its own chat."""

import os
import signal
import subprocess
import sys
from itertools import permutations

import pytest

import memlog
from memlog.query.facts.answers import NOT_STORED
from memlog.query.facts.topic_keys import LONGEST
from tests.support.refusals import refused


def listed(store, topic, **asked):
    """The values of a list by rank."""
    return {fact.rank: fact.value for fact in store.facts.get(topic, **asked).facts}


def test_a_list_is_set_and_read_by_rank(store):
    done = store.facts.set("favourite_colours", "Blue", "Green", "Black", source_message_id="m1")
    assert (done.topic_key, done.kind, done.ranks) == ("favorite_colors", "ranked", [1, 2, 3])
    assert len(done.positions) == 1
    found = store.facts.get("my favorite colour", rank=2)
    assert (found.found, found.answer, found.why) == (True, "Green", None)
    assert found.facts[0].source_message_id == "m1"
    assert found.facts[0].event_id == done.positions[0].id
    assert store.facts.get("favorite_colors").answer == "1. Blue\n2. Green\n3. Black"


def test_a_single_value_is_set_and_read(store):
    assert store.facts.set("city", "Helsinki", single=True).ranks == [0]
    assert store.facts.get("city").answer == "Helsinki"
    assert not store.facts.get("city", rank=1).found


def test_a_shorter_list_leaves_no_old_rank_behind(store):
    store.facts.set("favourite colours", "Blue", "Green", "Black")
    store.facts.set("favorite color", "Red")
    assert listed(store, "favorite_colors") == {1: "Red"}


def test_a_list_is_one_event_so_that_none_is_half_replaced(store):
    store.facts.set("teas", "sencha", "oolong", "assam")
    (position,) = store.facts.set("teas", "earl grey", "rooibos").positions
    segment = store.path / "log" / position.stream / position.segment
    data = segment.read_bytes()
    without_newline = len(data) - 1
    for end in range(position.offset, without_newline):
        segment.write_bytes(data[:end])
        if end % 16 == 0 or end == without_newline - 1:
            assert list(listed(store, "teas").values()) == ["sencha", "oolong", "assam"], end
    segment.write_bytes(data)
    assert listed(store, "teas") == {1: "earl grey", 2: "rooibos"}


SETS = [
    {"ts": "2026-02-24T08:00:00.000Z", "value": "a", "rest": ["b", "c"]},
    {"ts": "2026-02-24T08:00:01.000Z", "value": "d", "rest": []},
    {"ts": "2026-02-24T08:00:02.000Z", "value": "e", "rest": ["f"]},
]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_later_list_stands_whatever_the_order_of_arrival(store, order):
    for number in order:
        said = {"type": "fact_stored", "topic_key": "tea", "kind": "ranked", "rank": 1}
        store.append([said | SETS[number]])
        store.maintenance.project(embed=False)
    assert listed(store, "tea") == {1: "e", 2: "f"}
    digest = store.maintenance.digest(content=True)
    store.maintenance.project(from_scratch=True, embed=False)
    assert store.maintenance.digest(content=True) == digest


def test_what_two_processes_set_at_once_is_one_of_both(store):
    program = (
        "import memlog,sys\nwith memlog.open(sys.argv[1]) as s:\n"
        " for n in range(20): s.facts.set('tea', *[sys.argv[2]] * (n % 3 + 2))"
    )
    names = ["x", "y"]
    running = [subprocess.Popen([sys.executable, "-c", program, store.path, name]) for name in names]
    assert [process.wait(60) for process in running] == [0, 0]
    found = listed(store, "tea")
    assert (sorted(found), len({*found.values()})) == ([*range(1, len(found) + 1)], 1)


def test_a_writer_that_is_killed_leaves_the_old_list_or_a_new_one(store):
    program = (
        "import memlog,sys\ns=memlog.open(sys.argv[1])\ns.facts.set('tea', '0')\nprint(flush=True)\n"
        "n=0\nwhile True:\n n+=1; s.facts.set('tea', *[str(n)] * (n % 5 + 1))"
    )
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", program, store.path], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        found = listed(store, "tea")
        assert len({*found.values()}) == 1
        assert list(found) == list(range(1, int(found[1]) % 5 + 2))


def test_one_rank_is_set_and_the_others_stay(store):
    store.facts.set("teas", "sencha", "oolong")
    done = store.facts.set("teas", "assam", "rooibos", ranks=[2, 3])
    assert len(done.positions) == 2
    assert listed(store, "teas") == {1: "sencha", 2: "assam", 3: "rooibos"}


def test_a_removed_rank_leaves_the_others_where_they_are(store):
    store.facts.set("teas", "sencha", "oolong", "assam")
    assert len(store.facts.remove("teas", rank=2)) == 1
    assert listed(store, "teas") == {1: "sencha", 3: "assam"}
    found = store.facts.get("teas", rank=2)
    assert (found.answer, found.why) == (NOT_STORED, "teas has no rank 2, but 1, 3")


def test_a_topic_is_removed_in_every_spelling_and_kind(store):
    store.append(
        [
            memlog.FactStored(topic_key="favourite_colours", value="grey"),
            memlog.FactStored(topic_key="favorite_colors", value="blue", kind="ranked", rank=1),
        ]
    )
    assert len(store.facts.remove("favorite_colors", rank=1)) == 2
    assert not store.facts.get("favorite_colors").found
    assert store.facts.list() == []


def test_nothing_to_remove_is_an_error(store):
    store.facts.set("teas", "sencha")
    for asked in ({"topic": "city"}, {"topic": "tea", "rank": 2}, {"topic": "tea", "chat": "x:1"}):
        with pytest.raises(memlog.NotFound) as error:
            store.facts.remove(**asked)
        assert error.value.code == "fact_not_found"


def test_of_a_list_and_a_single_value_the_one_set_last_stands(store):
    store.facts.set("city", "Helsinki", "Turku")
    store.facts.set("city", "Oulu", single=True)
    assert store.facts.get("city").answer == "Oulu"
    assert [fact.value for fact in store.facts.list()] == ["Oulu"]
    store.facts.set("city", "Espoo", "Vantaa")
    assert listed(store, "city") == {1: "Espoo", 2: "Vantaa"}


def test_facts_of_another_writer_are_found_as_they_stand(store):
    store.append([memlog.FactStored(topic_key="Favourite Colour", value="grey", kind="ranked", rank=1)])
    (fact,) = store.facts.get("favorite_colors").facts
    assert (fact.topic_key, fact.value) == ("Favourite Colour", "grey")
    store.facts.set("favorite_colors", "blue")
    assert store.facts.get("favorite_colors").answer == "blue"


def test_a_fact_is_its_chats_own_and_another_chats_is_said_to_be(store):
    store.facts.set("tea", "sencha", chat="telegram:7")
    store.facts.set("tea", "oolong", chat="telegram:8")
    assert not store.facts.get("tea").found
    assert store.facts.get("tea", chat="telegram:7").answer == "sencha"
    found = store.facts.get("tea", any_chat=True)
    assert (found.answer, found.route.chat, found.route.other_chat) == ("oolong", "telegram:8", True)
    store.facts.set("tea", "assam")
    found = store.facts.get("tea", any_chat=True)
    assert (found.answer, found.route.chat, found.route.other_chat) == ("assam", None, False)


def test_another_chats_list_does_not_go_on_with_this_one(store):
    store.facts.set("tea", "sencha", "oolong", "assam", chat="x:1")
    store.facts.set("tea", "earl grey")
    assert not store.facts.get("tea", rank=2, any_chat=True).found


def test_facts_are_listed_by_chat_the_newest_topic_first(store):
    store.facts.set("tea", "sencha", "oolong", chat="x:1")
    store.facts.set("city", "Turku", single=True)
    assert [fact.value for fact in store.facts.list()] == ["Turku", "sencha", "oolong"]
    assert [fact.value for fact in store.facts.list(chat="x:1")] == ["sencha", "oolong"]


NO_FACTS = [
    ("tea", [], {}),
    ("tea", [""], {}),
    ("tea", ["sencha", "  "], {}),
    ("tea", ["a\nb"], {}),
    ("tea", ["a\x1bb"], {}),
    ("tea", ["x" * 1001], {}),
    ("", ["sencha"], {}),
    ("x" * 300, ["sencha"], {}),
    ("te\x00a", ["sencha"], {}),
    ("tea", ["sencha"], {"ranks": [0]}),
    ("tea", ["sencha"], {"ranks": [-1]}),
    ("tea", ["sencha"], {"ranks": [2**40]}),
    ("tea", ["sencha", "oolong"], {"ranks": [1, 1]}),
    ("tea", ["sencha", "oolong"], {"ranks": [1]}),
    ("tea", ["sencha"], {"ranks": [2]}),
    ("tea", ["sencha", "oolong"], {"single": True}),
    ("tea", ["sencha"], {"single": True, "ranks": [1]}),
]


def test_what_can_be_no_fact_is_refused_and_nothing_is_written(store):
    for topic, values, said in NO_FACTS:
        with refused((topic, values, said)) as caught:
            store.facts.set(topic, *values, **said)
        assert caught.value.hint, (topic, values, said)
    assert not (store.path / "log").exists()


def test_a_key_of_another_script_and_of_the_full_length_is_taken(store):
    for topic in ("города_детства", "颜色", "x" * LONGEST):
        assert store.facts.set(topic, "1").topic_key == topic
        assert store.facts.get(topic).answer == "1"


def test_a_rank_that_no_list_has_is_refused(store):
    for rank in (0, -1, 2**40):
        with refused(rank):
            store.facts.get("tea", rank=rank)
        with refused(rank):
            store.facts.remove("tea", rank=rank)


def test_the_rest_of_a_list_follows_rank_1_alone():
    with pytest.raises(ValueError, match="only a fact with rank 1"):
        memlog.FactStored(topic_key="tea", value="sencha", kind="ranked", rank=2, rest=["oolong"])

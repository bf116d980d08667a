"""What was said around a message counts for it: two turns on each side, in its session, in both lists."""

import pytest

import memlog
from memlog import Filters, Message, Ranking, SessionBreak


def said(content, id_, minute, *, chat="1", role="user", **more):
    ts = f"2026-02-24T08:{minute:02}:00Z"
    return Message(channel="cli", chat_id=chat, role=role, content=content, id=id_, ts=ts, **more)


TALK = [
    said("Where were you in spring?", "a", 0),
    said("Did you ever see Lisbon?", "b", 1),
    said("Yes, last May.", "c", 2, role="assistant"),
    said("How nice.", "d", 3),
    said("The cat sleeps.", "e", 4),
    said("Rates rose again.", "f", 5),
]


def ids(store, question="Lisbon", **options):
    return [hit.id for hit in store.search(question, mode="text", **options).hits]


def test_two_turns_on_each_side_of_a_match_are_found_behind_it(store):
    store.append(TALK)
    assert ids(store)[0] == "b"
    assert set(ids(store)) == {"a", "b", "c", "d"}
    hits = store.search("Lisbon", mode="text").hits
    assert [hit.only_context for hit in hits] == [False, True, True, True]
    assert ids(store, ranking=Ranking(context=False)) == ["b"]


def test_the_vectors_find_neighbours_and_say_how_near_they_are(store):
    store.append(TALK)
    store.maintenance.project()
    near = store.search("a journey to Portugal", mode="vector", explain=True).hits
    alone = store.search("a journey to Portugal", mode="vector", ranking=Ranking(context=False)).hits
    assert near[0].id == alone[0].id == "b"
    places = [[hit.id for hit in hits].index("c") for hits in (near, alone)]
    assert places[0] <= places[1]
    assert near[0].explain["vector"].found > 0


def test_a_session_break_ends_the_context(store):
    store.append([*TALK[:2], SessionBreak(channel="cli", chat_id="1", ts="2026-02-24T08:01:30Z"), *TALK[2:]])
    assert set(ids(store)) == {"a", "b"}


def test_another_chat_is_no_context(store):
    store.append([said("Did you see Lisbon?", "b", 1), said("Yes.", "c", 2, chat="2")])
    assert ids(store) == ["b"]


def test_two_streams_of_one_chat_are_one_context(store, tmp_path):
    store.append([said("Did you see Lisbon?", "b", 1)])
    other = tmp_path / "store/log/conversations/cli_%31"
    other.mkdir()
    line = '{"id":"c","ts":"2026-02-24T08:02:00.000Z","role":"user","content":"Yes.","type":null,"meta":{}}'
    (other / "2026-02-24.jsonl").write_text(line + "\n")
    assert ids(store) == ["b", "c"]


def test_a_message_that_arrives_late_completes_the_context(store):
    store.append([TALK[1], TALK[5]])
    assert ids(store) == ["b", "f"]
    store.append([TALK[2], TALK[3], TALK[4]])
    assert set(ids(store)) == {"b", "c", "d"}


def test_a_neighbour_that_is_forgotten_is_none(store):
    store.append(TALK)
    store.append([memlog.Redacted(target_id="c", stream="conversations/cli_1")])
    assert set(ids(store)) == {"a", "b", "d", "e"}


def test_what_the_filters_leave_out_counts_for_others_and_is_no_hit(store):
    store.append(TALK)
    assert ids(store, filters=Filters(role="assistant")) == []
    store.append([said("Lisbon, you say.", "g", 6, role="assistant"), said("I do.", "h", 7)])
    assert set(ids(store, filters=Filters(role="assistant"))) == {"g"}
    store.append([said("And Porto?", "i", 8), said("Lisbon and Porto!", "j", 9, role="assistant")])
    # The assistant's answer is no hit, but i is better for it.
    found = store.search("Lisbon Porto", mode="text", filters=Filters(role="user"), explain=True).hits
    by_id = {hit.id: hit.explain["text"].found for hit in found}
    assert by_id["i"] > by_id["b"]


def test_a_neighbour_that_repeats_a_word_counts_less_than_one_that_adds_one(store):
    store.append(
        [
            said("The boat.", "x1", 0),
            said("Is it the red boat?", "x2", 1),
            said("It is red.", "y1", 0, chat="2"),
            said("The boat is there.", "y2", 1, chat="2"),
            said("Rates rose.", "z", 0, chat="3"),
        ]
    )
    assert ids(store, "red boat").index("y2") < ids(store, "red boat").index("x1")


def test_raw_syntax_finds_what_it_says_and_nothing_beside_it(store):
    store.append(TALK)
    assert ids(store, is_raw=True) == ["b"]


def test_min_similarity_leaves_out_neighbours_that_are_less_similar(store):
    store.append(TALK)
    store.maintenance.project()
    hits = store.search("Lisbon", mode="vector", min_similarity=0.4).hits
    assert hits
    assert all(hit.similarity >= 0.4 for hit in hits)


@pytest.mark.deep
def test_many_messages_of_one_moment_are_looked_through_fast(store):
    """Foreign lines without a time stand at the start of their day."""
    moment = "2026-02-24T00:00:00Z"
    store.append(
        [Message(channel="cli", chat_id="1", role="user", content=f"tea {n}", ts=moment) for n in range(5000)]
    )
    store.maintenance.project(embed=False)
    assert store.search("tea", mode="text").took_ms < 2000


def test_the_same_list_comes_three_times_after_a_rebuild_and_from_single_steps(store, tmp_path):
    store.append(TALK)
    store.maintenance.project()

    def printed(asked):
        return [(hit.id, hit.score, hit.similarity) for hit in asked.search("Lisbon in May").hits]

    first = printed(store)
    assert [printed(store) for _ in range(3)] == [first] * 3
    store.maintenance.project(from_scratch=True)
    assert printed(store) == first
    with memlog.open(tmp_path / "steps") as steps:
        for event in reversed(TALK):
            steps.append([event])
            steps.maintenance.project()
        assert printed(steps) == first

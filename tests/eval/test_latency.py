"""The times of queries: what is made of them."""

from tests.eval.latency import LIMIT_MS, Times, failures, p95, texts_of, timed
from tests.eval.locomo import Conversation, Question


def alike(*clock):
    return Times(list(clock), [0.0] * len(clock))


def test_a_part_is_what_a_query_takes_more_with_it_question_by_question():
    assert alike(5.0, 9.0).less(alike(1.0, 2.0)) == alike(4.0, 7.0)


def test_95_of_100_are_no_slower_than_the_95th_percentile():
    times = [float(number) for number in range(1, 101)]
    assert sum(time <= p95(times) for time in times) == 95


def test_each_question_is_asked_in_every_way_and_the_warm_up_does_not_count():
    asked = []
    found = timed(["a", "b"], {"one": asked.append, "other": asked.append})
    assert asked == ["a", "a", "b", "b"] * 2
    assert {name: len(times.clock) for name, times in found.items()} == {"one": 2, "other": 2}


def test_questions_come_evenly_from_all_conversations_each_once():
    asked = [[Question(f"{each} {number}", frozenset()) for number in range(10)] * 2 for each in "ab"]
    conversations = [Conversation(each[0].text, [], {"corrected": each}) for each in asked]
    assert texts_of(conversations, 4) == ["a 0", "a 5", "b 0", "b 5"]


def test_a_check_fails_where_it_is_slow_or_another_part_is_the_largest():
    good = {"hybrid": alike(*[LIMIT_MS - 1.0] * 2), "embedding": alike(9.0), "text side": alike(1.0)}
    assert failures(good) == []
    assert len(failures(good | {"hybrid": alike(*[float(LIMIT_MS)] * 2)})) == 1
    assert failures(good | {"text side": alike(10.0)}) == ["the largest part is text side"]

"""Contexts on the LoCoMo conversations: they hold the answers that they must, and the figures are right."""

import os

import pytest

import memlog
from tests.eval.context import BUDGETS, evaluate, failures, holds_answer, main, report, share
from tests.eval.locomo import (
    CATEGORIES,
    VARIABLE,
    Asked,
    Conversation,
    Question,
    Sample,
    Turn,
    data_folder,
    events_of,
    read_conversations,
)

SAMPLE = Sample(
    sample_id="made-up",
    conversation={
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1": [Turn("D1:1", "Bo", "The kettle is new."), Turn("D1:2", "Ada", "And the cup?")],
        "session_1_date_time": "8:30 pm on 1 May, 2024",
        "session_2": [Turn("D2:1", "Ada", "Back again.")],
        "session_2_date_time": "9:00 am on 2 May, 2024",
    },
    qa=[Asked("unused", 1, ["D1:1"])],
)


def shares(found: dict[int, list[bool]]) -> dict[int, dict[int, list[bool]]]:
    """All questions of one category."""
    return {budget: {1: held, 2: held, 3: held, 4: held} for budget, held in found.items()}


def test_an_answer_is_held_where_one_of_its_turns_is(tmp_path):
    with memlog.open(tmp_path) as store:
        store.append(events_of(SAMPLE))
        given = store.context("kettle", chat=("locomo", "made-up"))
    assert holds_answer(given, Question("kettle", frozenset({"D1:1", "D9:9"})))
    assert holds_answer(given, Question("window", frozenset({"D2:1"})))
    assert not holds_answer(given, Question("kettle", frozenset({"D9:9"})))


def test_the_share_is_of_all_questions():
    of_category = {1: [True, False, False, False], 2: [True], 3: [], 4: [True]}
    assert share(of_category) == 0.5


def test_a_check_fails_where_too_few_contexts_of_2000_tokens_hold_an_answer():
    good, bad = [True, True, True, False], [True, False, True, False]
    assert failures(shares({500: bad, 1000: bad, 2000: good, 4000: good})) == []
    assert failures(shares({500: good, 1000: good, 2000: bad, 4000: good})) == [
        "of contexts of 2,000 tokens 0.500 hold an answer, less than 0.75"
    ]


def test_the_report_has_a_line_for_each_size():
    _, *rows = report(shares({500: [True], 2000: [False]})).splitlines()
    assert [row.split()[:2] for row in rows] == [["500", "1.000"], ["2,000", "0.000"]]


def test_without_data_one_line_says_what_to_do(monkeypatch, capsys):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert main([]) == 2
    assert capsys.readouterr().err.startswith(f"eval: {VARIABLE} is not set")


def test_every_question_is_asked_with_each_budget(tmp_path):
    asked = [Question("kettle", frozenset({"D1:1"}), 1), Question("cup", frozenset({"D9:9"}), 4)]
    conversation = Conversation("made-up", events_of(SAMPLE), {"original": asked})
    found = evaluate([conversation], tmp_path)
    assert found == {
        budget: {category: {1: [True], 4: [False]}.get(category, []) for category in CATEGORIES}
        for budget in BUDGETS
    }


@pytest.mark.eval
def test_contexts_of_one_conversation_hold_the_answers_that_they_must(tmp_path):
    if VARIABLE not in os.environ:
        pytest.skip(f"{VARIABLE} does not name a folder with the LoCoMo conversations")
    conversation = read_conversations(data_folder())[5]
    few = Conversation(
        conversation.id, conversation.events, {"original": conversation.questions["original"][:40]}
    )
    assert failures(evaluate([few], tmp_path)) == []

"""Contexts on the LoCoMo conversations: they hold the answers that they must, and the figures are right."""

import os

import pytest

from tests.eval.context import BUDGETS, evaluate, failures
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

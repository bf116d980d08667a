"""Contexts on the LoCoMo conversations: they hold the answers that they must, and the figures are right."""

import os

import pytest

from tests.eval.context import evaluate, failures
from tests.eval.locomo import (
    VARIABLE,
    Conversation,
    data_folder,
    read_conversations,
)


@pytest.mark.eval
def test_contexts_of_one_conversation_hold_the_answers_that_they_must(tmp_path):
    if VARIABLE not in os.environ:
        pytest.skip(f"{VARIABLE} does not name a folder with the LoCoMo conversations")
    conversation = read_conversations(data_folder())[5]
    few = Conversation(
        conversation.id, conversation.events, {"original": conversation.questions["original"][:40]}
    )
    assert failures(evaluate([few], tmp_path)) == []

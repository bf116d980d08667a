"""The gate on texts that nobody wrote for it: questions are worth a look, few turns of friends are not."""

import os

import pytest

import memlog
from tests.eval import xquad
from tests.eval.locomo import VARIABLE, data_folder, read_conversations

MOST_PASSED_OVER = 0.05


def passed_over(texts):
    return [text for text in texts if not memlog.should_retrieve(text)]


@pytest.fixture
def data():
    if VARIABLE not in os.environ:
        pytest.skip(f"{VARIABLE} does not name a folder with the texts")


@pytest.mark.usefixtures("data")
def test_each_question_of_xquad_is_worth_a_look():
    for collection in xquad.read_collections(xquad.data_folder()):
        questions = [question.text for question in collection.questions]
        assert len(questions) == 1190
        assert passed_over(questions) == [], collection.language


@pytest.mark.usefixtures("data")
def test_each_question_of_locomo_is_worth_a_look_and_so_are_most_turns():
    conversations = read_conversations(data_folder())
    questions = [asked.text for each in conversations for asked in each.questions["original"]]
    assert len(questions) > 1500
    assert passed_over(questions) == []
    turns = [message.content for each in conversations for message in each.messages]
    short = passed_over(turns)
    print(f"{len(questions)} questions; {len(short)} of {len(turns)} turns are passed over")
    assert 0 < len(short) < MOST_PASSED_OVER * len(turns)

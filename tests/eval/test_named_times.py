"""The questions of LoCoMo name times of which none is invented."""

import os
import re
from datetime import date

import pytest

from memlog.query.time_words import find_past_days
from tests.eval.locomo import VARIABLE, data_folder, read_conversations

RELATIVE = re.compile(
    r"last (year|week|weekend)|yesterday|(\w+) years? ago|in the last year|in [A-Z]\w+|Aug 15th"
)
"""What questions name without a year."""


@pytest.mark.eval
def test_questions_are_given_no_days_that_they_do_not_name() -> None:
    if VARIABLE not in os.environ:
        pytest.skip(f"{VARIABLE} does not name a folder with the conversations")
    named, wrong = 0, []
    for conversation in read_conversations(data_folder()):
        for question in {each.text for asked in conversation.questions.values() for each in asked}:
            days = find_past_days(question, date(2024, 1, 15))
            if days is None:
                continue
            named += 1
            years = re.findall(r"\b20\d\d\b", question)
            is_right = str(days.first.year) in years if years else RELATIVE.fullmatch(days.words)
            wrong += [] if is_right else [(question, days)]
    assert wrong == []
    assert named >= 150

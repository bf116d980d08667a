"""Thirty questions in Finnish, whose words have other endings than in the sentences that answer them."""

import pytest

import memlog
from memlog.eventlog.events import Message
from memlog.query.search.request import parse_query
from tests.support.places import FIXTURES

FOLDER = FIXTURES / "finnish"
PAIRS = [line.split("\t") for line in (FOLDER / "questions.tsv").read_text().splitlines()]
OTHERS = (FOLDER / "others.txt").read_text().splitlines()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The thirty sentences among the others, each a chat of its own: none helps another."""
    texts = [*OTHERS[::2], *(sentence for _, sentence in PAIRS), *OTHERS[1::2]]
    with memlog.open(tmp_path_factory.mktemp("finnish")) as opened:
        opened.append(
            [
                Message(id=str(number), channel="cli", chat_id=str(number), role="user", content=text)
                for number, text in enumerate(texts)
            ]
        )
        opened.maintenance.project()
        yield opened


def test_there_are_thirty_questions_and_a_hundred_other_sentences():
    assert len(PAIRS) == 30
    assert len(set(OTHERS)) >= 100


def test_no_word_of_a_question_stands_in_its_sentence():
    for question, sentence in PAIRS:
        assert not set(parse_query(question).words) & set(parse_query(sentence).words), question


def test_a_sentence_is_found_by_other_forms_of_its_words(store):
    for question, sentence in PAIRS:
        for mode in ("text", "hybrid"):
            hits = store.search(question, mode=mode, k=5, sync=False).hits
            assert sentence in [hit.content for hit in hits], (question, mode)

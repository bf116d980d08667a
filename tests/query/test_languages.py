"""Each language file does what the table of examples in fixtures/languages says of it."""

import tomllib
from pathlib import Path
from typing import get_args

import pytest

import memlog
from memlog.projector.text.language_files import Table, languages

FOLDER = Path(__file__).parents[2] / "fixtures/languages"
EXAMPLES = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in FOLDER.iterdir()}
WITH_FACTS = list(languages("facts"))
WITH_GATE = list(languages("gate"))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The texts of all languages in one store, the facts of each in a chat of its own."""
    with memlog.open(tmp_path_factory.mktemp("store"), durability="os") as opened:
        texts = [text for examples in EXAMPLES.values() for text, _ in examples["search"]]
        opened.append([memlog.Message(channel="x", chat_id="1", role="user", content=text) for text in texts])
        for name, examples in EXAMPLES.items():
            for topic, value in examples.get("facts", {}).items():
                values = [value] if isinstance(value, str) else value
                opened.facts.set(topic, *values, single=isinstance(value, str), chat=f"x:{name}")
        opened.maintenance.project(embed=False)
        yield opened


def test_each_language_has_examples_of_all_that_its_file_has():
    assert set(EXAMPLES) == {name for table in get_args(Table) for name in languages(table)}
    assert all(examples["search"] for examples in EXAMPLES.values())
    assert {name for name in EXAMPLES if "look" in EXAMPLES[name]} == set(WITH_GATE)
    assert {name for name in EXAMPLES if "facts" in EXAMPLES[name]} == set(WITH_FACTS)
    assert {"german", "spanish", "swedish"} <= set(WITH_FACTS) & set(WITH_GATE)


@pytest.mark.parametrize(
    ("text", "question"), [pair for examples in EXAMPLES.values() for pair in examples["search"]]
)
def test_a_question_finds_the_other_forms_of_its_words(store, text, question):
    for word in question.split():
        hits = store.search(word, k=50, mode="text").hits
        assert text in [hit.content for hit in hits], word


@pytest.mark.parametrize("name", WITH_GATE)
def test_the_gate_lets_questions_through_and_stops_small_talk(name):
    assert [text for text in EXAMPLES[name]["look"] if not memlog.should_retrieve(text)] == []
    assert [text for text in EXAMPLES[name]["pass_over"] if memlog.should_retrieve(text)] == []


@pytest.mark.parametrize(
    ("name", "question", "values"),
    [(name, *each) for name in WITH_FACTS for each in EXAMPLES[name]["answers"].items()],
)
def test_a_question_of_a_fact_is_answered_or_not(store, name, question, values):
    answer = store.facts.ask(question, chat=f"x:{name}")
    assert [fact.value for fact in answer.facts] == values, answer.why

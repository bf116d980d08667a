"""Each language file does what the table of examples in fixtures/languages says of it."""

import tomllib
from typing import get_args

import pytest

import memlog
from memlog.projector.text.language_files import Table, load_languages_with_table
from tests.support.places import FIXTURES


def tables(folder: str):
    files = sorted((FIXTURES / folder).iterdir())
    return {file.stem: tomllib.loads(file.read_text(encoding="utf-8")) for file in files}


EXAMPLES = tables("languages")
HELD_OUT = tables("languages-held-out")
PAGE = (FIXTURES.parent / "docs/languages.md").read_text(encoding="utf-8")
WITH_FACTS = list(load_languages_with_table("facts"))
WITH_GATE = list(load_languages_with_table("gate"))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The texts of all languages in one store, the facts of each in a chat of its own."""
    with memlog.open(tmp_path_factory.mktemp("store"), durability="os") as opened:
        texts = [text for examples in EXAMPLES.values() for text, _ in examples["search"]]
        # Each in a chat of its own, since a search also finds the neighbours of what it finds.
        messages = enumerate(texts)
        opened.append(
            [memlog.Message(channel="x", chat_id=str(n), role="user", content=t) for n, t in messages]
        )
        for name, examples in EXAMPLES.items():
            for topic, value in examples.get("facts", {}).items():
                values = [value] if isinstance(value, str) else value
                opened.facts.set(topic, *values, single=isinstance(value, str), chat=f"x:{name}")
        opened.maintenance.project(embed=False)
        yield opened


def test_each_language_has_examples_of_all_that_its_file_has():
    assert set(EXAMPLES) == {name for table in get_args(Table) for name in load_languages_with_table(table)}
    assert all(examples["search"] for examples in EXAMPLES.values())
    assert {name for name in EXAMPLES if "look" in EXAMPLES[name]} == set(WITH_GATE)
    assert {name for name in EXAMPLES if "facts" in EXAMPLES[name]} == set(WITH_FACTS)
    assert {"german", "spanish", "swedish"} <= set(WITH_FACTS) & set(WITH_GATE)


def test_a_question_finds_the_other_forms_of_its_words(store):
    for text, question in [pair for examples in EXAMPLES.values() for pair in examples["search"]]:
        for word in question.split():
            hits = store.search(word, k=50, mode="text").hits
            assert text in [hit.content for hit in hits], (text, word)


def test_the_gate_lets_questions_through_and_stops_small_talk():
    for name in WITH_GATE:
        assert [text for text in EXAMPLES[name]["look"] if not memlog.should_retrieve(text)] == [], name
        assert [text for text in EXAMPLES[name]["pass_over"] if memlog.should_retrieve(text)] == [], name


def test_a_question_of_a_fact_is_answered_or_not(store):
    for name in WITH_FACTS:
        for question, values in EXAMPLES[name]["answers"].items():
            answer = store.facts.ask(question, chat=f"x:{name}")
            assert [fact.value for fact in answer.facts] == values, (question, answer.why)


@pytest.mark.parametrize("name", HELD_OUT)
def test_what_was_written_before_the_words_is_understood_as_the_page_says(name, tmp_path):
    held_out = HELD_OUT[name]
    gate = [bool(memlog.should_retrieve(text)) for text in held_out["look"]]
    gate += [not memlog.should_retrieve(text) for text in held_out["pass_over"]]
    with memlog.open(tmp_path, durability="os") as store:
        for topic, _, value in held_out["facts"]:
            values = [value] if isinstance(value, str) else value
            store.facts.set(topic, *values, single=isinstance(value, str))
        keys = [len(store.facts.get(other).facts) > 0 for _, other, _ in held_out["facts"]]
        answers = {
            question: [fact.value for fact in store.facts.ask(question).facts]
            for question in held_out["answers"]
        }
    right = [answers[question] == values for question, values in held_out["answers"].items()]
    assert [q for q, values in answers.items() if values and values != held_out["answers"][q]] == []
    figures = (f"{sum(each)} of {len(each)}" for each in (gate, keys, right))
    assert f"| {name.title()} | {' | '.join(figures)} |" in PAGE

"""XQuAD's files are read as they are; searches in three languages find what they must."""

import msgspec
import pytest

from tests.eval import xquad
from tests.eval.locomo import MODES, CannotMeasure


@pytest.fixture
def folder(tmp_path):
    """A folder with a file for each language, of two paragraphs and three questions."""
    data = {
        "data": [
            {
                "title": "ignored",
                "paragraphs": [
                    {"context": "Tea grows on hills.", "qas": [{"question": "Where does tea grow?"}]},
                    {
                        "context": "Kettles boil water.",
                        "qas": [{"question": "What boils?"}, {"question": "Kettle?"}],
                    },
                ],
            }
        ]
    }
    for language in xquad.LANGUAGES:
        (tmp_path / f"xquad.{language}.json").write_bytes(msgspec.json.encode(data))
    return tmp_path


def test_each_question_should_find_its_own_paragraph(folder):
    english, *_ = xquad.read_collections(folder)
    assert [event.content for event in english.events] == ["Tea grows on hills.", "Kettles boil water."]
    assert [(asked.text, set(asked.relevant)) for asked in english.questions] == [
        ("Where does tea grow?", {"xquad/0"}),
        ("What boils?", {"xquad/1"}),
        ("Kettle?", {"xquad/1"}),
    ]


def test_figures_come_from_a_store_that_was_filled_by_append(folder, tmp_path):
    english, *_ = xquad.read_collections(folder)
    figures = xquad.figures_by_mode(english, tmp_path / "store")
    assert {mode: found.recall_10 for mode, found in figures.items()} == dict.fromkeys(MODES, 1.0)
    assert figures["text"].reciprocal_rank == 1.0


@pytest.mark.eval
def test_the_full_text_finds_what_it_must_in_three_languages(tmp_path):
    try:
        collections = xquad.read_collections(xquad.data_folder())
    except CannotMeasure as error:
        pytest.skip(str(error))
    for collection in collections:
        found = xquad.text_figures(collection, tmp_path / collection.language)
        assert found.recall_10 >= xquad.LEAST_RECALL[collection.language]["text"]

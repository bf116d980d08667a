"""XQuAD's files are read as they are; searches in three languages find what they must."""

import pytest

from tests.eval import xquad
from tests.eval.locomo import CannotMeasure


@pytest.mark.eval
def test_the_full_text_finds_what_it_must_in_three_languages(tmp_path):
    try:
        collections = xquad.read_collections(xquad.data_folder())
    except CannotMeasure as error:
        pytest.skip(str(error))
    for collection in collections:
        found = xquad.text_figures(collection, tmp_path / collection.language)
        assert found.recall_10 >= xquad.LEAST_RECALL[collection.language]["text"]

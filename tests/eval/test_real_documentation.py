"""What tests/eval/documents.py measures, on the pages of this repository."""

from tests.eval import documents
from tests.support.places import ROOT

DOCS = ROOT / "docs"


def test_every_sampled_hit_is_where_it_says_and_a_second_adding_appends_nothing(tmp_path):
    figures = documents.measured([DOCS, documents.package_folder("click")], tmp_path / "store", sample=80)
    assert (figures.hits, figures.wrong, figures.appended_again) == (80, [], 0)
    assert figures.files == figures.indexed + figures.skipped
    assert figures.indexed >= 30

"""What tests/eval/documents.py measures, on the pages of this repository."""

import msgspec

import memlog
from tests.eval import documents
from tests.support.places import ROOT

DOCS = ROOT / "docs"


def test_every_sampled_hit_is_where_it_says_and_a_second_adding_appends_nothing(tmp_path):
    figures = documents.measured([DOCS, documents.package_folder("click")], tmp_path / "store", sample=80)
    assert (figures.hits, figures.wrong, figures.appended_again) == (80, [], 0)
    assert figures.files == figures.indexed + figures.skipped
    assert figures.indexed >= 30


def test_a_hit_that_is_elsewhere_is_seen(tmp_path):
    """The check itself."""
    with memlog.open(tmp_path / "store") as store:
        store.documents.add(DOCS)
        for hit in documents.sampled(store, 20, seed=1):
            assert documents.why_wrong(store, hit) is None
            lines = hit.end_line - hit.start_line + 1
            start, end = hit.end_line + 1, hit.end_line + lines
            assert documents.why_wrong(store, msgspec.structs.replace(hit, start_line=start, end_line=end))

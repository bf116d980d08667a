"""The storm of texts, on a few shorter ones."""

from itertools import islice

from tests.crash.storms import texts


def test_texts_of_repeated_atoms_take_no_second_from_append_to_context() -> None:
    done = list(texts.timed(islice(texts.texts(20261123, longest=10_000), 150)))
    assert len(done) == 150

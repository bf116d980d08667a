"""What shapes rows beside the log is in the projection id; nothing else is."""

import pytest

import memlog
from memlog.eventlog import line, upcast
from memlog.projector import analysis, budget, chunking, handlers, schema
from memlog.projector.chunking import ChunkSizes

OLD_SCHEMA = schema.schema()

CHANGES = {
    "the schema": (schema, "schema", lambda: OLD_SCHEMA + "\nCREATE TABLE more (x);"),
    "how lines are read": (line, "VERSION", 99),
    "the upcasters": (upcast, "VERSION", 99),
    "the handlers": (handlers, "VERSION", 99),
    "the analyzer": (analysis, "VERSION", 99),
    "the chunker": (chunking, "VERSION", 99),
    "the budget of a text": (budget, "LONGEST_STRUCTURED", 99),
    "the budget of names": (budget, "LONGEST_NAMES", 99),
    "the vocabulary": (schema, "VOCABULARY_SHA256", "0" * 64),
    "the words of languages": (schema, "TEXT_SHA256", "0" * 64),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_what_shapes_rows_makes_another_generation(what, monkeypatch, tmp_path):
    told = []
    with memlog.open(tmp_path, notify=told.append) as store:
        store.append([memlog.MemorySaved(content="tea")])
        store.project(embed=False)
        before = store.status()
        module, name, value = CHANGES[what]
        monkeypatch.setattr(module, name, value)
        after = store.status()
    assert after.projection_id != before.projection_id
    assert after.generation != before.generation
    assert told == [
        "the read model was made with other chunk sizes, or by another memlog: "
        "built one from the log (1 events)"
    ]


@pytest.mark.parametrize("sizes", [ChunkSizes(401, 80), ChunkSizes(400, 81)])
def test_each_size_of_a_chunk_is_in_the_projection_id(sizes):
    assert schema.projection_id(sizes) != schema.projection_id(ChunkSizes())


def test_chunks_are_counted_with_the_shipped_vocabulary_whatever_the_model(tmp_path):
    """A folder's own tokenizer, no model, and the bundled one: one digest, chunk rows and all."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    other = tmp_path / "other"
    other.mkdir()
    (other / "model.onnx").write_bytes(b"no model")
    Tokenizer(WordLevel({"x": 0, "[UNK]": 1}, unk_token="[UNK]")).save(str(other / "tokenizer.json"))
    long = "A sentence about green tea and its harvest. " * 200
    digests = set()
    for number, model in enumerate([None, other, tmp_path / "nowhere"]):
        with memlog.open(tmp_path / str(number), model=model) as store:
            event = {"type": "memory_saved", "id": "e", "ts": "2026-02-24T08:00:00Z", "content": long}
            store.append([event])
            assert store.project(embed=False).vectors_pending == 6
            digests.add(store.digest(content=True))
    assert len(digests) == 1

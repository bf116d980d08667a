"""What shapes rows beside the log is in the projection id; nothing else is."""

import re

import memlog
from memlog.eventlog.codec import decode, upcast
from memlog.projector import catchup, limits, schema, subjects
from memlog.projector.passages import chunking
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.text import analyzer

OLD_SCHEMA = schema.read_schema()

CHANGES = {
    "the schema": (schema, "read_schema", lambda: OLD_SCHEMA + "\nCREATE TABLE more (x);"),
    "how lines are read": (decode, "VERSION", 99),
    "the upcasters": (upcast, "VERSION", 99),
    "the handlers": (subjects, "VERSION", 99),
    "the analyzer": (analyzer, "VERSION", 99),
    "the chunker": (chunking, "VERSION", 99),
    "the budget of a text": (limits, "LONGEST_STRUCTURED", 99),
    "the budget of names": (limits, "LONGEST_NAMES", 99),
    "the vocabulary": (catchup, "VOCABULARY_SHA256", "0" * 64),
    "the words of languages": (catchup, "TEXT_SHA256", "0" * 64),
}


def test_a_change_of_what_shapes_rows_makes_another_generation(monkeypatch, tmp_path):
    told = []
    with memlog.open(tmp_path, notify=told.append) as store:
        store.append([memlog.MemorySaved(content="tea")])
        for what, change in CHANGES.items():
            before = store.maintenance.status()
            told.clear()
            with monkeypatch.context() as patch:
                patch.setattr(*change)
                after = store.maintenance.status()
            assert after.projection_id != before.projection_id, what
            assert after.generation != before.generation, what
            assert told == [
                "the read model was built with other chunk sizes or by another memlog: "
                "built one from the log (1 event)"
            ], what


def test_a_comment_or_a_line_break_in_the_schema_rebuilds_nothing(monkeypatch, tmp_path):
    other = OLD_SCHEMA.replace("-- A row per", "-- One row for each").replace(",\n    ", ",\n\n\t")
    other = re.sub("  --.*", "", other)
    assert len(other) < len(OLD_SCHEMA)
    told = []
    with memlog.open(tmp_path, notify=told.append) as store:
        store.append([memlog.MemorySaved(content="tea")])
        store.maintenance.project(embed=False)
        before = store.maintenance.status()
        monkeypatch.setattr(schema, "read_schema", lambda: other)
        after = store.maintenance.status()
    assert (after.projection_id, after.generation) == (before.projection_id, before.generation)
    assert told == []


def test_a_change_of_any_statement_changes_the_projection_id(monkeypatch):
    statements = schema.list_statements()
    ids = {catchup.compute_projection_id(ChunkSizes())}
    for number, statement in enumerate(statements):
        changed = (*statements[:number], f"{statement} STRICT", *statements[number + 1 :])
        monkeypatch.setattr(schema, "list_statements", lambda changed=changed: changed)
        ids.add(catchup.compute_projection_id(ChunkSizes()))
    assert len(ids) == 1 + len(statements)


def test_no_literal_in_the_schema_looks_like_a_comment_or_the_end_of_a_statement():
    """`schema.list_statements` knows nothing of quotes."""
    found = re.findall(r"""--.*|'[^']*'|"[^"]*"|;""", OLD_SCHEMA)
    literals = [text for text in found if text[0] in "'\""]
    assert "'$.model'" in literals
    assert [text for text in literals if text != " ".join(text.split()) or "--" in text or ";" in text] == []
    assert found.count(";") == len(schema.list_statements())


def test_each_size_of_a_chunk_is_in_the_projection_id():
    for sizes in [ChunkSizes(401, 80), ChunkSizes(400, 81)]:
        assert catchup.compute_projection_id(sizes) != catchup.compute_projection_id(ChunkSizes()), sizes


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
            assert store.maintenance.project(embed=False).vectors_pending == 6
            digests.add(store.maintenance.digest(content=True))
    assert len(digests) == 1

"""Whatever stands in the read model's files: it is built anew and says so, and the log is not touched."""

import random
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.faults.simulation import in_memory
from tests.crash.storms.read_model_damage import PAGE, ReadModel, beside, cut, flipped, overwritten

SEED = 7


@pytest.fixture
def model() -> Iterator[ReadModel]:
    with in_memory() as folder:
        yield ReadModel(folder / "store")


def test_each_byte_of_page_1_that_sqlite_reads_flipped_is_healed_or_told_or_harmless(model):
    """https://www.sqlite.org/fileformat.html: the file's header, the b-tree's, and the cells."""
    read = [offset for offset in range(PAGE) if offset not in model.unread]
    assert read[:120] == [*range(120)]
    assert model.try_each(flipped(offset, 0xFF) for offset in read) == []
    assert model.done["with_repair"] > 20


def test_each_other_byte_of_page_1_flipped_is_harmless(model):
    assert model.try_each_unread() == []
    assert model.done == {"with_repair": 0, "told": 0, "harmless": len(model.unread)}


def test_flipped_bytes_anywhere_are_healed_or_told_or_harmless(model):
    rng = random.Random(SEED)
    offsets = rng.sample(range(PAGE, model.size), 200)
    assert model.try_each(flipped(offset, 1 << rng.randrange(8)) for offset in offsets) == []
    assert model.done["told"] > 0


def test_pages_of_zeros_or_of_anything_are_healed_or_told_or_harmless(model):
    rng = random.Random(SEED)
    pages = rng.sample(range(0, model.size, PAGE), 30)
    damages = [overwritten(page, rng.choice([bytes(PAGE), rng.randbytes(PAGE)])) for page in [0, *pages]]
    assert model.try_each(damages) == []
    assert model.done["with_repair"] > 5


def test_a_file_that_ends_early_is_healed(model):
    sizes = [0, 1, 15, 16, 99, 100, 511, PAGE - 1, PAGE, PAGE + 1, model.size // 2, model.size - PAGE]
    assert model.try_each(map(cut, sizes)) == []
    assert model.done["told"] == model.done["harmless"] == 0


def test_damaged_and_foreign_side_files_are_healed_or_told_or_harmless(model, tmp_path):
    """A -wal of another database may speak for this one; verify then tells."""
    foreign, wal = foreign_side_files(tmp_path)
    shm = bytes(32768)
    rng = random.Random(SEED)
    damages = [
        *(beside("-wal", data) for data in (b"", b"x", bytes(4096), rng.randbytes(9000), wal, wal[:-9])),
        *(beside("-shm", data) for data in (b"", b"x", shm, rng.randbytes(32768), foreign)),
        *(beside("-journal", data) for data in (b"", rng.randbytes(2000), bytes(512))),
    ]
    assert model.try_each(damages) == []


def test_another_schema_and_a_newer_format_are_healed(model):
    """A newer SQLite marks its files in two bytes of the header: to be read only, or not at all."""

    def of_another_schema(path):
        path.unlink()
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE meta (something TEXT)")
        db.close()

    def without_a_table(path):
        with sqlite3.connect(path) as db:
            db.execute("DROP TABLE memories")
        db.close()

    def with_rows_of_another_shape(path):
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA ignore_check_constraints = 1")
            db.execute("UPDATE messages SET metadata = '{'")
        db.close()

    def without_an_event(path):
        with sqlite3.connect(path) as db:
            db.execute("DELETE FROM events WHERE id = 'm7'")
        db.close()

    newer = [overwritten(18, bytes(both)) for both in ((3, 2), (2, 3), (3, 3))]
    newer.append(overwritten(44, b"\0\0\0\x09"))
    others = [
        ("another schema", of_another_schema),
        ("a table is gone", without_a_table),
        ("no JSON", with_rows_of_another_shape),
        ("a message without its event", without_an_event),
    ]
    assert model.try_each([*newer, *others]) == []
    assert model.done == {"with_repair": 7, "told": 0, "harmless": 1}, "what may be read only is read"


def test_a_file_that_may_be_read_only_is_healed_when_it_is_written(run, store):
    """A newer SQLite marks so what an older one must not change."""
    ReadModel(store)
    (generation,) = (store / "model").glob("*.db")
    data = bytearray(generation.read_bytes())
    data[18] = 3
    generation.write_bytes(data)
    said = ("append", "message", "--chat", "x:1", "--role", "user", "--content", "a late harbour")
    assert run(*said).code == 0
    found = run("query", "late", "--mode", "text", "--no-context", "--json")
    assert [hit["content"] for hit in found.json["hits"]] == ["a late harbour"]
    assert "the read model was damaged" in found.err
    assert "built one from the log (51 events)" in found.err


def test_a_command_says_on_stderr_that_it_built_the_read_model_anew(run, store):
    ReadModel(store)
    (generation,) = (store / "model").glob("*.db")
    for arguments in (("query", "harbour"), ("memory", "list"), ("window", "--chat", "x:1"), ("status",)):
        data = bytearray(generation.read_bytes())
        data[PAGE:] = bytes(len(data) - PAGE)
        generation.write_bytes(data)
        done = run(*arguments)
        assert done.code == 0
        assert done.out
        assert re.search(r"^memlog: the read model (was damaged|could not be read) \(", done.err, re.M)
        assert done.err.count("built one from the log (50 events)") == 1
        generation = store / "model" / (store / "model" / "CURRENT").read_text().strip()


def test_project_says_that_it_built_the_read_model_anew(run, store):
    ReadModel(store)
    (generation,) = (store / "model").glob("*.db")
    with generation.open("r+b") as file:
        file.seek(PAGE)
        file.write(bytes(generation.stat().st_size - PAGE))
    report = run("project", "--no-embed", "--json")
    assert report.code == 0
    assert "malformed" in report.json["rebuilt"]


def test_what_sqlite_reads_without_an_error_verify_tells_with_the_remedy(run, store):
    ReadModel(store)
    (generation,) = (store / "model").glob("*.db")
    data = generation.read_bytes()
    generation.write_bytes(data.replace(b"backup of harbour 7 failed", b"backup of harbour 7 worked"))
    found = run("verify")
    assert found.code == 1
    assert "the read model differs from a replay of its log: memlog project --from-scratch" in found.err
    assert run("project", "--from-scratch", "--no-embed").code == 0
    assert run("verify").code == 0


def test_a_damaged_read_model_of_a_store_that_cannot_be_written_is_an_error_with_its_remedy(
    run, store, bound_by_modes
):
    ReadModel(store)
    (generation,) = (store / "model").glob("*.db")
    data = bytearray(generation.read_bytes())
    data[PAGE:] = bytes(len(data) - PAGE)
    generation.write_bytes(data)
    for folder in (store / "model", store):
        folder.chmod(0o500)
    try:
        done = run("query", "harbour", **bound_by_modes)
    finally:
        for folder in (store, store / "model"):
            folder.chmod(0o700)
    assert done.code in (73, 74)
    assert "hint: " in done.err
    assert "Traceback" not in done.err


def foreign_side_files(folder: Path) -> tuple[bytes, bytes]:
    """The -shm and -wal of another database, with commits in it."""
    path = folder / "foreign.db"
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE t (x)")
    db.execute("INSERT INTO t VALUES (randomblob(20000))")
    db.commit()
    found = tuple(path.with_name(path.name + side).read_bytes() for side in ("-shm", "-wal"))
    db.close()
    return found

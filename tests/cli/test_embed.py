"""`memlog embed` gives passages vectors, and goes on where it was stopped."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memlog as package
from memlog.projector.embedding import EMBED_BATCH
from memlog.projector.sqlite import connect
from tests.support.command_tree import MEMLOG

Run = Callable[..., Any]
PASSAGES = 120


@pytest.fixture
def many(memlog: Run, segment: Run) -> None:
    """A store with more passages than a second embeds."""
    said = '{"role":"user","content":"passage %d: %s"}\n'
    segment(
        "conversations/x_1",
        "".join(said % (each, "green tea and trains " * 10) for each in range(PASSAGES)).encode(),
    )
    memlog("project", "--no-embed")


def _vectors(store: Path) -> list[int]:
    """The numbers of the passages that have a vector."""
    (path,) = (store / "model").glob("*.db")
    db = connect(path, "write")
    try:
        return [number for (number,) in db.execute("SELECT rowid FROM vec_memory ORDER BY rowid")]
    except Exception as error:
        if "no such table" not in str(error):
            raise
        return []
    finally:
        db.close()


@pytest.fixture
def embedding(environment: dict[str, str], store: Path, many: None) -> Iterator[Callable[..., Any]]:
    """Starts a command that embeds, and returns when it has written its first vectors."""
    started = []

    def start(*args: str) -> Any:
        process = subprocess.Popen(
            [MEMLOG, *args],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        started.append(process)
        while not _vectors(store):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_after_a_bulk_append_words_find_what_waits_for_a_vector(memlog: Run, store: Path, many: None) -> None:
    home = "Anna moved to a flat in Tampere, where she lives"
    for content in (home, *(f"the weather of day {day}" for day in range(40))):
        memlog("append", "message", "--chat", "y:1", "--role", "user", "--content", content)
    given = memlog("context", "Where does Anna live?", "--json").json
    assert [given["entries"][0]["content"], given["entries"][0]["part"]] == [home, "passage"]
    with package.open(store) as opened:
        found = opened.search("Where does Anna live?")
        waiting = opened.maintenance.status().vectors_pending
        assert (found.hits[0].content, found.hits[0].similarity) == (home, None)
        assert found.silent["pending"] == f"{waiting} passages have no vector yet: project the log"
    assert given["silent"]["pending"].endswith("passages have no vector yet: project the log")


def test_without_a_model_it_fails_and_says_why(memlog: Run, without_model: dict[str, str]) -> None:
    done = memlog("embed", "--json", env=without_model)
    assert (done.code, done.error["code"]) == (69, "embedding")
    assert f"{without_model['MEMLOG_MODEL']}/model.onnx: No such file or directory" in done.error["message"]
    assert "MEMLOG_MODEL" in done.error["hint"]


def test_the_batch_changes_no_vector(memlog: Run, segment: Run, store: Path) -> None:
    segment("memory", b"".join(b'{"type":"memory_saved","content":"tea %d"}\n' % each for each in range(7)))
    vectors = []
    for batch in ("1", "3", "256"):
        memlog("project", "--no-embed")
        memlog("embed", "--batch", batch)
        (path,) = (store / "model").glob("*.db")
        db = connect(path, "write")
        vectors.append(db.execute("SELECT rowid, embedding FROM vec_memory ORDER BY rowid").fetchall())
        db.close()
        for folder in ("model", "cache"):
            for file in (store / folder).iterdir():
                file.unlink()
    assert len(vectors[0]) == 7
    assert vectors[0] == vectors[1] == vectors[2]


IN_FOURS = ("embed", "--batch", "4")


@pytest.mark.parametrize(
    ("args", "batch"), [(IN_FOURS, 4), (("project",), EMBED_BATCH)], ids=["embed", "project"]
)
def test_ctrl_c_keeps_what_was_written_and_the_next_run_goes_on(
    memlog: Run, embedding: Run, store: Path, args: tuple[str, ...], batch: int
) -> None:
    process = embedding(*args)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert err.strip() == b"memlog: interrupted\nhint: what was done is kept"
    _goes_on(memlog, store, batch)


def test_kill_9_keeps_what_was_written_and_the_next_run_goes_on(
    memlog: Run, embedding: Run, store: Path
) -> None:
    process = embedding(*IN_FOURS)
    process.kill()
    process.communicate(timeout=60)
    _goes_on(memlog, store, 4)


def _goes_on(memlog: Run, store: Path, batch: int) -> None:
    written = _vectors(store)
    assert written == list(range(PASSAGES - len(written) + 1, PASSAGES + 1))  # the newest first
    assert 0 < len(written) < PASSAGES
    report = memlog("embed", "--json").json
    assert report["computed"] + report["cached"] == PASSAGES - len(written)
    # Of the batch at which it stopped the cache may have what the read model had not.
    assert report["cached"] <= batch
    assert report["pending"] == 0
    assert _vectors(store) == list(range(1, PASSAGES + 1))

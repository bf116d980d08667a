"""The core memory as a file: up to the log, whole at every moment, and a change by hand stays."""

import itertools
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest

from memlog.eventlog.events import CoreMemoryUpdated
from memlog.eventlog.log.writer import Log
from memlog.projector.lifecycle import Projector
from tests.support.watched import until


@pytest.fixture
def projector(tmp_path):
    made = Projector(tmp_path / "store")
    yield made
    made.close()


def set_name(projector, value):
    Log(projector.store).append([CoreMemoryUpdated(section="user", key="name", value=value)])


def files(projector):
    folder = projector.store / "model"
    return [folder / name for name in ("core_memory.json", ".core_memory.json", ".core_memory.pending.json")]


def shown(projector, value):
    """What the view says where `name` is `value`."""
    return json.dumps({"user": {"name": value}, "agent": {}}, indent=2).encode() + b"\n"


def told(projector):
    return projector.catch_up().read.notes


def test_an_empty_store_has_an_empty_view(projector):
    projector.catch_up()
    assert json.loads(files(projector)[0].read_bytes()) == {"user": {}, "agent": {}}


def test_the_view_follows_the_log(projector):
    for value in ("Anna", "Ängström 喝茶"):
        set_name(projector, value)
        assert told(projector) == []
        view, written, pending = files(projector)
        assert json.loads(view.read_bytes()) == {"user": {"name": value}, "agent": {}}
        assert value in view.read_text(encoding="utf-8")
        assert view.read_bytes() == written.read_bytes()
        assert not pending.exists()


def test_the_keys_of_the_view_are_sorted(projector):
    keys = ["b", "a", "ä", "Z"]
    Log(projector.store).append([CoreMemoryUpdated(section="agent", key=key, value="") for key in keys])
    projector.catch_up()
    assert list(json.loads(files(projector)[0].read_bytes())["agent"]) == sorted(keys)


def test_only_its_owner_reads_the_view(projector):
    projector.catch_up()
    for path in files(projector)[:2]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_view_that_is_up_to_the_log_is_not_written_again(projector):
    projector.catch_up()

    # Not the whole status: a read changes the time of access.
    def written():
        return [(path.stat().st_ino, path.stat().st_mtime_ns) for path in files(projector)[:2]]

    before = written()
    projector.catch_up()
    assert written() == before


def test_a_rebuild_brings_the_view_up_and_a_deleted_one_comes_back(projector):
    set_name(projector, "Anna")
    projector.rebuild_generation("asked for")
    assert files(projector)[0].read_bytes() == shown(projector, "Anna")
    shutil.rmtree(projector.store / "model")
    projector.catch_up()
    files(projector)[0].unlink()
    assert told(projector) == []
    assert files(projector)[0].read_bytes() == shown(projector, "Anna")


@pytest.mark.parametrize("edit", [b"", b"{}", b"not json", b'{"user":{"name":"Bob"},"agent":{}}'])
def test_a_change_by_hand_stays_and_is_told_once(projector, edit):
    set_name(projector, "Anna")
    projector.catch_up()
    view = files(projector)[0]
    view.write_bytes(edit)
    (note,) = told(projector)
    assert note.startswith(f"{view} was changed by hand: store.core.import_file({str(view)!r})")
    set_name(projector, "Carl")
    assert told(projector) == []
    assert view.read_bytes() == edit
    (again,) = Projector(projector.store).catch_up().read.notes
    assert again == note


def test_another_change_by_hand_is_told_too(projector):
    projector.catch_up()
    for edit in (b"1", b"2"):
        files(projector)[0].write_bytes(edit)
        assert len(told(projector)) == 1


def test_a_changed_view_that_is_deleted_is_written_anew(projector):
    set_name(projector, "Anna")
    projector.catch_up()
    files(projector)[0].write_bytes(b"{}")
    projector.catch_up()
    files(projector)[0].unlink()
    assert told(projector) == []
    assert files(projector)[0].read_bytes() == shown(projector, "Anna")


def test_a_change_by_hand_that_says_what_the_log_does_is_none(projector):
    projector.catch_up()
    set_name(projector, "Anna")
    files(projector)[0].write_bytes(shown(projector, "Anna"))
    assert told(projector) == []
    assert files(projector)[1].read_bytes() == shown(projector, "Anna")


# What stands in view, written and pending when a kill interrupts a write of `new` over `old`.
MOMENTS = [
    ("old", "old", None),
    ("old", "old", "half"),
    ("old", "old", "new"),
    ("new", "old", "new"),
    ("new", "new", None),
    (None, None, None),
    (None, None, "new"),
    ("new", None, "new"),
]


def test_a_write_that_was_killed_is_no_change_by_hand(projector):
    for case in itertools.product(MOMENTS, ["old", "new", "newer"]):
        moment, now = case
        set_name(projector, now)
        projector.catch_up()
        for path, value in zip(files(projector), moment, strict=True):
            path.unlink(missing_ok=True)
            if value is not None:
                path.write_bytes(b'{"user"' if value == "half" else shown(projector, value))
        assert told(projector) == [], case
        view, written, _ = files(projector)
        assert view.read_bytes() == written.read_bytes() == shown(projector, now), case


def test_a_change_by_hand_after_a_write_that_was_killed_is_told(projector):
    set_name(projector, "newer")
    projector.catch_up()
    for moment in MOMENTS[:5]:
        for path, value in zip(files(projector), moment, strict=True):
            path.unlink(missing_ok=True)
            if value is not None:
                path.write_bytes(shown(projector, value))
        files(projector)[0].write_bytes(shown(projector, f"by hand after {moment}"))
        assert len(told(projector)) == 1
        assert files(projector)[0].read_bytes() == shown(projector, f"by hand after {moment}")


WRITER = """
import sys
from pathlib import Path
from memlog.eventlog.events import CoreMemoryUpdated
from memlog.eventlog.log.writer import Log
from memlog.projector.lifecycle import Projector

store = Path(sys.argv[1])
projector = Projector(store)
log = Log(store, durability="os")
for number in range(100_000):
    log.append([CoreMemoryUpdated(section="user", key="name", value=f"{sys.argv[2]} {number}")])
    for note in projector.catch_up().read.notes:
        print(note, flush=True)
"""


def start_writer(projector, name):
    command = [sys.executable, "-c", WRITER, str(projector.store), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def said_by(projector, name):
    """How many changes a writer has appended."""
    segments = (projector.store / "log/core").glob("*.jsonl")
    return sum(path.read_bytes().count(f'"{name} '.encode()) for path in segments)


def test_after_kills_the_view_is_whole_and_nothing_is_taken_for_a_change_by_hand(projector):
    chance = random.Random(7)
    notes = []
    for turn in range(3):
        writer = start_writer(projector, str(turn))
        until(lambda turn=turn: said_by(projector, str(turn)) > 5)
        time.sleep(chance.random() / 5)
        writer.send_signal(signal.SIGKILL)
        notes += writer.communicate()[0].splitlines()
        set_name(projector, "between")
        json.loads(files(projector)[0].read_bytes())
    notes += told(projector)
    assert notes == []
    assert files(projector)[0].read_bytes() == shown(projector, "between")


def test_two_processes_at_once_never_see_a_change_by_hand(projector):
    writers = [start_writer(projector, name) for name in "ab"]
    until(lambda: all(said_by(projector, name) > 20 for name in "ab"))
    for writer in writers:
        writer.terminate()
    said = b"".join(writer.communicate()[0] for writer in writers)
    assert said == b""
    assert told(projector) == []
    ((value,),) = projector.connect_to_live().execute("SELECT value FROM core_memory").fetchall()
    assert files(projector)[0].read_bytes() == shown(projector, value)


def test_a_view_that_cannot_be_written_fails_no_catch_up(projector):
    projector.catch_up()
    view = files(projector)[0]
    view.unlink()
    view.mkdir()
    set_name(projector, "Anna")
    (note,) = told(projector)
    assert note == f"{view} is not updated: something other than a regular file has its name"
    assert projector.connect_to_live().execute("SELECT value FROM core_memory").fetchall() == [("Anna",)]


def test_a_pipe_in_the_place_of_the_view_blocks_nobody(projector):
    projector.catch_up()
    view = files(projector)[0]
    view.unlink()
    os.mkfifo(view)
    done = threading.Thread(target=projector.catch_up, daemon=True)
    done.start()
    done.join(60)
    assert not done.is_alive()
    assert view.is_fifo()

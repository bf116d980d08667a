"""What the recording disk keeps is what the system was asked for."""

import json
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.support.recorded_disk import Trace
from tests.support.system_calls import traced, why_no_strace

APPEND = """
import json, os, sys
from pathlib import Path
from tests.support.places import ROOT
import memlog.eventlog.log.rotation
from memlog.eventlog import timestamps
from memlog.eventlog.events import MemorySaved
from memlog.eventlog.log.writer import Log

def appends(store):
    log = Log(store)
    timestamps.now = lambda: "2026-02-24T10:15:00.000Z"
    log.append([MemorySaved(content="new store", id="a")])
    log.append([MemorySaved(content=text, id=text) for text in ("of", "a", "batch")])
    timestamps.now = lambda: "2026-02-25T10:15:00.000Z"
    log.append([MemorySaved(content="new day", id="b")])
    memlog.eventlog.log.rotation.SEGMENT_BYTES = 1
    log.append([MemorySaved(content="rolled", id="c")])
    os.open(store / "end", os.O_CREAT | os.O_WRONLY)
"""
"""A new store, a batch, a new day, and a segment that is full; then a mark that the recorder does not see."""

RECORDED = """
from tests.support.recorded_disk import recording
with recording() as recorder:
    appends(Path(sys.argv[1]))

def steps(each):
    # To list a folder by its path is to open and close it.
    is_listed = each.call == "entries" and each.fd < 0
    return [[call, str(each.path), each.data.decode()]
            for call in (("open", "close") if is_listed else (each.call,))]

steps = [step for each in recorder.trace for step in steps(each)]
Path(sys.argv[2]).write_text(json.dumps(steps))
"""

SEEN = {
    *("open", "close", "read", "write", "sync", "sync_data", "make_folder", "rename", "unlink"),
    *("lock", "unlock"),
}
"""Calls that have a name of their own in the system, whatever Python looks at besides."""


def test_the_recorded_trace_of_an_append_is_that_of_strace(tmp_path: Path) -> None:
    why = why_no_strace()
    if why is not None:
        pytest.skip(why)
    store, kept = tmp_path / "store", tmp_path / "trace.json"
    command = [sys.executable, "-c", APPEND + RECORDED, str(store), str(kept)]
    real = traced(command, store, tmp_path / "strace", cwd=ROOT)
    recorded = [tuple(step) for step in json.loads(kept.read_text())]
    recorded = [step for step in recorded if Path(step[1]).is_relative_to(store.parent)]
    ours = [(call, path, data) for call, path, data in recorded if call in SEEN and call != "read"]
    writes = [path for call, path, _ in ours if call == "write"]
    # Two of them seals and one FORMAT; of the writer its name, and of each of three segments two lines.
    assert len([path for path in writes if "/writers/" not in path]) == 7
    assert len([path for path in writes if "/writers/" in path]) == 2 + 6
    assert len([step for step in ours if step[0] == "sync_data"]) == 9  # FORMAT; a seal and what it seals
    assert [step for step in _steps(real, store) if step[0] != "read"] == ours
    reads = [(call, path) for call, path, _ in recorded if call == "read"]
    assert [(call, path) for call, path, _ in _steps(real, store) if call == "read"] == reads


def _steps(trace: Trace, store: Path) -> list[tuple[str, str, str]]:
    """What was asked before the mark at the end."""
    marked = next(number for number, each in enumerate(trace) if each.path == store / "end")
    steps = [(each.call, str(each.path), each.data.decode()) for each in trace[:marked] if each.call in SEEN]
    # `close` frees a lock by a call of its own.
    closed = {number for number, step in enumerate(steps) if step[0] == "close"}
    return [
        step
        for number, step in enumerate(steps)
        if step[0] != "unlock" or number + 1 not in closed or steps[number + 1][1] != step[1]
    ]

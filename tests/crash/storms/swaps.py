"""Readers beside generations that are built and swapped all the time."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.storm_workload import AppendPipe, message, run_memlog

READERS = 4
BEACONS = 5
_LEAST_SWAPS = 5

_READ = """
import json, select, sys, memlog
failed, reads = [], 0
while reads < 10 or not select.select([sys.stdin], [], [], 0)[0]:
    try:
        with memlog.open(sys.argv[1]) as store:
            window = store.conversations.window(("storm", "one"))
            found = len(store.search("beacon", mode="text").hits), len(window.messages)
        if found != (5, 5):
            failed.append(f"{found} in place of (5, 5)")
    except Exception as error:
        failed.append(repr(error))
    reads += 1
    if reads == 1:
        print("reads", flush=True)
print(json.dumps({"reads": reads, "failed": failed[:5]}))
"""

_SWAP = """
import json, sys, time
from pathlib import Path
from memlog.projector.lifecycle import Projector
end, swaps = time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < end or swaps < int(sys.argv[3]):
    Projector(Path(sys.argv[1])).rebuild("asked for")
    swaps += 1
print(json.dumps({"swaps": swaps}))
"""


def run(seconds: float, seed: int) -> dict[str, int]:
    """Two who build generations for so long, five each at least, and four who read from before until after.

    Raises:
        AssertionError: a read failed, or found another number of things than stand in the log.
    """
    with tempfile.TemporaryDirectory(prefix="memlog-swaps-") as folder:
        store = Path(folder, "store")
        pipe = AppendPipe(store)
        pipe.submit(message(f"b{n}", "one", f"beacon {n}") for n in range(BEACONS))
        assert pipe.finish() == 0
        assert run_memlog(store, "project", "--no-embed").returncode == 0
        readers = [_started(_READ, store) for _ in range(READERS)]
        assert [each.stdout.readline() for each in readers] == [b"reads\n"] * READERS
        swappers = [_started(_SWAP, store, seconds, _LEAST_SWAPS) for _ in range(2)]
        swapped = [_said(each, seconds) for each in swappers]
        read = [_said(each, seconds) for each in readers]
    assert [each["failed"] for each in read] == [[]] * READERS
    return {"reads": sum(each["reads"] for each in read), "swaps": sum(each["swaps"] for each in swapped)}


def _started(code: str, *arguments: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _said(process: "subprocess.Popen[bytes]", seconds: float):
    """What it says at its end, which for a reader is that of its stdin."""
    said, _ = process.communicate(timeout=seconds + 120)
    assert process.returncode == 0
    return json.loads(said)

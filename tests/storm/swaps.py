"""Readers beside generations that are built and swapped all the time."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from storm_workload import AppendPipe, message, run_memlog

READERS = 4
BEACONS = 5

_READ = """
import json, sys, time, memlog
end, failed, reads = time.monotonic() + float(sys.argv[2]), [], 0
while time.monotonic() < end:
    try:
        with memlog.open(sys.argv[1]) as store:
            found = len(store.search("beacon", mode="text").hits), len(store.window("storm", "one").messages)
        if found != (5, 5):
            failed.append(f"{found} in place of (5, 5)")
    except Exception as error:
        failed.append(repr(error))
    reads += 1
print(json.dumps({"reads": reads, "failed": failed[:5]}))
"""

_SWAP = """
import json, sys, time
from pathlib import Path
from memlog.projector.projector import Projector
end, swaps = time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < end:
    Projector(Path(sys.argv[1])).rebuild("asked for")
    swaps += 1
print(json.dumps({"swaps": swaps}))
"""


def run(seconds: float, seed: int) -> dict[str, int]:
    """Four readers, and two who build generations, for so long.

    Raises:
        AssertionError: a read failed, or found another number of things than stand in the log.
    """
    with tempfile.TemporaryDirectory(prefix="memlog-swaps-") as folder:
        store = Path(folder, "store")
        pipe = AppendPipe(store)
        pipe.submit(message(f"b{n}", "one", f"beacon {n}") for n in range(BEACONS))
        assert pipe.finish() == 0
        assert run_memlog(store, "project", "--no-embed").returncode == 0
        swappers = [_started(_SWAP, store, seconds) for _ in range(2)]
        readers = [_started(_READ, store, seconds) for _ in range(READERS)]
        read = [_said(each, seconds) for each in readers]
        swapped = [_said(each, seconds) for each in swappers]
    assert [each["failed"] for each in read] == [[]] * READERS
    return {"reads": sum(each["reads"] for each in read), "swaps": sum(each["swaps"] for each in swapped)}


def _started(code: str, store: Path, seconds: float) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", code, store, str(seconds)], stdout=subprocess.PIPE)


def _said(process: "subprocess.Popen[bytes]", seconds: float):
    said, _ = process.communicate(timeout=seconds + 120)
    assert process.returncode == 0
    return json.loads(said)

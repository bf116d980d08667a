"""Readers beside writers that never pause, and beside generations that are swapped all the time."""

import subprocess
import sys
import time

from storm_workload import MEMLOG, AppendPipe, message, run_memlog, wait_for_any

READ = """
import sys, time, memlog
end, failed, reads = time.monotonic() + 10, [], 0
while time.monotonic() < end:
    try:
        with memlog.open(sys.argv[1]) as store:
            assert len(store.search("beacon", mode="text").hits) == 5
    except Exception as error:
        failed.append(repr(error))
    reads += 1
if reads < 100:
    failed.append(f"only {reads} reads")
sys.exit("\\n".join(failed[:5]) or 0)
"""

SWAP = """
import sys, time
from pathlib import Path
from memlog.projector.projector import Projector
end = time.monotonic() + 10
while time.monotonic() < end:
    Projector(Path(sys.argv[1])).rebuild("asked for")
"""


def test_a_query_ends_while_writers_go_on(tmp_path):
    """A query reads what stood in the log when it began, and does not run after the writers."""
    pipes = [AppendPipe(tmp_path) for _ in range(8)]
    pipes[0].submit([message("first", "chat-0", "The lamp is lit.")])
    while pipes[0].unanswered:
        pipes[0].turn()
    assert run_memlog(tmp_path, "project", "--no-embed").returncode == 0
    # Long, since it ends with the query; one that ran after the writers would run as long as they.
    end, count, query = time.monotonic() + 60, 0, None
    while time.monotonic() < end and (query is None or query.poll() is None):
        for pipe in pipes:
            if pipe.unanswered < 8:
                pipe.submit(message(f"e{count + n}", f"chat-{n % 3}", "A lamp. " * 100) for n in range(8))
                count += 8
            pipe.turn()
        if query is None and count > 500:
            arguments = [MEMLOG, "--store", tmp_path, "query", "lit", "--mode", "text", "--json"]
            query = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        wait_for_any(pipes, 0.005)
    ended = query.poll()
    for pipe in pipes:
        assert pipe.finish() == 0
    query.wait(120)
    assert ended == 0, "the query did not end before the writers"


def test_no_read_fails_while_generations_are_swapped(tmp_path):
    """A reader that finds its generation gone reads CURRENT again."""
    pipe = AppendPipe(tmp_path)
    pipe.submit(message(f"b{n}", "one", f"beacon {n}") for n in range(5))
    assert pipe.finish() == 0
    assert run_memlog(tmp_path, "project", "--no-embed").returncode == 0
    swaps = [subprocess.Popen([sys.executable, "-c", SWAP, tmp_path]) for _ in range(2)]
    read = subprocess.run(
        [sys.executable, "-c", READ, tmp_path], stderr=subprocess.PIPE, timeout=60, check=False
    )
    assert [swap.wait(60) for swap in swaps] == [0, 0]
    assert (read.returncode, read.stderr.decode()) == (0, "")

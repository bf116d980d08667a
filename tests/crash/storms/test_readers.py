"""Readers beside writers that never pause, and beside generations that are swapped all the time."""

import subprocess
import time

from tests.crash.storms import swaps
from tests.support.storm_workload import MEMLOG, AppendPipe, message, run_memlog, wait_for_any


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


def test_no_read_fails_while_generations_are_swapped():
    """A reader that finds its generation gone reads CURRENT again."""
    counts = swaps.run(seconds=1, seed=0)
    assert counts["swaps"] >= 10
    assert counts["reads"] >= 40

"""A fork: parent and children go on, one child with the parent's store, one with a store of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

import memlog

PARENT = """
import asyncio, multiprocessing, sys, threading
import memlog

path = sys.argv[1]
forking = multiprocessing.get_context("fork")
may_go_on, has_read = forking.Event(), forking.Semaphore(0)
store = memlog.open(path)
shared = memlog.open_async(path)


def kettle(number):
    content = f"kettle {number}"
    return memlog.Message(id=f"k{number}", channel="cli", chat_id="1", role="user", content=content)


async def asked(store):
    return await store.search("kettle", k=50)


def child(number):
    has_own = number == 0
    mine = memlog.open(path) if has_own else store
    mine.append([kettle(number)])
    mine.search("kettle")
    has_read.release()
    assert may_go_on.wait(60)
    mine.append([kettle(100 + number)])
    found = {hit.id for hit in mine.search("kettle", k=50).hits}
    assert {"k1000", f"k{number}", f"k{100 + number}"} <= found, found
    if not has_own:
        assert len(asyncio.run(asked(shared)).hits) >= 3


def fork():
    children = [forking.Process(target=child, args=(number,)) for number in range(2)]
    for each in children:
        each.start()
    for each in children:
        assert has_read.acquire(timeout=60)
    return children


def ends(children):
    may_go_on.set()
    for each in children:
        each.join(60)
    assert [each.exitcode for each in children] == [0] * len(children)


store.append([kettle(1000)])
asyncio.run(asked(shared))
"""
FORKS = {
    "idle": "store.search('kettle')\nchildren = fork()\n",
    "another thread watches": """
events = [threading.Event(), threading.Event()]
tell = lambda step: events[0].set()
watch = lambda: store.maintenance.watch(stop=events[1], tell=tell)
watching = threading.Thread(target=watch, daemon=True)
watching.start()
assert events[0].wait(60)
children = fork()
events[1].set()
watching.join()
""",
    "another thread reads for long": """
reading, goes_on = threading.Event(), threading.Event()
def ask(db):
    db.execute("BEGIN")
    db.execute("SELECT * FROM events").fetchone()
    reading.set()
    assert goes_on.wait(60)
    db.execute("COMMIT")
store.search('kettle')
reader = threading.Thread(target=lambda: store._engine.read(ask))
reader.start()
assert reading.wait(60)
children = fork()
goes_on.set()
reader.join()
""",
    "within a read": "children = store._engine.read(lambda db: db.execute('SELECT 1') and fork())\n",
}
CLOSES = "store.close()\nasyncio.run(shared.close())\n"


@pytest.mark.parametrize("at_fork", FORKS)
def test_a_forked_child_reads_and_writes_and_so_does_its_parent(tmp_path: Path, at_fork: str) -> None:
    script = PARENT + FORKS[at_fork] + CLOSES + "ends(children)\n" + CLOSES
    command = [sys.executable, "-c", script, tmp_path]
    done = subprocess.run(command, capture_output=True, timeout=300, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    with memlog.open(tmp_path) as store:
        found = store.maintenance.verify()
        assert (found.digest, found.events, found.problems) == (found.replayed, 5, [])

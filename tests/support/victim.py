"""Runs one thing that a store is made to do in a forked child, and kills the child.

    python victim.py    then a JSON object a line on stdin: {"store", "what", "events", "seconds"}

Answers each with what the child had acknowledged before it was killed. The children are those of a process
without threads and without an open database.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from memlog.eventlog.log.writer import Log
from memlog.projector.lifecycle import Projector
from memlog.projector.sqlite import choose_binding


def started():
    """This program as a process."""
    return subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def main():
    choose_binding()
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(struck(asked)), flush=True)


def struck(asked):
    """The positions that the child had said when it was killed."""
    reading, writing = os.pipe()
    child = os.fork()  # noqa: TID251 - has no threads
    if child == 0:
        try:
            os.close(reading)
            work(asked, writing)
        finally:
            os._exit(0)
    os.close(writing)
    time.sleep(asked["seconds"])
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading) as said:
        return [json.loads(line) for line in said if line.endswith("\n")]


def work(asked, writing):
    store = Path(asked["store"])
    if asked["what"] == "append":
        for event in asked["events"]:
            (position,) = Log(store, durability="os").append([event])
            place = [position.stream, position.segment, position.offset, position.id]
            os.write(writing, json.dumps(place).encode() + b"\n")
    elif asked["what"] == "project":
        Projector(store).catch_up()
    else:
        Projector(store).rebuild_generation("asked for")


if __name__ == "__main__":
    main()

"""Scrubs a store in a forked child that is killed before its n-th call of the disk, by its own hand.

    python scrub_victim.py    then a JSON object a line on stdin: {"store", "call"}

Answers each with the exit code of the child, as `Popen` has it. The children are those of a process without
threads and without an open database.
"""

import json
import os
import signal
import sys
import traceback
from itertools import count

import memlog
from memlog.eventlog.files import disk
from memlog.projector.sqlite import choose_binding


def main() -> None:
    choose_binding()
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(_code_of_scrub(asked["store"], asked["call"])), flush=True)


def _code_of_scrub(path: str, number: int) -> int:
    child = os.fork()  # noqa: TID251 - has no threads
    if child == 0:
        try:
            _die_at(number)
            with memlog.open(path) as store:
                store.erasure.scrub()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _die_at(number: int) -> None:
    calls = count(1)

    def standing_in(real):
        def call(*args, **options):
            if next(calls) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        return call

    for name in disk.CALLS:
        setattr(disk, name, standing_in(getattr(disk, name)))


if __name__ == "__main__":
    main()

"""`make storm SECONDS=60`: each storm for so long, with its seed and what it counted.

    python -m tests.crash.storms --seconds 60 [--seed 7] [NAME ...]

A storm is a module with `run(seconds, seed)`, which returns counts, or raises AssertionError where a promise
was broken; then it says which folder it left.
"""

import argparse
import random
import sys
import time
import traceback
from importlib import import_module

STORMS = {
    "kill": "kill -9 of eight writers and two projectors, beside two readers",
    "cut_log": "power cuts at every operation on the log, in every state that a disk may leave",
    "cut_read_model": "power cuts at every operation of a projection and of the generation switch",
    "cut_power": "power cuts of a real file system, where that is allowed",
    "fail_calls": "the n-th call of the disk fails, for every n, in every way",
    "fill_disk": "a disk that is full at any byte of a batch",
    "log_damage": "bits flipped, segments cut, lines repeated, NUL runs in a log",
    "read_model_damage": "bytes flipped, pages lost, side files damaged of a read model",
    "fuzz": "lines given to the decoder and to appending, questions to the full text",
    "swaps": "generations that are built and swapped, beside four readers",
    "scrubs": "scrubs of what was forgotten, killed at any call of the disk, once or more often",
    "erasures": "scrubs beside embed, watch, verify, seal and rolling segments, all killed at random",
}
"""What each module does, by its name."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Run each storm, or those named, for so many seconds.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(STORMS))
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(STORMS)
    if unknown:
        parser.error(f"no storm {', '.join(sorted(unknown))}: there are {', '.join(STORMS)}")
    print(f"seed {arguments.seed}, {arguments.seconds:g} s each", flush=True)
    held = [hold(name, arguments.seconds, arguments.seed) for name in arguments.names or STORMS]
    return 0 if all(held) else 1


def hold(name: str, seconds: float, seed: int) -> bool:
    """Run one storm, and print what it counted; whether every promise held."""
    print(f"{name}: {STORMS[name]}", flush=True)
    started = time.monotonic()
    try:
        counts = import_module(f"{__package__}.{name}").run(seconds, seed)
    except AssertionError:
        traceback.print_exc()
        print(
            f"  BROKEN after {time.monotonic() - started:.0f} s; again with --seed {seed} {name}", flush=True
        )
        return False
    told = ", ".join(f"{number:,} {what.replace('_', ' ')}" for what, number in counts.items())
    print(f"  held for {time.monotonic() - started:.0f} s: {told}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())

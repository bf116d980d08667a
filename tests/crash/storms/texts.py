"""Texts of repeated atoms go through append, projection, query and context: each within a second of CPU time.

    python -m tests.crash.storms.texts --count 10000 [--seed 7]

runs so many, and prints the slow ones.
"""

import argparse
import faulthandler
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import memlog

LONGEST = 100_000
"""Characters."""

SECONDS = 1.0
"""Of CPU time that a text may take through all of it."""

ATOMS = (
    *(" ", "  ", "\t", "\n", "\r", "\r\n", "\n\n", "\x00", "\x0b", "\x0c", "\xa0", "\u2028"),
    *(".", "…", "!", "?", ",", ":", "::", ";", "-", "--", "_", "+", "*", "/", "\\", "@", "=", "~", "^", "%"),
    *(
        "#",
        "# ",
        "## a\n",
        "`",
        "```",
        "```\n",
        "~~~\n",
        "|",
        "| a ",
        "|-",
        "> ",
        "- ",
        "1. ",
        "* a\n",
        "\n* ",
    ),
    *("(", ")", "[", "]", "{", "}", "<", ">", "[M1]", "[a](b)", "](", "<a ", "</", "&amp;", "$", "!["),
    *('"', "'", "“", "”", "«", "»", "’", "「", "」", "''", '""'),
    *("a", "A", "aA", "a1", "0", "7", "v1.", "C++", "a.", "a-", "a:", "a@", "http://a", "tea ", "Tea is. "),
    *("sk-", "AKIA", "ghp_", "eyJ", "-eyJaaaaaaaa", "password=", "-----BEGIN ", "key: "),
    *("my ", "favorite ", "favourite colour is ", "first, ", "what ", "who is ", "I ", "remember ", "and "),
    *("茶", "绿茶", "。", "，", "は", "각", "ж", "мой ", "ä", "minun ", "é", "ß", "İ", "ﬁ", "ﷺ", "😀"),
    *("\u0301", "\u0301\u0316", "\u200b", "\u200d", "\ufe0f", "\u3164", "\u202e", "\u0e33", "\u0f73"),
    *("def a():\n", "class A:\n", "    ", "====\n", "+--", ".. code::\n", "@", "0x", "1,", "12:"),
)
"""What texts are repetitions of: what some pattern looks for, or stumbles over."""


class Took(NamedTuple):
    """How long a text took, in seconds of CPU time: all of it, and each step."""

    seconds: float
    steps: dict[str, float]
    text: str


def run(seconds: float, seed: int) -> dict[str, int]:
    """Texts for so long.

    Raises:
        AssertionError: one took longer than a second of CPU time.
    """
    end = time.monotonic() + seconds
    done = []
    for took in timed(texts(seed)):
        done.append(took)
        if time.monotonic() >= end:
            break
    return {"texts": len(done), "characters": sum(len(took.text) for took in done)}


def texts(seed: int, longest: int = LONGEST) -> Iterator[str]:
    """Texts without end: a prefix, some atoms repeated alone or in turn, a suffix."""
    rng = random.Random(seed)
    while True:
        length = round(longest ** rng.uniform(0.2, 1))
        shape = rng.choice((_of_one, _in_turn, _in_runs))
        prefix = "".join(rng.choices(ATOMS, k=rng.randrange(3)))
        suffix = "".join(rng.choices(ATOMS, k=rng.randrange(3)))
        yield prefix + shape(rng, length - len(prefix) - len(suffix)) + suffix


def _of_one(rng: random.Random, length: int) -> str:
    return _repeated(rng.choice(ATOMS), length)


def _in_turn(rng: random.Random, length: int) -> str:
    return _repeated("".join(rng.choices(ATOMS, k=rng.randint(2, 5))), length)


def _in_runs(rng: random.Random, length: int) -> str:
    few = rng.sample(ATOMS, k=rng.randint(2, 6))
    runs = []
    while length > 0:
        run = _repeated(rng.choice(few), round(length ** rng.uniform(0, 1)))
        runs.append(run)
        length -= len(run)
    return "".join(runs)


def _repeated(atom: str, length: int) -> str:
    return (atom * (length // len(atom) + 1))[: max(1, length)]


def timed(given: Iterator[str], *, check: bool = True) -> Iterator[Took]:
    """How long each text takes, in stores of a few.

    Raises:
        AssertionError: `check`, and one took longer than a second of CPU time.
    """
    list(_in_a_store([memlog.__doc__ or "warm"]))  # what is imported and compiled once
    while True:
        few = list(islice(given, _IN_A_STORE))
        if not few:
            return
        for took in _in_a_store(few):
            assert not check or took.seconds < SECONDS, _told(took)
            yield took


_IN_A_STORE = 20


def _in_a_store(few: list[str]) -> Iterator[Took]:
    with tempfile.TemporaryDirectory(prefix="memlog-texts-") as folder:
        Path(folder, "no-model").mkdir()
        with memlog.open(Path(folder, "store"), model=Path(folder, "no-model"), durability="os") as store:
            for text in few:
                # A hang inside an expression ends for no signal: this ends the process, and shows where.
                faulthandler.dump_traceback_later(120, exit=True)
                yield _through(store, text)
                faulthandler.cancel_dump_traceback_later()


def _through(store: memlog.Store, text: str) -> Took:
    asked = text if text.strip() else "tea"
    event = {"type": "message", "channel": "storm", "chat_id": "1", "role": "user", "content": text}
    steps = {
        "append": lambda: store.append([event]),
        "project": lambda: store.maintenance.project(embed=False),
        "query": lambda: store.search(asked),
        "context": lambda: store.context(asked, chat=("storm", "1")),
    }
    took = {}
    for name, step in steps.items():
        began = time.process_time()
        step()
        took[name] = round(time.process_time() - began, 3)
    return Took(sum(took.values()), took, text)


def _told(took: Took) -> str:
    return f"{took.seconds:.2f} s {took.steps}: {len(took.text):,} characters, {took.text[:80]!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Run so many texts, and print the slow ones.")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    done = []
    for took in timed(islice(texts(arguments.seed), arguments.count), check=False):
        done.append(took)
        if took.seconds >= SECONDS / 2:
            print(_told(took), flush=True)
    for step in done[0].steps:
        print(f"{step}: {sum(took.steps[step] for took in done):.1f} s")
    slow = sum(took.seconds >= SECONDS for took in done)
    print(f"{len(done):,} texts, {sum(took.seconds for took in done):.0f} s of CPU time, {slow} too slow")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())

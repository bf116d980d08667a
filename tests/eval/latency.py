"""How long a query takes on a warm store: LoCoMo's ten conversations, 5,882 messages, in one store.

`python -m tests.eval.latency` prints the median and the 95th percentile of a query in each mode, and what its
parts cost. A part is what a query takes with it less what the same question takes without it, so that nothing
but the public API is timed; only the embedding of the question is timed by itself. A hybrid query takes less
than its parts together: it embeds the question while it asks the full text. The figures are of this
machine, which may be busy: the processor's time is printed beside the clock's.

The variable MEMLOG_EVAL_DATA names the data, as for `make eval`.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

import memlog
from memlog import Ranking
from memlog.projector.embedding.models import load_embedder
from memlog.query.search.request import Mode
from tests.eval.locomo import (
    CannotMeasure,
    Conversation,
    data_folder,
    exit_status,
    fill,
    progress_line,
    read_conversations,
    store_folder,
)

MODES: tuple[Mode, ...] = ("hybrid", "text", "vector")

LIMIT_MS = 25
"""What 95 of 100 warm queries stay under."""

_WARM_UP = 20

_NO_CONTEXT = Ranking(context=False)
_PLAIN = Ranking(context=False, priors=False, salience=False)


class Times(NamedTuple):
    """Of one way of asking, a figure a question, in milliseconds: by the clock, and of the processor."""

    clock: list[float]
    processor: list[float]

    def less(self, other: "Times") -> "Times":
        """What it takes more than `other`, question by question."""
        return Times(
            *(
                [more - less for more, less in zip(*pair, strict=True)]
                for pair in zip(self, other, strict=True)
            )
        )


def texts_of(conversations: Sequence[Conversation], count: int) -> list[str]:
    """`count` questions, evenly from all conversations, each once."""
    asked = [question.text for each in conversations for question in each.questions["corrected"]]
    texts = list(dict.fromkeys(asked))
    return texts[:: max(1, len(texts) // count)][:count]


def timed(texts: Sequence[str], ways: dict[str, Callable[[str], object]]) -> dict[str, Times]:
    """What each way of asking takes. Each question is asked in all ways, one after the other, so that a busy
    moment of the machine meets all of them."""
    times = {name: Times([], []) for name in ways}
    for number, text in enumerate([*texts[:_WARM_UP], *texts]):
        for name, ask in ways.items():
            clock, processor = time.perf_counter(), time.process_time()
            ask(text)
            if number >= len(texts[:_WARM_UP]):
                times[name].clock.append((time.perf_counter() - clock) * 1000)
                times[name].processor.append((time.process_time() - processor) * 1000)
    return times


def measured(store: memlog.Store, texts: Sequence[str]) -> dict[str, Times]:
    """By what is timed: a query in each mode, and the parts of a hybrid one."""
    embedder = load_embedder()

    def asking(mode: Mode, ranking: Ranking | None = None, *, sync: bool = False) -> Callable[[str], object]:
        return lambda text: store.search(text, mode=mode, sync=sync, ranking=ranking)

    def one_hit(mode: Mode) -> Callable[[str], object]:
        return lambda text: store.search(text, mode=mode, k=1, sync=False, ranking=_PLAIN)

    found = timed(
        texts,
        {
            "hybrid": asking("hybrid", sync=True),
            "text": asking("text", sync=True),
            "vector": asking("vector", sync=True),
            "no sync": asking("hybrid"),
            "no context": asking("hybrid", _NO_CONTEXT),
            "plain": asking("hybrid", _PLAIN),
            "one hit": one_hit("hybrid"),
            "words alone": one_hit("text"),
            "vectors alone": one_hit("vector"),
            "embedding": lambda text: embedder.embed([text]),
        },
    )
    parts = {
        "embedding": found["embedding"],
        "catching up": found["hybrid"].less(found["no sync"]),
        "full text": found["words alone"],
        "nearest": found["vectors alone"].less(found["embedding"]),
        "context": found["no sync"].less(found["no context"]),
        "priors": found["no context"].less(found["plain"]),
        "9 more hits": found["plain"].less(found["one hit"]),
    }
    return {mode: found[mode] for mode in MODES} | parts


def report(found: dict[str, Times]) -> str:
    """A line for each: median and 95th percentile by the clock, and of the processor."""
    head = " " * 14 + "".join(f"{name:>10}" for name in ("p50 ms", "p95 ms", "p50 CPU", "p95 CPU"))
    lines = [
        f"{name:<14}"
        + "".join(f"{figure:10.1f}" for values in times for figure in (median(values), p95(values)))
        for name, times in found.items()
    ]
    return "\n".join([head, *lines])


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return quantiles(values, n=20, method="inclusive")[-1]


def failures(found: dict[str, Times]) -> list[str]:
    """What `--check` holds against the figures; empty where they are good."""
    whole = p95(found["hybrid"].clock)
    costs = {name: median(times.clock) for name, times in found.items() if name not in MODES}
    largest = max(costs, key=lambda name: costs[name])
    slow = [f"p95 is {whole:.1f} ms, not under {LIMIT_MS}"] if whole >= LIMIT_MS else []
    return slow + ([f"the largest part is {largest}"] if largest != "embedding" else [])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status: 0, 1 where `--check` fails, 2 where nothing can be measured."""
    options = _parsed(arguments)
    try:
        conversations = read_conversations(data_folder())
        with store_folder(options.keep) as folder, memlog.open(folder / "all") as store:
            fill(store, [event for each in conversations for event in each.events], progress_line())
            texts = texts_of(conversations, options.questions)
            print(f"{store.maintenance.status().messages:,} messages, {len(texts)} questions\n")
            found = measured(store, texts)
    except (CannotMeasure, memlog.MemlogError) as error:
        print(f"eval: {error}", file=sys.stderr)
        return 2
    print(report(found))
    return exit_status(failures(found) if options.check else [])


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The time of a warm query, and of its parts.")
    parser.add_argument("--questions", type=int, default=300, metavar="N", help="how many are asked")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the store in DIR for the next run")
    parser.add_argument("--check", action="store_true", help=f"exit 1 where p95 is not under {LIMIT_MS} ms")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())

"""How often a context is silent when it should be, and what that costs.

Lost: of the questions whose evidence a search finds, the share whose context leaves it out as irrelevant.
Other: of another conversation's questions (of XQuAD: of articles that are not in the store), the share whose
context has nothing that was found. Small: the same of 120 greetings, sums and general questions in five
languages (small_talk.txt).

`make eval` runs this on conversations 6 to 10; `--tuning` on 1 to 5, by which the constants of
`memlog.query.context.floor` are chosen. The variable MEMLOG_EVAL_DATA names the data, as for locomo.py.
"""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import memlog
from tests.eval import xquad
from tests.eval.locomo import (
    PARTS,
    VERSIONS,
    CannotMeasure,
    Question,
    data_folder,
    exit_status,
    fill,
    progress_line,
    read_conversations,
    store_folder,
)

LANGUAGES = ("en", "de", "tr", "ru", "zh")
SMALL_TALK = Path(__file__).with_name("small_talk.txt")

_OTHERS = 150
"""Questions of other conversations for each."""

_QUESTIONS = 300
"""Of each language: about paragraphs in the store, and about others."""

_ALL = 1_000_000


class Limits(NamedTuple):
    """The most that may be lost, and the least that must be silent."""

    lost: float
    other: float = 0.0
    small: float = 0.0


LIMITS = {
    "LoCoMo": Limits(0.02, 0.85, 0.95),
    "observed": Limits(1.0, 0.60),
    "XQuAD en": Limits(0.03, 0.90, 0.80),
    **{f"XQuAD {language}": Limits(0.025) for language in LANGUAGES[1:]},
}


class Row(NamedTuple):
    """The figures of one set."""

    lost: float
    other: float
    small: float


class Answers:
    """What contexts of one set gave."""

    def __init__(self) -> None:
        self.lost: list[bool] = []
        self.silent: dict[str, list[bool]] = {"other": [], "small": []}

    def ask(self, store: memlog.Store, question: Question) -> None:
        """A question that the store answers."""
        given = _context(store, question.text)
        kept = _for_the_prompt(given)
        below = {left.id for left in given.left_out if "below the floor" in left.why}
        if any(_turn(entry.id) in question.relevant for entry in kept):
            self.lost.append(False)
        elif {*map(_turn, below)} & question.relevant:
            self.lost.append(True)

    def ask_other(self, kind: str, store: memlog.Store, text: str) -> None:
        """A question that the store does not answer."""
        given = _context(store, text)
        self.silent[kind].append(not _for_the_prompt(given))

    def row(self) -> Row:
        """The figures."""
        return Row(fmean(self.lost), *map(fmean, self.silent.values()))


def _for_the_prompt(given: memlog.Context) -> list[memlog.ContextEntry]:
    """The entries that are not in every context."""
    return [entry for entry in given.entries if entry.part not in ("core", "always")]


def _turn(name: str) -> str:
    """The turn that an id names, or that of an observation."""
    return name.partition("#")[0]


def _context(store: memlog.Store, text: str) -> memlog.Context:
    # The store's scope: two people talk in a conversation.
    given = store.context(
        text, scope="store", max_tokens=_ALL, limit=20, explain=True, record=False, sync=False
    )
    if "vector" in given.silent and "script" not in given.silent["vector"]:
        raise CannotMeasure(f"{store.path}: vector: {given.silent['vector']}")
    return given


def of_conversations(part: slice, folder: Path, *, observed: bool = False) -> Row:
    """The figures of LoCoMo's conversations, each a store of its own.

    observed: with what LoCoMo's authors observed in its sessions, as memories.
    """
    every = read_conversations(data_folder())
    memories = observations(data_folder()) if observed else {}
    answers, small = Answers(), SMALL_TALK.read_text().splitlines()
    for conversation in every[part]:
        others = [
            each.text for other in every if other is not conversation for each in other.questions["original"]
        ]
        saved = memories.get(conversation.id, [])
        with memlog.open(folder / f"{conversation.id}{'-observed' * observed}") as store:
            fill(store, [*conversation.events, *saved], progress_line())
            for question in conversation.questions["original"]:
                answers.ask(store, question)
            for text in random.Random(conversation.id).sample(others, _OTHERS):
                answers.ask_other("other", store, text)
            for text in small:
                answers.ask_other("small", store, text)
    return answers.row()


def observations(folder: Path) -> dict[str, list[memlog.Event]]:
    """By conversation what LoCoMo's authors observed in its sessions, as memories: `<turn>#<number>`."""
    found: dict[str, list[memlog.Event]] = {}
    for sample in json.loads((folder / VERSIONS["original"]).read_bytes()):
        sessions = sample["observation"].values()
        said = [each for session in sessions for of_speaker in session.values() for each in of_speaker]
        names = [
            f"{turns[0] if isinstance(turns, list) else turns}#{place}"
            for place, (_, turns) in enumerate(said)
        ]
        found[sample["sample_id"]] = [
            memlog.MemorySaved(id=name, memory_id=name, content=text)
            for name, (text, _) in zip(names, said, strict=True)
        ]
    return found


def of_language(language: str, folder: Path) -> Row:
    """The figures of XQuAD in one language: the first half of the paragraphs is in the store."""
    collection = xquad.collection_of(language, xquad.data_folder() / f"xquad.{language}.json")
    half = collection.events[: len(collection.events) // 2]
    stored = {f"xquad/{number}" for number in range(len(half))}
    drawn = random.Random(language)
    answered = [each for each in collection.questions if each.relevant & stored]
    others = [each for each in collection.questions if not each.relevant & stored]
    answers = Answers()
    with memlog.open(folder / f"half-{language}") as store:
        fill(store, half, progress_line())
        for question in drawn.sample(answered, _QUESTIONS):
            answers.ask(store, question)
        for question in drawn.sample(others, _QUESTIONS):
            answers.ask_other("other", store, question.text)
        for text in SMALL_TALK.read_text().splitlines():
            answers.ask_other("small", store, text)
    return answers.row()


def failures(rows: dict[str, Row]) -> list[str]:
    """What `--check` holds against the figures; empty where they are good."""
    return [
        f"{name}: {row} is beyond {LIMITS[name]}"
        for name, row in rows.items()
        if row.lost > LIMITS[name].lost or row.other < LIMITS[name].other or row.small < LIMITS[name].small
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status: 0, 1 where `--check` fails, 2 where nothing can be measured."""
    parser = argparse.ArgumentParser(description="How often a context is silent, and what that costs.")
    parser.add_argument("--tuning", action="store_true", help="conversations 1 to 5 alone")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the stores in DIR for the next run")
    parser.add_argument("--check", action="store_true", help="exit 1 where a figure is beyond its limit")
    options = parser.parse_args(arguments)
    rows: dict[str, Row] = {}
    print(f"{'':12}{'lost':>8}{'other':>8}{'small':>8}")
    try:
        with store_folder(options.keep) as folder:
            for name in ["LoCoMo", "observed"] if options.tuning else LIMITS:
                part = PARTS["tuning" if options.tuning else "report"]
                if name in ("LoCoMo", "observed"):
                    made = of_conversations(part, folder, observed=name == "observed")
                else:
                    made = of_language(name[-2:], folder)
                rows[name] = made
                print(f"{name:12}" + "".join(f"{figure:8.3f}" for figure in made), flush=True)
    except (CannotMeasure, memlog.MemlogError) as error:
        print(f"eval: {error}", file=sys.stderr)
        return 2
    return exit_status(failures(rows) if options.check else [])


if __name__ == "__main__":
    sys.exit(main())

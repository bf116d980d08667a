"""Whether a context holds the answer: of LoCoMo's questions the share for which a context of so many tokens
has at least one of the turns that answer it.

`make eval` runs this on conversations 6 to 10; `--tuning` on 1 to 5, by which settings are chosen. With
`--long`, each second turn stands within a long answer, between texts of XQuAD, and has to be in the context
word by word. Each
conversation is a store of its own, the context is asked for in its chat, and all of it counts: passages and
the window. The variable MEMLOG_EVAL_DATA names the data, as for locomo.py.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from statistics import fmean

from msgspec.structs import replace

import memlog
from tests.eval import xquad
from tests.eval.locomo import (
    CATEGORIES,
    PARTS,
    CannotMeasure,
    Conversation,
    Progress,
    Question,
    data_folder,
    exit_status,
    fill,
    progress_line,
    read_conversations,
    store_folder,
)

BUDGETS = (500, 1000, 2000, 4000)
"""Tokens of a context, by the shipped vocabulary."""

LEAST = {2000: 0.75}
"""The share by tokens, below which `--check` fails."""

VERSION = "original"
"""The questions as published."""

_CHANNEL = "locomo"
_SIDES = ("vector", "pending", "search")

Shares = dict[int, dict[int, list[bool]]]
"""By tokens and the question's category, whether each context holds an answer."""


def holds_answer(given: memlog.Context, question: Question, said: Mapping[str, str]) -> bool:
    """Whether at least one answering turn is in the context. said: the words of turns that must be there."""
    return any(
        entry.id in question.relevant and said.get(entry.id, "") in entry.content for entry in given.entries
    )


def lengthened(conversation: Conversation, fillers: Sequence[str]) -> tuple[Conversation, dict[str, str]]:
    """The conversation with each second turn between two fillers, and the words of these turns by id."""
    events: list[memlog.Event] = []
    said: dict[str, str] = {}
    filler = cycle(fillers)
    for number, event in enumerate(conversation.events):
        if isinstance(event, memlog.Message) and number % 2:
            said[str(event.id)] = event.content
            content = f"{next(filler)}\n\n{event.content}\n\n{next(filler)}"
            event = replace(event, content=content)
        events.append(event)
    return Conversation(conversation.id, events, conversation.questions), said


def evaluate(
    conversations: Sequence[Conversation],
    folder: Path,
    progress: Progress | None = None,
    said: Mapping[str, Mapping[str, str]] = {},
) -> Shares:
    """Whether contexts of each size hold the answers.

    folder: holds a store for each conversation; what is there already is not embedded again.
    said: by conversation the words of turns that must be in the context.

    Raises:
        CannotMeasure: a side of the search does not work here, or a context is larger than its budget.
    """
    shares: Shares = {budget: {category: [] for category in CATEGORIES} for budget in BUDGETS}
    for conversation in conversations:
        with memlog.open(folder / conversation.id) as store:
            fill(store, conversation.events, progress)
            asked = conversation.questions[VERSION]
            for number, question in enumerate(asked, start=1):
                for budget in BUDGETS:
                    given = context_of(store, (_CHANNEL, conversation.id), question.text, budget)
                    shares[budget][question.category].append(
                        holds_answer(given, question, said.get(conversation.id, {}))
                    )
                if progress:
                    progress(f"{conversation.id}: questions", number, len(asked))
    return shares


def context_of(store: memlog.Store, chat: tuple[str, str], text: str, budget: int) -> memlog.Context:
    """The context of a question.

    Raises:
        CannotMeasure: a side of the search does not work here, or it is larger than its budget.
    """
    given = store.context(text, chat=chat, max_tokens=budget, record=False, sync=False)
    for side in _SIDES:
        if side in given.silent:
            raise CannotMeasure(f"{store.path}: {side}: {given.silent[side]}")
    if given.tokens > budget:
        raise CannotMeasure(f"{store.path}: a context of {budget} tokens has {given.tokens}")
    return given


def share(of_category: dict[int, list[bool]]) -> float:
    """The share of all questions whose context holds an answer."""
    return fmean(held for each in of_category.values() for held in each)


def failures(shares: Shares) -> list[str]:
    """What `--check` holds against the figures; empty where they are good."""
    return [
        f"of contexts of {budget:,} tokens {share(shares[budget]):.3f} hold an answer, less than {least}"
        for budget, least in LEAST.items()
        if share(shares[budget]) < least
    ]


def report(shares: Shares) -> str:
    """A line for each size: the share of all questions, and of each category."""
    head = f"{'tokens':>8}{'all':>8}" + "".join(f"{name:>13}" for name in CATEGORIES.values())
    rows = [
        f"{budget:8,}{share(found):8.3f}" + "".join(f"{fmean(held):13.3f}" for held in found.values())
        for budget, found in shares.items()
    ]
    return "\n".join([head, *rows])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status: 0, 1 where `--check` fails, 2 where nothing can be measured."""
    options = _parsed(arguments)
    part = "tuning" if options.tuning else "report"
    try:
        conversations = read_conversations(data_folder())[PARTS[part]]
        said = {}
        if options.long:
            english = xquad.collection_of("en", xquad.data_folder() / "xquad.en.json")
            fillers = [each.content for each in english.events if isinstance(each, memlog.DocumentIndexed)]
            longer = [lengthened(each, fillers) for each in conversations]
            conversations = [each for each, _ in longer]
            said = {each.id: words for each, words in longer}
        with store_folder(options.keep) as folder:
            shares = evaluate(conversations, folder, progress_line(), said)
    except (CannotMeasure, memlog.MemlogError) as error:
        print(f"eval: {error}", file=sys.stderr)
        return 2
    count = sum(len(each.questions[VERSION]) for each in conversations)
    first, last = PARTS[part].start + 1, PARTS[part].stop
    which = ", each second turn within a long answer" if options.long else ""
    print(f"contexts that hold an answering turn: conversations {first}–{last}, {count:,} questions{which}")
    print(report(shares))
    return exit_status(failures(shares) if options.check else [])


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The share of contexts that hold an answering turn.")
    parser.add_argument("--tuning", action="store_true", help="of conversations 1 to 5")
    parser.add_argument("--long", action="store_true", help="each second turn within a long answer")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the stores in DIR for the next run")
    parser.add_argument("--check", action="store_true", help="exit 1 where a share is lower than it must be")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())

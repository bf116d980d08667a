"""Whether a context holds the answer: of LoCoMo's questions the share for which a context of so many tokens
has at least one of the turns that answer it.

`make eval` runs this on conversations 6 to 10; `--tuning` on 1 to 5, by which settings are chosen. With
`--long`, an assistant gives long answers between the turns, of paragraphs of XQuAD. Each conversation is a
store of its own, the context is asked for in its chat, and all of it counts: passages and the window. The
variable MEMLOG_EVAL_DATA names the data, as for locomo.py.
"""

import argparse
import random
import sys
from collections.abc import Sequence
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

_PARAGRAPHS = 2
"""Of a long answer; together about 350 tokens."""

_CHANNEL = "locomo"
_SIDES = ("vector", "pending", "search")

Shares = dict[int, dict[int, list[bool]]]
"""By tokens and the question's category, whether each context holds an answer."""


def holds_answer(given: memlog.Context, question: Question) -> bool:
    """Whether at least one answering turn is in the context."""
    return any(entry.id in question.relevant for entry in given.entries)


def with_long_answers(conversation: Conversation, paragraphs: Sequence[str]) -> Conversation:
    """The conversation with a long answer of an assistant, about other things, behind each turn."""
    events: list[memlog.Event] = []
    drawn = random.Random(conversation.id)
    for event in conversation.events:
        events.append(event)
        if isinstance(event, memlog.Message):
            content = "\n\n".join(drawn.sample(paragraphs, _PARAGRAPHS))
            answer = replace(event, id=f"{event.id}:answer", role="assistant", name=None, content=content)
            events.append(answer)
    return Conversation(conversation.id, events, conversation.questions)


def evaluate(
    conversations: Sequence[Conversation],
    folder: Path,
    progress: Progress | None = None,
) -> Shares:
    """Whether contexts of each size hold the answers.

    folder: holds a store for each conversation; what is there already is not embedded again.

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
                    shares[budget][question.category].append(holds_answer(given, question))
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
        if options.long:
            english = xquad.collection_of("en", xquad.data_folder() / "xquad.en.json")
            texts = [each.content for each in english.events if isinstance(each, memlog.DocumentIndexed)]
            conversations = [with_long_answers(each, texts) for each in conversations]
        with store_folder(options.keep) as folder:
            shares = evaluate(conversations, folder, progress_line())
    except (CannotMeasure, memlog.MemlogError) as error:
        print(f"eval: {error}", file=sys.stderr)
        return 2
    count = sum(len(each.questions[VERSION]) for each in conversations)
    first, last = PARTS[part].start + 1, PARTS[part].stop
    which = ", long answers between the turns" if options.long else ""
    print(f"contexts that hold an answering turn: conversations {first}–{last}, {count:,} questions{which}")
    print(report(shares))
    return exit_status(failures(shares) if options.check else [])


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The share of contexts that hold an answering turn.")
    parser.add_argument("--tuning", action="store_true", help="of conversations 1 to 5")
    parser.add_argument("--long", action="store_true", help="long answers between the turns")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the stores in DIR for the next run")
    parser.add_argument("--check", action="store_true", help="exit 1 where a share is lower than it must be")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())

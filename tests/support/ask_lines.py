"""The lines of fixtures/ask, and a store with the facts that they are asked of."""

from typing import NamedTuple

import memlog
from tests.support.places import FIXTURES

FOLDER = FIXTURES / "ask"
NOT_STORED = "-"


class Line(NamedTuple):
    """A question, the chat in which it is asked, and the values that are to answer, if any."""

    chat: str | None
    any_chat: bool
    text: str
    values: list[str]


def lines(name: str) -> list[Line]:
    """The lines of a file."""
    return [_line(*row.split("\t")) for row in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def _line(chat: str, text: str, expected: str) -> Line:
    scope, _, any_chat = chat.partition(" ")
    values = [] if expected == NOT_STORED else expected.split(" | ")
    return Line(None if scope == "-" else scope, bool(any_chat), text, values)


def tell(store: memlog.Store) -> None:
    """Set the facts, in the order of their lines."""
    for row in (FOLDER / "facts.tsv").read_text(encoding="utf-8").splitlines():
        chat, topic, kind, *values = row.split("\t")
        store.facts.set(topic, *values, single=kind == "single", chat=None if chat == "-" else chat)


def answer(store: memlog.Store, line: Line) -> list[str]:
    """The values that the store answers."""
    found = store.facts.ask(line.text, chat=line.chat, any_chat=line.any_chat)
    return [fact.value for fact in found.facts]

"""Answers a message from facts, or gives what a language model should know to answer it."""

from collections.abc import Callable
from typing import Literal

import msgspec

from memlog.query.context.compose import Context
from memlog.query.context.entries import ContextEntry
from memlog.query.facts.answers import FactAnswer
from memlog.query.facts.question_parser import parse
from memlog.service.requests.facts import AskFacts
from memlog.service.requests.reads import AnswerOrContext, BuildContext


class PreRoute(msgspec.Struct, kw_only=True):
    """How a message is to be answered.

    route: `facts`: `answer` is all, and no language model is asked. search: a language model answers, with
        `system` before its prompt. none: the store has nothing about it.
    answer: from the facts; None with another route.
    system: the memory context for the system prompt; "" if there is none.
    citations: the entries of `system` by citation, such as M1.
    """

    route: Literal["facts", "search", "none"]
    answer: str | None = None
    system: str = ""
    citations: dict[str, ContextEntry] = {}


def pre_route(
    ask: Callable[[AskFacts], FactAnswer],
    context: Callable[[BuildContext], Context],
    asked: AnswerOrContext,
) -> PreRoute:
    """See `AnswerOrContext`. ask, context: operations of a store."""
    found = ask(AskFacts(asked.text, chat=asked.chat))
    # What asks for a place in a list, or for all of it, is not left to a guess where nothing is stored.
    is_of_list = any(question.ranks or question.top or question.is_list for question in parse(asked.text))
    if found.found or is_of_list:
        return PreRoute(route="facts", answer=found.answer)
    given = context(BuildContext(asked.text, chat=asked.chat, max_tokens=asked.max_tokens))
    route: Literal["search", "none"] = "search" if given.entries else "none"
    return PreRoute(route=route, system=given.text, citations=given.citations)

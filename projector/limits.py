"""Limits on the work that projecting one event may cause. Longer texts are indexed as plain text.

All of these figures are part of the projection id.
"""

from collections.abc import Sequence
from typing import Literal

from memlog.eventlog import events as ev
from memlog.eventlog.events import Event

LONGEST_STRUCTURED = 500_000
"""The most characters in the texts of an event; longer ones are indexed only by their words, regardless of
format.

A text of this length takes 0.2 s of CPU time if it is prose, 0.5 s if it is Chinese, and 1.3 s in the slowest
case tried (`# a`, a blank line, `b`, repeated).
"""

LONGEST_NAMES = 4_096
"""The most characters in an event's names (speaker, title, source, chat, file), which each of its passages
repeats. With longer names, its text is one passage. A Linux path may have this length."""

LONGEST_LIST = 10_000
"""The most entries of a ranked list that become facts, in 0.7 s of CPU time; an event has room for millions.
Each repeats the names, so long names reduce the number."""

Reason = Literal["long_text", "long_names", "long_list"]
"""Why a text was indexed plainly, or a list only in part."""

_SEARCHED = (
    ev.MessageUpdated,
    ev.Message,
    ev.SummaryWritten,
    ev.MemorySaved,
    ev.MemoryUpdated,
    ev.DailyEventRecorded,
    ev.FactStored,
    ev.DocumentIndexed,
)
_TEXTS = ("content", "summary", "value")
_NAMES = (
    *("channel", "chat_id", "name", "memory_id", "title", "source", "file", "version", "topic_key"),
    "source_message_id",
)


def are_short_enough_to_structure(*texts: str) -> bool:
    """Whether texts are short enough to be split by format and tokens, and to be indexed with stems."""
    return sum(map(len, texts)) <= LONGEST_STRUCTURED


def are_short_names(*names: str | None) -> bool:
    """Whether names are short enough to be repeated in every passage of a text."""
    return sum(len(name) for name in names if name) <= LONGEST_NAMES


def take_list_entries_within_limit(fact: ev.FactStored) -> list[str]:
    """Return the entries of a ranked list that become facts: all, or the first ones if it is too long."""
    names = sum(map(len, [fact.id or "", *_list_texts_of_event(fact, _NAMES)]))
    most = max(1, LONGEST_LIST * LONGEST_NAMES // max(names, LONGEST_NAMES))
    return [fact.value, *(fact.rest or ())][:most]


def why_indexed_plainly(event: Event) -> Reason | None:
    """Return the reason why a text is indexed plainly or a list only in part; None if neither applies."""
    if not isinstance(event, _SEARCHED):
        return None
    rest = event.rest or () if isinstance(event, ev.FactStored) else ()
    if isinstance(event, ev.FactStored) and len(take_list_entries_within_limit(event)) <= len(rest):
        return "long_list"
    if not are_short_enough_to_structure(*_list_texts_of_event(event, _TEXTS), *rest):
        return "long_text"
    return None if are_short_names(*_list_texts_of_event(event, _NAMES)) else "long_names"


def _list_texts_of_event(event: Event, names: Sequence[str]) -> list[str]:
    return [value for name in names if (value := getattr(event, name, None))]

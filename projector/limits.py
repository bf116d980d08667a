"""How much work an event may cause while it is projected, in characters. What is beyond is indexed plainly.

All figures are part of the projection id.
"""

from collections.abc import Sequence
from typing import Literal

from memlog.eventlog.events import (
    DailyEventRecorded,
    DocumentIndexed,
    Event,
    FactStored,
    MemorySaved,
    MemoryUpdated,
    Message,
    SummaryWritten,
)

LONGEST_STRUCTURED = 500_000
"""Characters of an event's texts beyond which they are indexed by their words alone, in windows that ignore
their form.

Half a million characters of prose take 0.2 s of CPU time, of Chinese 0.5 s, of the slowest text tried
(`# a`, a blank line, `b`, repeated) 1.3 s.
"""

LONGEST_NAMES = 4_096
"""Characters of an event's names (speaker, title, source, chat, file), which each of its passages repeats.
With longer ones its text is one passage. Linux lets a path be as long."""

LONGEST_LIST = 10_000
"""Entries of a ranked list that become facts, in 0.7 s of CPU time. An event has room for millions, at 70 µs
each; and each repeats the names, so fewer do where these are long."""

Reason = Literal["long_text", "long_names", "long_list"]
"""Why a text was indexed plainly, or a list in part."""

_SEARCHED = (
    Message,
    SummaryWritten,
    MemorySaved,
    MemoryUpdated,
    DailyEventRecorded,
    FactStored,
    DocumentIndexed,
)
_TEXTS = ("content", "summary", "value")
_NAMES = (
    *("channel", "chat_id", "name", "memory_id", "title", "source", "file", "version", "topic_key"),
    "source_message_id",
)


def is_structured(*texts: str) -> bool:
    """Whether the texts of an event are short enough to look at their form, tokens, stems and names."""
    return sum(map(len, texts)) <= LONGEST_STRUCTURED


def have_room(*names: str | None) -> bool:
    """Whether names are short enough to be repeated with each passage of a text."""
    return sum(len(name) for name in names if name) <= LONGEST_NAMES


def entries(said: FactStored) -> list[str]:
    """The entries of a list that become facts, from its first rank on."""
    names = sum(map(len, [said.id or "", *_members(said, _NAMES)]))
    most = max(1, LONGEST_LIST * LONGEST_NAMES // max(names, LONGEST_NAMES))
    return [said.value, *(said.rest or ())][:most]


def why_plain(event: Event) -> Reason | None:
    """Why the texts of an event are indexed plainly, or a list in part; None where they are not."""
    if not isinstance(event, _SEARCHED):
        return None
    rest = event.rest or () if isinstance(event, FactStored) else ()
    if isinstance(event, FactStored) and len(entries(event)) <= len(rest):
        return "long_list"
    if not is_structured(*_members(event, _TEXTS), *rest):
        return "long_text"
    return None if have_room(*_members(event, _NAMES)) else "long_names"


def _members(event: Event, names: Sequence[str]) -> list[str]:
    return [value for name in names if (value := getattr(event, name, None))]

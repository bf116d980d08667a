"""A folder of notes that an agent keeps: MEMORY.md, and a journal for each day."""

import re
from collections import Counter
from collections.abc import Iterator

from memlog.eventlog.envelope import Event
from memlog.eventlog.events import CoreMemoryUpdated, DailyEventRecorded, MemorySaved
from memlog.service.importers import ForeignData, Record, Unreadable, Used

_SOURCE = "migration"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)\s*#*$")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])\s+(.*)$")
_PAIR = re.compile(r"(?:\*\*|__)?([^\W\d][\w'’ -]{0,40}?)(?:\*\*|__)?\s*[:：](?:\*\*|__)?\s+(\S.*)$")
_OF_THE_USER = re.compile(r"user|profile|about|me|person|human|я|профиль|用户|käyttäjä", re.IGNORECASE)


def read(source: ForeignData) -> Iterator[Record]:
    """`MEMORY.md`: each item and paragraph is a memory, with its heading as topic; `key: value` below a
    heading about the user is core memory. `2026-02-24.md`: each item and paragraph is a daily event.
    """
    for path in source.files("*.md", "memory/*.md"):
        text, day = source.text(path), _DAY.match(path.stem)
        if isinstance(text, Unreadable):
            yield text
        elif day is None:
            yield from _memories(text, path.stem)
        else:
            yield from _days(text, day[0])


def _days(text: str, day: str) -> Iterator[Record]:
    for number, (_, block) in enumerate(_blocks(text), 1):
        name = f"memory-folder/{day}/{number}"
        event = DailyEventRecorded(id=name, ts=f"{day}T12:00:00Z", event_date=day, summary=block)
        yield Used([event])


def _memories(text: str, file: str) -> Iterator[Record]:
    places: Counter[str] = Counter()
    for heading, block in _blocks(text):
        places[heading] += 1
        name = f"memory-folder/{file}/{heading}/{places[heading]}"
        pair = _PAIR.match(block) if _OF_THE_USER.search(heading) else None
        event: Event
        if pair is not None:
            key = re.sub(r"\W+", "_", pair[1].strip().lower()).strip("_")
            event = CoreMemoryUpdated(id=name, section="user", key=key, value=pair[2].strip(), source=_SOURCE)
        else:
            event = MemorySaved(id=name, memory_id=name, content=block, topic=heading or None, source=_SOURCE)
        yield Used([event])


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Each item and paragraph with the heading above it; lines that belong to one are joined."""
    heading, block = "", ""
    fenced = False
    for line in [*text.splitlines(), ""]:
        fenced ^= line.lstrip().startswith("```")
        title = None if fenced else _HEADING.match(line)
        item = None if fenced else _ITEM.match(line)
        ends = title or item or (not line.strip() and not fenced)
        if ends and block:
            yield heading, block
            block = ""
        if title:
            heading = title[1]
        elif item:
            block = item[1].strip()
        elif line.strip() or fenced:
            block = f"{block}\n{line.rstrip()}".strip("\n")

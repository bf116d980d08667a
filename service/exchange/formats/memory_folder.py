"""A folder of an agent's notes: MEMORY.md and other Markdown files, and a journal for each day."""

import re
from collections import Counter
from collections.abc import Iterator

from memlog.eventlog.events import CoreMemoryUpdated, DailyEventRecorded, Event, MemorySaved
from memlog.service.exchange.formats import ForeignData, Record, Skipped, Unreadable, Used

_SOURCE = "migration"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*)$")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s+(.*)$")
_KEY = r"(?:\*\*|__)?([^\W\d][\w'’ -]{0,40}?)(?:\*\*|__)?\s*"
_PAIR = re.compile(_KEY + r"(?::(?:\*\*|__)?\s+|：(?:\*\*|__)?\s*)(\S.*)$")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_END = "# "


def read(source: ForeignData) -> Iterator[Record]:
    """Yield a memory for each list item and each paragraph, with its heading as topic.

    An item includes the indented lines below it. `key: value` below a heading about the user becomes core
    memory; files such as `2026-02-24.md` contain daily events.
    """
    for path in source.find_files("**/*.md"):
        text, name = source.read_notes(path), source.display_name(path).removesuffix(".md")
        day = _DAY.match(path.stem)
        if isinstance(text, Unreadable):
            yield text
        elif day is None:
            yield from _memory_records(source, text, name, source.modified_at(path))
        else:
            yield from _day_records(text, name, day[0])


def _day_records(text: str, file: str, day: str) -> Iterator[Record]:
    for number, (_, block) in enumerate(_split_blocks(text), 1):
        name = f"memory-folder/{file}/{number}"
        event = DailyEventRecorded(id=name, ts=f"{day}T12:00:00Z", event_date=day, summary=block)
        is_rule = _RULE.fullmatch(block) is not None
        yield Skipped("structure") if is_rule else Used([event], group=file, is_telling=False)


def _memory_records(source: ForeignData, text: str, file: str, ts: str) -> Iterator[Record]:
    places: Counter[str] = Counter()
    for headings, block in _split_blocks(text):
        heading = headings[-1][1] if headings else ""
        places[heading] += 1
        name = f"memory-folder/{file}/{heading}/{places[heading]}"
        if _RULE.fullmatch(block) is not None:
            yield Skipped("structure")
            continue
        pair = _PAIR.fullmatch(block)
        key = "" if pair is None else re.sub(r"\W+", "_", pair[1].strip().lower()).strip("_")
        value = "" if pair is None else pair[2].strip()
        event: Event
        if pair is not None and source.is_of_user(headings, key, value):
            event = CoreMemoryUpdated(id=name, ts=ts, section="user", key=key, value=value, source=_SOURCE)
        else:
            topic = heading or None
            event = MemorySaved(id=name, ts=ts, memory_id=name, content=block, topic=topic, source=_SOURCE)
        yield Used([event], group=file, is_telling=False)


def _split_blocks(text: str) -> Iterator[tuple[list[tuple[int, str]], str]]:
    """Yield each list item, with its indented lines, and each paragraph, after the headings above it.

    The nearest heading comes last. Fenced code stays unchanged, and belongs to the lines directly above it.
    """
    headings: list[tuple[int, str]] = []
    fence, is_item = "", False
    block: list[str] = []
    whole = text.replace("\r\n", "\n")
    end = whole.rfind("-->") + len("-->")  # beyond it, each <!-- would scan to the end in vain
    plain = _COMMENT.sub("", whole[:end]) + whole[end:]
    for line in [*plain.split("\n"), _END]:
        mark = _FENCE.match(line)
        if fence or mark:
            block.append(line)
            if mark:
                fence = mark[1] if not fence else "" if mark[1].startswith(fence) else fence
            continue
        title, item, is_blank = _HEADING.match(line), _ITEM.match(line), not line.strip()
        goes_on = is_item and (is_blank or line[0].isspace())
        ends = is_item and _RULE.fullmatch(line) is not None
        if title or item or ends or (is_blank and not goes_on) or (block[-1:] == [""] and not goes_on):
            if joined := "\n".join(block).strip():
                yield headings, joined
            block, is_item = [], item is not None
        if title:
            level = len(title[1])
            headings = [each for each in headings if each[0] < level]
            headings.append((level, title[2].rstrip().rstrip("#").rstrip()))
        elif item:
            block = [item[1]]
        elif not ends and (block or not is_blank):
            block.append(line)
    if fence and (joined := "\n".join(block[:-1]).strip()):  # an unclosed fence
        yield headings, joined

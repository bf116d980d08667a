"""A folder of an agent's notes: MEMORY.md and other Markdown files, and a journal for each day."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from memlog.eventlog.events import CoreMemoryUpdated, DailyEventRecorded, Event, MemorySaved
from memlog.eventlog.journals import find_day_of_journal
from memlog.service.exchange.formats import ForeignData, Record, Skipped, Unreadable, Used

_SOURCE = "migration"
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*)$")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s+(.*)$|[-*+]$")
_EMPTY_ITEM = re.compile(r"\s+[-*+]\s*")
_PROPERTY = re.compile(r"\s*(?:[-*+]\s+)?[^\W\d][\w./-]{0,60}::(?:\s.*)?")
"""Matches a Logseq property, such as `id:: 65a1` or `tags:: tea, pots`."""

_COPY = re.compile(r"/logseq/(?:bak|version-files)/")
"""Matches the folders where Logseq keeps earlier versions of files."""
_KEY = r"(?:\*\*|__)?([^\W\d][\w'’ -]{0,40}?)(?:\*\*|__)?\s*"
_PAIR = re.compile(_KEY + r"(?::(?:\*\*|__)?\s+|：(?:\*\*|__)?\s*)(\S.*)$")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_END = "# "


def read(source: ForeignData) -> Iterator[Record]:
    """Yield a memory for each list item and each paragraph, with its heading as topic.

    An item includes the indented lines below it. `key: value` below a heading about the user becomes core
    memory; files such as `2026-02-24.md` contain daily events.
    """
    for path in source.find_files("**/*.md", "**/*.org"):
        name = source.display_name(path).removesuffix(".md")
        if path.suffix == ".org":
            source.unknown[f"Org file {name}"] += 1
            yield Skipped("unsupported")
        elif _COPY.search(f"/{name}") is not None:
            yield Skipped("mirror")
        elif isinstance(text := source.read_notes(path), Unreadable):
            yield text
        else:
            yield from _file_records(source, text, name, path)


def _file_records(source: ForeignData, text: str, file: str, path: Path) -> Iterator[Record]:
    day, ts, list_id = find_day_of_journal(path.stem), source.modified_at(path), f"memory-folder/{file}"
    places: Counter[str] = Counter()
    for headings, block in _split_blocks(text):
        if _RULE.fullmatch(block) is not None:
            yield Skipped("structure")
            continue
        cleaned = _without_properties(block)
        if not cleaned:
            yield Skipped("structure" if block else "empty")
            continue
        heading = headings[-1][1] if headings else ""
        by_heading = f"{list_id}/{heading}"
        name = by_heading if day is None else list_id
        places[name] += 1
        name = f"{name}/{places[name]}"
        if day is None:
            event = _memory_event(source, name, ts, headings, cleaned)
        else:
            event = DailyEventRecorded(id=name, ts=f"{day}T12:00:00Z", event_date=day, summary=cleaned)
        yield Used(
            [event],
            group=file,
            is_telling=False,
            is_editable=True,
            # Earlier versions took most journals for notes, and properties for text.
            former=by_heading if day is not None else None,
            former_text=block if block != cleaned else None,
        )


def _memory_event(
    source: ForeignData, name: str, ts: str, headings: list[tuple[int, str]], block: str
) -> Event:
    pair = _PAIR.fullmatch(block)
    key = "" if pair is None else re.sub(r"\W+", "_", pair[1].strip().lower()).strip("_")
    value = "" if pair is None else pair[2].strip()
    if pair is not None and source.is_of_user(headings, key, value):
        return CoreMemoryUpdated(id=name, ts=ts, section="user", key=key, value=value, source=_SOURCE)
    topic = headings[-1][1] or None if headings else None
    return MemorySaved(id=name, ts=ts, memory_id=name, content=block, topic=topic, source=_SOURCE)


def _without_properties(block: str) -> str:
    """Return a block without Logseq's properties, and without empty items below it; code stays as it is."""
    lines, fence = [], ""
    for line in block.split("\n"):
        if (mark := _FENCE.match(line)) is not None:
            fence = mark[1] if not fence else "" if mark[1].startswith(fence) else fence
        if fence or (_PROPERTY.fullmatch(line) is None and _EMPTY_ITEM.fullmatch(line) is None):
            lines.append(line)
    return "\n".join(lines).strip() if len(lines) < block.count("\n") + 1 else block


def _split_blocks(text: str) -> Iterator[tuple[list[tuple[int, str]], str]]:
    """Yield each list item, with its indented lines, and each paragraph, after the headings above it.

    The nearest heading comes last. The block of an empty item is "". Fenced code stays unchanged, and belongs
    to the lines directly above it.
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
            if (joined := "\n".join(block).strip()) or is_item:
                yield headings, joined
            block, is_item = [], item is not None
        if title:
            level = len(title[1])
            headings = [each for each in headings if each[0] < level]
            headings.append((level, title[2].rstrip().rstrip("#").rstrip()))
        elif item:
            block = [item[1] or ""]
        elif not ends and (block or not is_blank):
            block.append(line)
    if fence and (joined := "\n".join(block[:-1]).strip()):  # an unclosed fence
        yield headings, joined

"""Finds the Markdown blocks of a text, in as much detail as splitting requires.

Positions are in code points. Lines end at newlines; a carriage return before one is not part of a line.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Literal, NamedTuple

Kind = Literal["fence", "table", "item", "heading", "paragraph"]

# Possessive quantifiers do not backtrack, so matching is linear in the length of a line.
_ITEM_MARK = r"[ \t]*+(?:[-*+]|\d{1,9}+[.)])[ \t]++"
_DELIMITER = r"[ \t]*+:?+-++:?+[ \t]*+"
_CODE_INDENT = 4

# In characters, as each passage stores the section of its headings.
_TITLE_LENGTH = 250
_SECTION_LENGTH = 1_000


# A line with more backticks after the first ones is inline code, not a fence.
_FENCE = (
    rf"(?:{_ITEM_MARK})?(?P<indent>[ \t]*+)(?P<marks>`{{3,}}+(?=[^`]*+$)|~{{3,}}+)"
    r"[ \t]*+(?P<language>[^\s`]*+)"
)
_DELIMITER_ROW = rf"[ \t]*+\|?+{_DELIMITER}(?:\|{_DELIMITER})*\|?+[ \t]*+$"

# Compiled at first use, so that commands without Markdown do not pay for it.
_fence_pattern = cache(partial(re.compile, _FENCE))
_heading_pattern = cache(partial(re.compile, r" {0,3}+(?P<marks>#{1,6}+)[ \t]++"))
_list_item_pattern = cache(partial(re.compile, rf"{_ITEM_MARK}\S"))
_delimiter_row_pattern = cache(partial(re.compile, _DELIMITER_ROW))


class Span(NamedTuple):
    """A range of positions in a text."""

    start: int
    end: int


class Frame(NamedTuple):
    """The text that each part of a long block needs around it to be self-contained.

    heads: candidates for the text to repeat in front, best first: a fence's opening line or part of it, or
      the first two rows of a table.
    marks: the marks that close a fence; empty for a table.
    body_end: the start of the line that closes a fence; the end of the block if nothing closes it.
    """

    heads: tuple[Span, ...]
    marks: Span
    body_end: int


class Block(NamedTuple):
    """A block, extending to the start of the next line.

    section: the headings above it, joined by ` > ` and truncated.
    heading: the line of the last of these headings; None without headings, or if the block is a heading.
    frame: set for fences, and for tables with a delimiter row.
    """

    kind: Kind
    section: str | None
    start: int
    end: int
    heading: Span | None = None
    frame: Frame | None = None


class TextLine(NamedTuple):
    """A line without its line ending, and the position at which it starts."""

    start: int
    text: str


class Part(NamedTuple):
    """A block, as a format module describes it.

    behind: the index of the line after it.
    level: a heading's level; it ends the sections of the same or deeper levels. In source code, the indent.
    title: the title of a heading.
    """

    kind: Kind
    behind: int
    level: int | None = None
    title: str = ""
    frame: Frame | None = None


def nest_blocks_below_headings(
    text: str, part_at: Callable[[Sequence[TextLine], int], Part]
) -> Iterator[Block]:
    """Yield the blocks of `text` in order, each with the headings above it.

    part_at: returns the block that starts on a non-blank line; there is always an empty line after the last
      one.
    """
    above: list[tuple[int, str, Span]] = []
    section: str | None = None
    lines = _split_lines(text)
    index = 0
    while index < len(lines):
        if not lines[index].text.strip():
            index += 1
            continue
        kind, behind, level, title, frame = part_at(lines, index)
        span = Span(lines[index].start, lines[behind].start)
        depth = len(above)
        while level is not None and above and above[-1][0] >= level:
            above.pop()
        heading = above[-1][2] if above and kind != "heading" else None
        if kind == "heading":
            above.append((level or 0, title, span))
        if kind == "heading" or len(above) < depth:
            section = " > ".join(title for _, title, _ in above)[:_SECTION_LENGTH] or None
        yield Block(kind, section, *span, heading, frame)
        index = behind


def split_into_blocks(text: str) -> Iterator[Block]:
    """Yield the Markdown blocks of `text` in order; only fences contain blank lines."""
    return nest_blocks_below_headings(text, _block_at)


def find_first_title(text: str) -> str | None:
    """Return the heading at the start of `text`, or None."""
    if "#" not in text:  # most messages
        return None
    line = text.lstrip("\r\n").partition("\n")[0].rstrip("\r")
    heading = _heading_pattern().match(line)
    return _strip_title(line, heading) if heading else None


def truncate_title(title: str) -> str:
    """Truncate a title, which is stored with every passage below it."""
    return title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…"


def _split_lines(text: str) -> list[TextLine]:
    """Split `text` into lines, and add an empty one at the end."""
    lines, start = [], 0
    for line in text.split("\n"):
        lines.append(TextLine(start, line.removesuffix("\r")))
        start += len(line) + 1
    return [*lines, TextLine(len(text), "")]


def _strip_title(line: str, heading: re.Match[str]) -> str:
    """Return the title in a heading line, without the marks around it."""
    return truncate_title(line[heading.end() :].rstrip(" \t").rstrip("#").rstrip(" \t"))


def _block_at(lines: Sequence[TextLine], index: int) -> Part:
    line = lines[index].text
    following = range(index + 1, len(lines))
    if heading := _heading_pattern().match(line):
        return Part("heading", index + 1, len(heading["marks"]), _strip_title(line, heading))
    if fence := _fence_pattern().match(line):
        behind = _find_end_of_fence(lines, index, fence)
        return Part("fence", behind, frame=_frame_of_fence(lines, index, behind, fence))
    if line.lstrip().startswith("|"):
        behind = next(at for at in following if not lines[at].text.lstrip().startswith("|"))
        return Part("table", behind, frame=_frame_of_table(lines, index, behind))
    behind = next(at for at in following if _line_ends_paragraph(lines[at].text))
    return Part("item" if _list_item_pattern().match(line) else "paragraph", behind)


def _line_ends_paragraph(line: str) -> bool:
    starts = (
        _fence_pattern().match(line) or _heading_pattern().match(line) or _list_item_pattern().match(line)
    )
    return not line.strip() or starts is not None or line.lstrip().startswith("|")


def _find_end_of_fence(lines: Sequence[TextLine], index: int, fence: re.Match[str]) -> int:
    """Return the index of the line after a fence; the end of the surrounding list item also ends it."""
    is_in_list = fence.start("indent") > 0 or len(fence["indent"].expandtabs(_CODE_INDENT)) >= _CODE_INDENT
    marks = fence["marks"]
    for at in range(index + 1, len(lines)):
        line = lines[at].text
        if _closes_fence(line, marks):
            return at + 1
        if is_in_list and line.strip() and not line[0].isspace():
            return at
    return len(lines) - 1


def _closes_fence(line: str, marks: str) -> bool:
    """Whether a line closes the fence opened by `marks`: at least as many marks, and nothing else."""
    shut = line.strip()
    return len(shut) >= len(marks) and shut == marks[0] * len(shut)


def _frame_of_table(lines: Sequence[TextLine], index: int, behind: int) -> Frame | None:
    if behind <= index + 2 or not _delimiter_row_pattern().match(lines[index + 1].text):
        return None
    start = lines[index].start
    return Frame((Span(start, lines[index + 2].start),), Span(start, start), lines[behind].start)


def _frame_of_fence(lines: Sequence[TextLine], index: int, behind: int, fence: re.Match[str]) -> Frame:
    start, line = lines[index]
    # Without a list item's mark: the parts are one item.
    begin = start + fence.start("indent")
    ends = (len(line), fence.end("language"), fence.end("marks"))
    is_closed = behind > index + 1 and _closes_fence(lines[behind - 1].text, fence["marks"])
    return Frame(
        heads=tuple(Span(begin, start + stop) for stop in ends),
        marks=Span(start + fence.start("marks"), start + fence.end("marks")),
        body_end=lines[behind - 1 if is_closed else behind].start,
    )

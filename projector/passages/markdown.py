"""The Markdown blocks of a text, as far as they matter for where a passage may be cut.

Places in the text are in code points. Lines end at newlines; a carriage return before one is no part of what
a line says.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

Kind = Literal["fence", "table", "item", "heading", "paragraph"]

# Repeats are possessive: none gives back what it took, so a line takes time linear in its length.
_ITEM_MARK = r"[ \t]*+(?:[-*+]|\d{1,9}+[.)])[ \t]++"
_DELIMITER = r"[ \t]*+:?+-++:?+[ \t]*+"
_CODE_INDENT = 4

# In characters: a section is stored with each passage below its headings.
_TITLE_LENGTH = 250
_SECTION_LENGTH = 1_000


# Compiled at the first Markdown: a command that reads none does not wait for it.
@cache
def _fence() -> re.Pattern[str]:
    # A line with more backticks behind the first ones is code within a line, not a fence.
    return re.compile(
        rf"(?:{_ITEM_MARK})?(?P<indent>[ \t]*+)(?P<marks>`{{3,}}+(?=[^`]*+$)|~{{3,}}+)"
        r"[ \t]*+(?P<language>[^\s`]*+)"
    )


@cache
def _heading() -> re.Pattern[str]:
    return re.compile(r" {0,3}+(?P<marks>#{1,6}+)[ \t]++")


@cache
def _list_item() -> re.Pattern[str]:
    return re.compile(rf"{_ITEM_MARK}\S")


@cache
def _delimiter_row() -> re.Pattern[str]:
    return re.compile(rf"[ \t]*+\|?+{_DELIMITER}(?:\|{_DELIMITER})*\|?+[ \t]*+$")


class Span(NamedTuple):
    """A stretch of a text."""

    start: int
    end: int


class Frame(NamedTuple):
    """What each part of a long block needs around it to be read by itself.

    heads: what is repeated in front, the best first: a fence's line, then less of it; a table's first rows.
    marks: what closes a fence; of no length for a table.
    body_end: where the line that closes a fence begins; the block's end where none does.
    """

    heads: tuple[Span, ...]
    marks: Span
    body_end: int


class Block(NamedTuple):
    """A block, up to where the line behind it begins.

    section: the headings that it stands under, joined by ` > `; of very long ones the beginning.
    heading: the line of the last of them; None above the first, and for a heading itself.
    frame: of fences, and of tables with a line under their header.
    """

    kind: Kind
    section: str | None
    start: int
    end: int
    heading: Span | None = None
    frame: Frame | None = None


class TextLine(NamedTuple):
    """A line without what ends it, and where it starts."""

    start: int
    text: str


class Part(NamedTuple):
    """A block as its format sees it.

    behind: the index of the line behind it.
    level: of a heading, by which it ends those of its level and deeper ones; of source code its indent.
    title: of a heading.
    """

    kind: Kind
    behind: int
    level: int | None = None
    title: str = ""
    frame: Frame | None = None


def nested(text: str, part_at: Callable[[Sequence[TextLine], int], Part]) -> Iterator[Block]:
    """Yield the blocks of `text`, in order, each with the headings above it.

    part_at: finds the block that begins at a line, which is not blank. Behind the last line is an empty one.
    """
    above: list[tuple[int, str, Span]] = []
    section: str | None = None
    lines = _lines_of(text)
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


def blocks(text: str) -> Iterator[Block]:
    """Return the blocks of `text`, in order. Blank lines are in none, but for those of a fence."""
    return nested(text, _part_at)


def first_title(text: str) -> str | None:
    """Return the heading that `text` begins with; None where it begins with something else."""
    if "#" not in text:  # most messages
        return None
    line = text.lstrip("\r\n").partition("\n")[0].rstrip("\r")
    heading = _heading().match(line)
    return _title(line, heading) if heading else None


def clipped_title(title: str) -> str:
    """Return `title`, or its beginning where it is too long to be stored with each passage below it."""
    return title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…"


def _lines_of(text: str) -> list[TextLine]:
    """Return the lines of `text`, and an empty one at its end."""
    lines, start = [], 0
    for line in text.split("\n"):
        lines.append(TextLine(start, line.removesuffix("\r")))
        start += len(line) + 1
    return [*lines, TextLine(len(text), "")]


def _title(line: str, heading: re.Match[str]) -> str:
    """Return the title of a heading: its line without the marks at both ends."""
    return clipped_title(line[heading.end() :].rstrip(" \t").rstrip("#").rstrip(" \t"))


def _part_at(lines: Sequence[TextLine], index: int) -> Part:
    line = lines[index].text
    following = range(index + 1, len(lines))
    if heading := _heading().match(line):
        return Part("heading", index + 1, len(heading["marks"]), _title(line, heading))
    if fence := _fence().match(line):
        behind = _behind_fence(lines, index, fence)
        return Part("fence", behind, frame=_frame_of_fence(lines, index, behind, fence))
    if line.lstrip().startswith("|"):
        behind = next(at for at in following if not lines[at].text.lstrip().startswith("|"))
        return Part("table", behind, frame=_frame_of_table(lines, index, behind))
    behind = next(at for at in following if _begins_block(lines[at].text))
    return Part("item" if _list_item().match(line) else "paragraph", behind)


def _begins_block(line: str) -> bool:
    starts = _fence().match(line) or _heading().match(line) or _list_item().match(line)
    return not line.strip() or starts is not None or line.lstrip().startswith("|")


def _behind_fence(lines: Sequence[TextLine], index: int, fence: re.Match[str]) -> int:
    """Return the index of the line after a fence.

    It follows the line that closes the fence, or the end of the list that holds it.
    """
    is_in_list = fence.start("indent") > 0 or len(fence["indent"].expandtabs(_CODE_INDENT)) >= _CODE_INDENT
    marks = fence["marks"]
    for at in range(index + 1, len(lines)):
        line = lines[at].text
        if _closes(line, marks):
            return at + 1
        if is_in_list and line.strip() and not line[0].isspace():
            return at
    return len(lines) - 1


def _closes(line: str, marks: str) -> bool:
    """Whether a line closes the fence that `marks` opened: as many of them or more, and nothing else."""
    shut = line.strip()
    return len(shut) >= len(marks) and shut == marks[0] * len(shut)


def _frame_of_table(lines: Sequence[TextLine], index: int, behind: int) -> Frame | None:
    if behind <= index + 2 or not _delimiter_row().match(lines[index + 1].text):
        return None
    start = lines[index].start
    return Frame((Span(start, lines[index + 2].start),), Span(start, start), lines[behind].start)


def _frame_of_fence(lines: Sequence[TextLine], index: int, behind: int, fence: re.Match[str]) -> Frame:
    start, line = lines[index]
    # A list item's mark is not repeated: the parts are one item.
    begin = start + fence.start("indent")
    ends = (len(line), fence.end("language"), fence.end("marks"))
    is_closed = behind > index + 1 and _closes(lines[behind - 1].text, fence["marks"])
    return Frame(
        heads=tuple(Span(begin, start + stop) for stop in ends),
        marks=Span(start + fence.start("marks"), start + fence.end("marks")),
        body_end=lines[behind - 1 if is_closed else behind].start,
    )

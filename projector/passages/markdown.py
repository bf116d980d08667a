"""The Markdown blocks of a text, as far as they matter for where a passage may be cut.

Places in the text are in code points. Lines end at newlines; a carriage return before one is no part of what
a line says.
"""

import re
from collections.abc import Iterable, Iterator
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


def blocks(text: str) -> Iterator[Block]:
    """The blocks of `text`, in order. Blank lines are in none."""
    titles: list[tuple[int, str]] = []
    section: str | None = None
    heading: Span | None = None
    lines = lines_of(text)
    index = 0
    while index < len(lines):
        start, line = lines[index]
        if not line.strip():
            index += 1
            continue
        kind, index_behind = _extent(lines, index)
        end = lines[index_behind].start if index_behind < len(lines) else len(text)
        if kind == "heading":
            titles, heading = _under(titles, line), None
            section = section_of(title for _, title in titles)
        frame = _frame(kind, lines, index, index_behind, end)
        yield Block(kind, section, start, end, heading, frame)
        if kind == "heading":
            heading = Span(start, end)
        index = index_behind


def first_title(text: str) -> str | None:
    """The heading that `text` begins with; None where it begins with something else."""
    if "#" not in text:  # most messages
        return None
    line = text.lstrip("\r\n").partition("\n")[0].rstrip("\r")
    heading = _heading().match(line)
    return _title(line, heading) if heading else None


def section_of(titles: Iterable[str]) -> str | None:
    """The titles of nested headings, the outermost first, as one text; None without any."""
    return " > ".join(titles)[:_SECTION_LENGTH] or None


def clipped_title(title: str) -> str:
    """`title`, or its beginning where it is too long to be stored with each passage below it."""
    return title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…"


def lines_of(text: str) -> list[TextLine]:
    """The lines of `text`; the last is empty where it ends with a newline."""
    lines, start = [], 0
    for line in text.split("\n"):
        lines.append(TextLine(start, line.removesuffix("\r")))
        start += len(line) + 1
    return lines


def _under(titles: list[tuple[int, str]], line: str) -> list[tuple[int, str]]:
    """The headings that stand above what follows the heading `line`."""
    heading = _heading().match(line)
    assert heading is not None
    level = len(heading["marks"])
    return [*(above for above in titles if above[0] < level), (level, _title(line, heading))]


def _title(line: str, heading: re.Match[str]) -> str:
    """The title of a heading: its line without the marks at both ends."""
    return clipped_title(line[heading.end() :].rstrip(" \t").rstrip("#").rstrip(" \t"))


def _extent(lines: list[TextLine], index: int) -> tuple[Kind, int]:
    """The kind of the block that begins at line `index`, and the index of the line behind it."""
    line = lines[index].text
    following = range(index + 1, len(lines))
    if _heading().match(line):
        return "heading", index + 1
    if fence := _fence().match(line):
        return "fence", _behind_fence(lines, index, fence)
    if line.lstrip().startswith("|"):
        others = (at for at in following if not lines[at].text.lstrip().startswith("|"))
        return "table", next(others, len(lines))
    others = (at for at in following if _begins_block(lines[at].text))
    return ("item" if _list_item().match(line) else "paragraph"), next(others, len(lines))


def _begins_block(line: str) -> bool:
    starts = _fence().match(line) or _heading().match(line) or _list_item().match(line)
    return not line.strip() or starts is not None or line.lstrip().startswith("|")


def _behind_fence(lines: list[TextLine], index: int, fence: re.Match[str]) -> int:
    """The index of the line behind a fence: behind what closes it, or where the list ends that holds it."""
    is_in_list = fence.start("indent") > 0 or len(fence["indent"].expandtabs(_CODE_INDENT)) >= _CODE_INDENT
    marks = fence["marks"]
    for at in range(index + 1, len(lines)):
        line = lines[at].text
        if _closes(line, marks):
            return at + 1
        if is_in_list and line.strip() and not line[0].isspace():
            return at
    return len(lines)


def _closes(line: str, marks: str) -> bool:
    """Whether a line closes the fence that `marks` opened: as many of them or more, and nothing else."""
    shut = line.strip()
    return len(shut) >= len(marks) and shut == marks[0] * len(shut)


def _frame(kind: Kind, lines: list[TextLine], index: int, behind: int, end: int) -> Frame | None:
    start, line = lines[index]
    if kind == "table" and behind > index + 2 and _delimiter_row().match(lines[index + 1].text):
        return Frame((Span(start, lines[index + 2].start),), Span(start, start), end)
    fence = _fence().match(line) if kind == "fence" else None
    if fence is None:
        return None
    # A list item's mark is not repeated: the parts are one item.
    begin = start + fence.start("indent")
    ends = (len(line), fence.end("language"), fence.end("marks"))
    is_closed = behind > index + 1 and _closes(lines[behind - 1].text, fence["marks"])
    return Frame(
        heads=tuple(Span(begin, start + stop) for stop in ends),
        marks=Span(start + fence.start("marks"), start + fence.end("marks")),
        body_end=lines[behind - 1].start if is_closed else end,
    )

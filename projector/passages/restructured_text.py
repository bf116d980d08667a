"""The blocks of a reStructuredText, as far as they matter for where a passage may be cut.

https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html: a title has a line of one punctuation mark
below it, at least as long, or the same above it too; which marks are of which level is told by their order.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memlog.projector.passages.markdown import (
    Block,
    Kind,
    Span,
    TextLine,
    clipped_title,
    lines_of,
    section_of,
)

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*$")
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|(?:\d{1,9}|#|[a-zA-Z])[.)]|\(\w{1,3}\))[ \t]+\S")
_TABLE = re.compile(r"[ \t]*(?:\+[-=]+\+|=+[ \t]+=[= \t]*$)")
_CODE = re.compile(r"[ \t]*\.\. (?:code|code-block|sourcecode|parsed-literal|prompt)::")


class _Title(NamedTuple):
    """A title, its mark and whether that stands above it too, and the index of the line behind it."""

    text: str
    style: tuple[str, bool]
    behind: int


def blocks(text: str) -> Iterator[Block]:
    """The blocks of `text`, in order. Blank lines are in none, but for those within a literal block."""
    styles: list[tuple[str, bool]] = []
    titles: list[tuple[int, str]] = []
    section: str | None = None
    heading: Span | None = None
    lines = lines_of(text)
    index, is_literal = 0, False
    while index < len(lines):
        if not lines[index].text.strip():
            index += 1
            continue
        title = _title_at(lines, index)
        kind, behind = _extent(lines, index, is_literal=is_literal) if title is None else _heading(title)
        start, end = lines[index].start, lines[behind].start if behind < len(lines) else len(text)
        if title is not None:
            if title.style not in styles:
                styles.append(title.style)
            level = styles.index(title.style)
            titles = [*(above for above in titles if above[0] < level), (level, title.text)]
            section, heading = section_of(each for _, each in titles), None
        yield Block(kind, section, start, end, heading)
        if title is not None:
            heading = Span(start, end)
        is_literal = _opens_literal(lines[behind - 1].text)
        index = behind


def first_title(text: str) -> str | None:
    """The title that `text` begins with; None where it begins with something else."""
    lines = lines_of(text)
    first = next((index for index, line in enumerate(lines) if line.text.strip()), None)
    title = None if first is None else _title_at(lines, first)
    return None if title is None else title.text


def _title_at(lines: Sequence[TextLine], index: int) -> _Title | None:
    first, second, third = (
        lines[at].text.rstrip() if at < len(lines) else "" for at in range(index, index + 3)
    )
    if _ADORNMENT.match(first):
        if second.strip() and third == first and len(first) >= len(second.strip()):
            return _Title(clipped_title(second.strip()), (first[0], True), index + 3)
        return None
    if _ADORNMENT.match(second) and len(second) >= len(first) and not first[0].isspace():
        return _Title(clipped_title(first), (second[0], False), index + 2)
    return None


def _heading(title: _Title) -> tuple[Kind, int]:
    return "heading", title.behind


def _opens_literal(line: str) -> bool:
    return line.rstrip().endswith("::") or _CODE.match(line) is not None


def _extent(lines: Sequence[TextLine], index: int, *, is_literal: bool) -> tuple[Kind, int]:
    """The kind of the block that begins at line `index`, and the index of the line behind it."""
    line = lines[index].text
    following = range(index + 1, len(lines))
    if is_literal and line[0].isspace():
        return "fence", _behind_literal(lines, index)
    if _TABLE.match(line):
        return "table", next((at for at in following if not lines[at].text.strip()), len(lines))
    others = (at for at in following if not lines[at].text.strip() or _ITEM.match(lines[at].text))
    return ("item" if _ITEM.match(line) else "paragraph"), next(others, len(lines))


def _behind_literal(lines: Sequence[TextLine], index: int) -> int:
    """The index of the line behind the last indented one."""
    behind = index + 1
    for at in range(index + 1, len(lines)):
        line = lines[at].text
        if line.strip() and not line[0].isspace():
            break
        if line.strip():
            behind = at + 1
    return behind

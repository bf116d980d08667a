"""Finds the reStructuredText blocks of a text, in as much detail as splitting requires.

https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html: a title is underlined with a repeated
punctuation mark, at least as long as the title, and may have a matching overline; the order in which the
marks appear determines their levels.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from memlog.projector.passages.markdown import (
    Block,
    Kind,
    Part,
    TextLine,
    nest_blocks_below_headings,
    truncate_title,
)

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*$")
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|(?:\d{1,9}|#|[a-zA-Z])[.)]|\(\w{1,3}\))[ \t]+\S")
_TABLE = re.compile(r"[ \t]*(?:\+[-=]+\+|=+[ \t]+=[= \t]*$)")
_CODE = re.compile(r"[ \t]*\.\. (?:code|code-block|sourcecode|parsed-literal|prompt)::")

_Style = tuple[str, bool]
"""A title's punctuation mark, and whether the title also has an overline."""


def split_into_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of `text` in order; only literal blocks contain blank lines."""
    return nest_blocks_below_headings(text, partial(_block_at, []))


def find_first_title(text: str) -> str | None:
    """Return the title at the start of `text`, or None."""
    first = next(split_into_blocks(text), None)
    return first.section if first is not None and first.kind == "heading" else None


def _block_at(styles: list[_Style], lines: Sequence[TextLine], index: int) -> Part:
    """Return the block at a line. styles: the title styles so far, by level; a new style is appended."""
    title = _title_at(lines, index)
    if title is None:
        return Part(*_find_kind_and_end(lines, index))
    text, style, length = title
    if style not in styles:
        styles.append(style)
    return Part("heading", index + length, styles.index(style), text)


def _title_at(lines: Sequence[TextLine], index: int) -> tuple[str, _Style, int] | None:
    """Return the text, style and number of lines of the title at a line; None if there is no title."""
    first, second, third = (
        lines[at].text.rstrip() if at < len(lines) else "" for at in range(index, index + 3)
    )
    if _ADORNMENT.match(first):
        if second.strip() and third == first and len(first) >= len(second.strip()):
            return truncate_title(second.strip()), (first[0], True), 3
        return None
    if _ADORNMENT.match(second) and len(second) >= len(first) and not first[0].isspace():
        return truncate_title(first), (second[0], False), 2
    return None


def _is_literal_block_at(lines: Sequence[TextLine], index: int) -> bool:
    """Whether a line is indented and follows a line that introduces a literal block."""
    before = next((lines[at].text for at in range(index - 1, -1, -1) if lines[at].text.strip()), "")
    announces = before.rstrip().endswith("::") or _CODE.match(before) is not None
    return announces and lines[index].text[0].isspace()


def _find_kind_and_end(lines: Sequence[TextLine], index: int) -> tuple[Kind, int]:
    """Return the kind of the block at line `index`, and the index of the line after it."""
    line = lines[index].text
    following = range(index + 1, len(lines))
    if _is_literal_block_at(lines, index):
        return "fence", _end_of_literal(lines, index)
    if _TABLE.match(line):
        return "table", next(at for at in following if not lines[at].text.strip())
    others = (at for at in following if not lines[at].text.strip() or _ITEM.match(lines[at].text))
    return ("item" if _ITEM.match(line) else "paragraph"), next(others)


def _end_of_literal(lines: Sequence[TextLine], index: int) -> int:
    """Return the index of the line after the last indented line of a literal block."""
    behind = index + 1
    for at in range(index + 1, len(lines)):
        line = lines[at].text
        if line.strip() and not line[0].isspace():
            break
        if line.strip():
            behind = at + 1
    return behind

"""The blocks of source code. Definitions are its headings; it is cut at line ends alone, best at blank lines.

What a definition is, is read off its line by the words of many languages; what stands below it, and further
in, is its own.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memlog.projector.passages.markdown import Block, Span, TextLine, clipped_title, lines_of, section_of

_BEFORE = (
    "abstract async const data declare default export extern final inline internal local open override"
    " partial private protected public sealed static unsafe virtual"
)
_WORDS = (
    "class def defmodule defp enum extension fn fun func function impl interface macro mod module namespace"
    " object protocol record struct sub trait type union"
)
_DEFINITION = re.compile(
    r"(?P<indent>[ \t]*)"
    rf"(?:(?:{'|'.join(_BEFORE.split())}|pub(?:\([^)\n]{{1,40}}\))?)[ \t]+)*"
    rf"(?:{'|'.join(_WORDS.split())})\b\*?[ \t]*"
    # Go names what a method is of, Rust its parameters first.
    r"(?:\([^)\n]{0,80}\)[ \t]*|<[^>\n]{0,80}>[ \t]*)?"
    r"(?P<name>[^\W\d][\w.:$?!]*?)[ \t]*"
    # Prose that happens to begin with such a word goes on with another.
    r"(?:[(:{<=\[;]|$|(?:as|do|extends|for|implements|interface|is|struct|where|with)\b)"
)
_CLOSING = ")]}"
_TAB = 4


class _Definition(NamedTuple):
    indent: int
    name: str
    line: Span


def blocks(text: str) -> Iterator[Block]:
    """The blocks of `text`, in order: lines that define something, and others, as far as none is blank."""
    above: list[_Definition] = []
    section: str | None = None
    lines = lines_of(text)
    index = 0
    while index < len(lines):
        line = lines[index].text
        if not line.strip():
            index += 1
            continue
        definition = _DEFINITION.match(line)
        behind = index + 1 if definition else _behind(lines, index)
        span = Span(lines[index].start, lines[behind].start if behind < len(lines) else len(text))
        indent, depth = _indent(line), len(above)
        if definition or line.lstrip()[0] not in _CLOSING:
            while above and above[-1].indent >= indent:
                above.pop()
        if definition:
            above.append(_Definition(indent, clipped_title(definition["name"].rstrip(":")), span))
        if definition or len(above) < depth:
            section = section_of(each.name for each in above)
        if definition:
            yield Block("heading", section, *span)
        else:
            yield Block("item", section, *span, above[-1].line if above else None)
        index = behind


def no_title(_: str) -> None:
    """Nothing: what code begins with is not what all of it is about."""


def _behind(lines: Sequence[TextLine], index: int) -> int:
    """The index of the next line that is blank or defines something."""
    following = range(index + 1, len(lines))
    ends = (at for at in following if not lines[at].text.strip() or _DEFINITION.match(lines[at].text))
    return next(ends, len(lines))


def _indent(line: str) -> int:
    wide = line.expandtabs(_TAB)
    return len(wide) - len(wide.lstrip())

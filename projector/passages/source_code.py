"""The blocks of source code. Definitions are its headings; it is cut at line ends alone, best at blank lines.

A line is a definition by the words of many languages; what is below it, and indented further, belongs to it.
"""

import re
from collections.abc import Iterator, Sequence

from memlog.projector.passages.markdown import Block, Part, TextLine, clipped_title, nested

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


def blocks(text: str) -> Iterator[Block]:
    """Return the blocks of `text`, in order.

    A block is a line that defines something, or other lines up to a definition or a blank line.
    """
    return nested(text, _part_at)


def _part_at(lines: Sequence[TextLine], index: int) -> Part:
    line = lines[index].text
    wide = line.expandtabs(_TAB)
    indent = len(wide) - len(wide.lstrip())
    if definition := _DEFINITION.match(line):
        return Part("heading", index + 1, indent, clipped_title(definition["name"].rstrip(":")))
    following = ((at, lines[at].text) for at in range(index + 1, len(lines)))
    behind = next(at for at, text in following if not text.strip() or _DEFINITION.match(text))
    return Part("item", behind, None if line.lstrip()[0] in _CLOSING else indent)

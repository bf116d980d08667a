"""Splits source code into blocks at line ends, with definitions as headings.

Prefers to split at blank lines. Recognises definitions by the keywords of many languages; the more deeply
indented lines below a definition belong to it.
"""

import re
from collections.abc import Iterator, Sequence

from memlog.projector.passages.markdown import (
    Block,
    Part,
    TextLine,
    nest_blocks_below_headings,
    truncate_title,
)

_MODIFIERS = (
    "abstract async const data declare default export extern final inline internal local open override"
    " partial private protected public sealed static unsafe virtual"
)
_KEYWORDS = (
    "class def defmodule defp enum extension fn fun func function impl interface macro mod module namespace"
    " object protocol record struct sub trait type union"
)
_DEFINITION = re.compile(
    r"(?P<indent>[ \t]*)"
    rf"(?:(?:{'|'.join(_MODIFIERS.split())}|pub(?:\([^)\n]{{1,40}}\))?)[ \t]+)*"
    rf"(?:{'|'.join(_KEYWORDS.split())})\b\*?[ \t]*"
    # The receiver of a Go method, or type parameters of Rust.
    r"(?:\([^)\n]{0,80}\)[ \t]*|<[^>\n]{0,80}>[ \t]*)?"
    r"(?P<name>[^\W\d][\w.:$?!]*?)[ \t]*"
    # Not prose that begins with such a word.
    r"(?:[(:{<=\[;]|$|(?:as|do|extends|for|implements|interface|is|struct|where|with)\b)"
)
_CLOSING = ")]}"
_TAB = 4


def split_into_blocks(text: str) -> Iterator[Block]:
    """Yield each definition, and each run of lines up to the next definition or blank line."""
    return nest_blocks_below_headings(text, _block_at)


def _block_at(lines: Sequence[TextLine], index: int) -> Part:
    line = lines[index].text
    wide = line.expandtabs(_TAB)
    indent = len(wide) - len(wide.lstrip())
    if definition := _DEFINITION.match(line):
        return Part("heading", index + 1, indent, truncate_title(definition["name"].rstrip(":")))
    following = ((at, lines[at].text) for at in range(index + 1, len(lines)))
    behind = next(at for at, text in following if not text.strip() or _DEFINITION.match(text))
    return Part("item", behind, None if line.lstrip()[0] in _CLOSING else indent)

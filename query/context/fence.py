r"""Text from memory as data: nothing that it says can end the block it stands in, pass for a citation, or
drive a terminal.

A block has a first line and a last line. What stands between them is one line an entry, and ends with its
citation, `[M1]`. In an entry line breaks, control characters, bidi marks and what else cannot be seen are
written as escapes (`\n`, `\x1b`, `\u202e`), and a backslash stands before `[M` and before the two lines.
"""

import re
import unicodedata

FIRST_LINE = "Relevant memories from this session:"
LAST_LINE = "Use these memories to provide contextually aware responses."

_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that have no shape of their own: controls, format characters, separators."""

_JOINERS = "\u200c\u200d"
"""Emoji and some scripts are written with these, and they hide nothing."""

_LIKE_M = "MmＭｍМмΜ"
_BRACKETS = "[［【〔"
_CITATION = rf"[{re.escape(_BRACKETS)}](?=\s*(?:M|[{_LIKE_M}]\s*\d))"
_LINES = "|".join(re.escape(line[:-1]).replace(r"\ ", r"\s+") for line in (FIRST_LINE, LAST_LINE))
_MARKS = re.compile(rf"(?<!\\)(\\*+)({_CITATION}|(?i:{_LINES}))")
_MAY_BE_UNSEEN = re.compile(r"[^ -~\xa1-\xac\xae-\u05ff]")
"""By what it is not: a range up to the last character takes `re` 6 ms to compile, this 0.6."""


def escaped(text: str, *, keep_lines: bool = False) -> str:
    r"""`text` as data on one line.

    keep_lines: line breaks and tabs stay, and so do backslashes but those before a mark: it stands by itself,
        and not in a block.
    """
    if not keep_lines:
        text = text.replace("\\", "\\\\")
    kept, times = ("\n\t", 2) if keep_lines else ("", 1)
    # Before its white space becomes escapes: a line is one over two lines, too.
    marked = _MARKS.sub(lambda match: match[1] * times + f"\\{match[2]}", text)
    return _MAY_BE_UNSEEN.sub(lambda match: match[0] if match[0] in kept else _visible(match[0]), marked)


def is_unseen(character: str) -> bool:
    """Whether a character has no shape of its own, and so may hide something or change what is around it."""
    return unicodedata.category(character) in _UNSEEN and character not in _JOINERS


def _visible(character: str) -> str:
    return character.encode("unicode_escape").decode() if is_unseen(character) else character

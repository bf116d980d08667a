r"""Text from memory as data: nothing that it says can end the block it stands in, pass for a citation, or
drive a terminal.

A block has a first line and a last line. What stands between them is one line an entry, and ends with its
citation, `[M1]`. In an entry line breaks, control characters, bidi marks and what else cannot be seen are
written as escapes (`\n`, `\x1b`, `\u202e`). A backslash stands before `[M`, before what looks like it, and
before the two lines.
"""

import re

from memlog.query.context.invisible import json_escape, python_escape, shown

FIRST_LINE = "Relevant memories from this session:"
LAST_LINE = "Use these memories to provide contextually aware responses."

_LIKE_M = "MmМмΜϺᎷᗰᛖꓟⲘ𐊰𐌑ᴍᴹᵐₘℳⅯⅿⓂⓜＭｍ𝐌𝐦𝑀𝑚𝑴𝒎𝓂𝓜𝓶𝔐𝔪𝕄𝕞𝕸𝖒𝖬𝗆𝗠𝗺𝘔𝘮𝙈𝙢𝙼𝚖🄼🅜🅼"
"""M; the letters of other scripts that confusables.txt (UTS #39) has for it; its compatibility forms."""

_BRACKETS = "[［﹇【︻〔︹﹝〖︗〘〚⁅❲⟦⟬⦋⦍⦏⦗⸢⸤⹕⹗⌈⌊⎡⎢⎣「｢『"
"""Brackets that open, and have a straight side as `[` has."""

_COMBINED = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u302a-\u302f\ufe20-\ufe2f"
"""Marks that are drawn on the character before them, of any script."""

_CITATION = re.compile(rf"[{re.escape(_BRACKETS)}](?=[\s{_COMBINED}]*(?:M|[{_LIKE_M}][\s{_COMBINED}]*\d))")
_LINES = "|".join(re.escape(line[:-1]).replace(r"\ ", r"\s+") for line in (FIRST_LINE, LAST_LINE))
_MARKS = re.compile(rf"(?<!\\)(\\*+)({_CITATION.pattern}|(?i:{_LINES}))")


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
    return shown(marked, python_escape, kept=kept)


def shown_json(text: str) -> str:
    r"""JSON in which what cannot be seen stands as `\u202e`: the same to a program."""
    return shown(text, json_escape)


def marked_json(text: str) -> str:
    r"""JSON in which no text reads as a citation: `[M1]` in it is `\u005bM1]`, the same to a program."""
    return _CITATION.sub(lambda match: json_escape(match[0]), text)

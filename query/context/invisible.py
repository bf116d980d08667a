"""Invisible characters, which may hide text or change how the text around them looks."""

import re
from collections.abc import Callable

from memlog.eventlog.unseen import is_unseen

_PICTURE = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935"
    "\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f004-\U0001faff]"
)
_LOOK = "\ufe0f?[\U0001f3fb-\U0001f3ff]?"
_EMOJI = rf"{_PICTURE}(?=[\ufe0f\u200d]){_LOOK}(?:\u200d{_PICTURE}{_LOOK})*|[#*0-9]\ufe0f\u20e3"
"""Pictures that are joined into one by U+200D, and signs that U+FE0F makes pictures. Nothing but pictures
stands in it, so it hides nothing. (UTS #51, 1.4.9; flags of regions are written with tags, and tags may hide
text.)"""

_IN_ARABIC = "(?<=[\u0620-\u064a\u0671-\u06d3])\u200c(?=[\u0620-\u064a\u0671-\u06d3])"
"""Persian and its neighbours spell words with U+200C between letters."""

_PLAIN = r" -~\xa1-\xac\xae-\u034e\u0350-\u05ff"
"""Characters with a shape of their own, of the scripts that come first."""

_RUN = rf"[{_PLAIN}]{{1,65536}}(?![\ufe0f\u200d])"
"""Plain characters, without one that begins an emoji. The search for an odd character in 16 MiB of them takes
0.5 s, during which no other thread runs; by runs it takes 0.02 s."""

_KEPT_OR_ODD = re.compile(rf"({_EMOJI}|{_IN_ARABIC}|{_RUN})|[^{_PLAIN}]")
"""By what it is not: a range up to the last character takes `re` 6 ms to compile, this 0.6."""


def shown(text: str, escape: Callable[[str], str], *, kept: str = "") -> str:
    """`text` with invisible characters as escapes, except in the spelling of words and emoji.

    kept: characters that stay as they are.
    """
    return _KEPT_OR_ODD.sub(
        lambda match: (
            match[0] if match[1] or match[0] in kept or not is_unseen(match[0]) else escape(match[0])
        ),
        text,
    )


def python_escape(character: str) -> str:
    r"""`\u202e`, `\n`, `\U000e0041`: as Python writes it."""
    return character.encode("unicode_escape").decode()


def json_escape(character: str) -> str:
    r"""`\u202e`, `\udb40\udc41`: as JSON writes it."""
    data = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{data[place : place + 2].hex()}" for place in range(0, len(data), 2))

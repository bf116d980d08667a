"""Letters as the full text has them: in one case and form, without what stands above or below them."""

import re
import unicodedata
from functools import cache

from memlog.eventlog.text import nfkc

# In NFKC ﷺ is 18 characters, and a text of nothing else 18 times as long.
_LONGEST_GROWTH = 3
_LONGEST_FORM = 18

_INVISIBLE = dict.fromkeys((0x00AD, 0x034F, 0x061C, *range(0x200B, 0x2010), *range(0x2060, 0x2065), 0xFEFF))
"""Soft hyphens, joiners and marks of direction: within a word, they do not end it."""

_INDIC = (0x0900, 0x0980, 0x0A00, 0x0A80, 0x0B00, 0x0B80, 0x0C00, 0x0C80, 0x0D00)
"""Blocks with one layout: a letter has the same offset in each."""

_CHANDRABINDU, _ANUSVARA, _NUKTA, _VIRAMA = 0x01, 0x02, 0x3C, 0x4D
_NASALS = (0x19, 0x1E, 0x23, 0x28, 0x2E)

_EMOJI = (*range(0x2600, 0x27C0), *range(0x2B00, 0x2C00), *range(0x1F000, 0x1FB00))
"""Blocks of signs that are words of their own, whatever a Python knows of them."""


def compatible(text: str) -> str:
    """`text` in NFKC without invisible characters; as it is, where most of its characters would become
    several."""
    found = nfkc(text).translate(_INVISIBLE)
    return found if len(found) <= _LONGEST_GROWTH * len(text) + _LONGEST_FORM else text


def folded(text: str) -> str:
    """`text` as the index has its letters."""
    return plain(compatible(text).casefold())


def plain(folded: str) -> str:
    """A case-folded text in NFKC without marks on its letters, with an emoji as a word.

    Letters that several ways of writing have for one sound are one: ک and ك, ی and ي, हिन्दी and हिंदी.
    """
    if folded.isascii():
        return folded
    return _nasals().sub(_as_anusvara, folded).translate(_plain_letters())


@cache
def _nasals() -> re.Pattern[str]:
    """A nasal letter before another consonant, which may be written as a dot above."""
    return re.compile(
        "|".join(
            f"[{''.join(chr(block + nasal) for nasal in _NASALS)}]{chr(block + _VIRAMA)}"
            f"(?=[{chr(block + 0x15)}-{chr(block + 0x39)}])"
            for block in _INDIC
        )
    )


def _as_anusvara(nasal: re.Match[str]) -> str:
    return chr(ord(nasal[0][0]) & ~0x7F | _ANUSVARA)


def _emoji_word(code: int) -> str:
    """A word of letters alone: digits would make it a name with parts."""
    return " emoji" + "".join(chr(ord("a") + int(digit, 16)) for digit in f"{code:x}") + " "


@cache
def _plain_letters() -> dict[int, int | str | None]:
    """What is left of letters that unicode61 leaves as they are, and of what must not reach it."""
    points = (*range(0x0591, 0x05C8), 0x0640, *range(0x064B, 0x0653), 0x0670)  # Hebrew, Arabic
    combining = (*range(0x0300, 0x0370), *range(0xFE00, 0xFE10))
    private = (0, *range(0xE000, 0xF900))
    greek = (*range(0x0370, 0x0400), *range(0x1F00, 0x2000))
    return {
        **dict.fromkeys((*points, *combining)),
        **dict.fromkeys(private, " "),
        **{code: unicodedata.normalize("NFD", chr(code))[0] for code in greek},
        **str.maketrans("ёѐѝđħıłøŧð", "ееиdhilotd"),
        **{ord("æ"): "ae", ord("œ"): "oe", ord("þ"): "th"},
        **str.maketrans("کیىۀەہة", "كييهههه"),
        **{block + _CHANDRABINDU: block + _ANUSVARA for block in _INDIC},
        **dict.fromkeys(block + _NUKTA for block in _INDIC),
        **{code: _emoji_word(code) for code in _EMOJI},
    }

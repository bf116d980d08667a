"""Letters as the full text has them: in one case and form, without what stands above or below them."""

import unicodedata
from functools import cache

from memlog.eventlog.text import nfkc

# In NFKC ﷺ is 18 characters, and a text of nothing else 18 times as long.
_LONGEST_GROWTH = 3
_LONGEST_FORM = 18


def compatible(text: str) -> str:
    """`text` in NFKC; as it is, where most of its characters would become several."""
    found = nfkc(text)
    return found if len(found) <= _LONGEST_GROWTH * len(text) + _LONGEST_FORM else text


def folded(text: str) -> str:
    """`text` as the index has its letters."""
    return plain(compatible(text).casefold())


def plain(folded: str) -> str:
    """A case-folded text in NFKC without marks on its letters."""
    return folded if folded.isascii() else folded.translate(_plain_letters())


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
    }

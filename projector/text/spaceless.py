"""Scripts without spaces between words: Chinese, Japanese, Korean; Thai, Lao, Burmese, Khmer."""

import re
from collections.abc import Iterator
from functools import cache

CJK_CHARACTERS = (
    "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
)

SOUTH_EAST_ASIAN = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f\u19e0-\u19ff"
)
"""Thai, Lao, Burmese, Khmer: letters, vowels and tones."""


@cache
def spaceless() -> re.Pattern[str]:
    """Runs of such a script."""
    return re.compile(f"[{CJK_CHARACTERS}]+|[{SOUTH_EAST_ASIAN}]+")


@cache
def _south_east_asian() -> re.Pattern[str]:
    return re.compile(f"[{SOUTH_EAST_ASIAN}]")


def is_spaceless(token: str) -> bool:
    """Whether `token` is of a script without spaces, which is indexed in pairs or triples of characters."""
    return not token.isascii() and spaceless().fullmatch(token) is not None


def gram_length(run: str) -> int:
    """Characters of the parts in which a run of a script without spaces is indexed.

    Pairs of Chinese, Japanese and Korean; triples of Thai and its neighbours, which have fewer letters. Of
    XQuAD's questions in Thai, triples find 99.7 % in the first ten, pairs 97.2 %.
    """
    return 3 if _south_east_asian().match(run) else 2


def is_cjk(token: str) -> bool:
    """Whether `token` is Chinese, Japanese or Korean."""
    return is_spaceless(token) and not _south_east_asian().match(token)


def grams(run: str, *, is_whole: bool = False) -> Iterator[str]:
    """Overlapping parts of a run, of `gram_length` characters each.

    is_whole: whether what is left at the end comes behind them.
    """
    size = gram_length(run)
    return (run[index : index + size] for index in range(len(run) if is_whole else len(run) - size + 1))

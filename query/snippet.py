"""The piece of a text that is shown with a hit."""

import re
from collections.abc import Sequence

LENGTH = 200
"""At most, in characters, the `…` at a cut included."""

_LEAD = 60


def snippet(text: str, words: Sequence[str], start: int = 0, end: int | None = None) -> str:
    """At most 200 characters of `text` between `start` and `end`, around the first of `words` there."""
    if len(text) <= LENGTH:
        return text
    passage = text[start:end]
    match = _first(words, passage)
    begin = start if match <= LENGTH - _LEAD else start + match - _LEAD
    stop = min(begin + LENGTH - 2, start + len(passage))
    return ("…" if begin > 0 else "") + text[begin:stop] + ("…" if stop < len(text) else "")


def _first(words: Sequence[str], text: str) -> int:
    if not words:
        return 0
    match = re.search("|".join(map(re.escape, words)), text, re.IGNORECASE)
    return match.start() if match else 0

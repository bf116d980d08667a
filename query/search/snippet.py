"""The piece of a text that is shown with a hit."""

from memlog.projector.text.marks import Marks, first_place

LENGTH = 200
"""At most, in characters, the `…` at a cut included."""

_LEAD = 60


def snippet(text: str, marks: Marks, start: int = 0, end: int | None = None) -> str:
    """At most 200 characters of `text` between `start` and `end`, around the first of `marks` there."""
    if len(text) <= LENGTH:
        return text
    passage = text[start:end]
    match = first_place(passage, marks)
    begin = start if match <= LENGTH - _LEAD else start + match - _LEAD
    stop = min(begin + LENGTH - 2, start + len(passage))
    return ("…" if begin > 0 else "") + text[begin:stop] + ("…" if stop < len(text) else "")

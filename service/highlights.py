"""The words of a text that a search matched."""

from collections.abc import Callable

from memlog.projector.text.marks import Marks, marked_places
from memlog.service.requests.reads import Search

Highlighter = Callable[[str], list[tuple[int, int]]]
"""Returns the parts of a text that a search matched, as (start, end) in characters, in order."""


def highlighter(asked: Search) -> Highlighter:
    """Make the highlighter of a search; where only meaning takes part, no word is why a hit was found."""
    marks = Marks() if asked.mode == "vector" else asked.question.marks
    return lambda text: marked_places(text, marks)

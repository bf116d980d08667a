"""The words of a text that a search matched."""

from collections.abc import Callable

from memlog.projector.text.marks import marked_places
from memlog.query.search.fts_query import parse, raw

Highlighter = Callable[[str], list[tuple[int, int]]]
"""Returns the parts of a text that a search matched, as (start, end) in characters, in order."""


def highlighter(question: str, *, is_raw: bool) -> Highlighter:
    """Make the highlighter of a search for `question`; is_raw: it is in FTS5's own syntax."""
    marks = (raw if is_raw else parse)(question).marks
    return lambda text: marked_places(text, marks)

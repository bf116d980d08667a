"""Tells memories that always hold by their words: health, and what must not be.

Contexts give them whatever the prompt is (`query.context.always`); the read model has the answer beside each
memory, since to look for it in 5,000 memories takes as long as a search.
"""

from enum import IntFlag
from functools import cache

from memlog.eventlog.categories import PRIVATE_CATEGORIES
from memlog.projector.text import language_files
from memlog.projector.text.phrases import WORD, Phrases, folded, spaced

_PREFERENCES = frozenset(["preference", "preferences"])
"""Categories that say the same as the kind."""

_READ = 4000
"""Characters of a memory that are looked at: a longer one is no line of a context."""


class Holds(IntFlag):
    """As what a memory always holds; an allergy is health, too."""

    ALLERGY = 1
    HEALTH = 2
    OTHER = 4


def holds(title: str | None, content: str, kind: str, category: str) -> Holds:
    """As what a memory always holds; as nothing where its category is private."""
    if category.casefold() in PRIVATE_CATEGORIES:
        return Holds(0)
    said = by_words(content if title is None or content.startswith(title) else f"{title}\n{content}")
    is_preference = kind == "preference" or category.casefold() in _PREFERENCES
    return said | Holds.OTHER if is_preference else said


def by_words(text: str) -> Holds:
    """By what words a text always holds."""
    words = WORD.findall(spaced(folded(text[:_READ])))
    # Most texts have none, which is known in a third of the time.
    likely = _phrases("allergies", "health", "prohibitions").places(words)
    said = Holds(0)
    if any(_phrases("allergies").length_at(words, place) for place in likely):
        said |= Holds.ALLERGY | Holds.HEALTH
    elif any(_phrases("health").length_at(words, place) for place in likely):
        said |= Holds.HEALTH
    forbids = {place for place in likely if _phrases("prohibitions").length_at(words, place)}
    for place in _phrases("idioms").places(words) if forbids else ():
        forbids.difference_update(range(place, place + _phrases("idioms").length_at(words, place)))
    return said | Holds.OTHER if forbids else said


@cache
def _phrases(*members: str) -> Phrases:
    """The phrases of members of `AlwaysWords` in all languages."""
    languages = language_files.languages("always").values()
    words = (getattr(each.always, name) for each in languages for name in members)
    return Phrases(phrase for text in words for phrase in language_files.phrases(spaced(text)))

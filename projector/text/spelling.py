"""English words that Britons and Americans spell in two ways: a question finds both, a topic has one."""

import re
from functools import cache

from memlog.projector.text.language_files import languages, pairs
from memlog.projector.text.stemming import ENGLISH


@cache
def _spellings() -> tuple[re.Pattern[str], dict[str, str], dict[str, str]]:
    """The beginnings of the words of a family; their American spelling, and the other one of each."""
    american = pairs(languages("english")[ENGLISH].english.american)
    other = american | {american: british for british, american in american.items()}
    return re.compile("|".join(other)), american, other


def american(word: str) -> str:
    """`word`, folded, as Americans spell it."""
    begins, american, _ = _spellings()
    found = begins.match(word)
    return word if found is None else american.get(found[0], found[0]) + word[found.end() :]


def other_spelling(word: str) -> str | None:
    """`word`, folded, as it is spelled across the ocean: `colours` as `colors`; None if there is no other."""
    begins, _, other = _spellings()
    found = begins.match(word)
    return None if found is None else other[found[0]] + word[found.end() :]

"""English words that Britons and Americans spell in two ways: a question finds both, a topic has one."""

import re
from functools import cache

from memlog.projector.text.language_files import languages, pairs
from memlog.projector.text.stemming import ENGLISH


@cache
def _american() -> dict[str, str]:
    """What the words of a family begin with, as Britons spell it, with the American spelling."""
    return pairs(languages("english")[ENGLISH].english.american)


@cache
def _other() -> dict[str, str]:
    return _american() | {american: british for british, american in _american().items()}


@cache
def _begins() -> re.Pattern[str]:
    """Compiled when it is first needed; see `memlog.projector.text.analyzer`."""
    return re.compile("|".join(_other()))


def american(word: str) -> str:
    """`word`, folded, as Americans spell it."""
    found = _begins().match(word)
    return word if found is None else _american().get(found[0], found[0]) + word[found.end() :]


def other_spelling(word: str) -> str | None:
    """`word`, folded, as it is spelled across the ocean: `colours` as `colors`; None where there is none."""
    found = _begins().match(word)
    return None if found is None else _other()[found[0]] + word[found.end() :]

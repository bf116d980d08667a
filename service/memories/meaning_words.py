"""Words that change the meaning of a sentence, and words that do not, from the language files.

A word that changes the meaning (a number, a day, a negation, a limit, a possessive) keeps two memories apart,
whatever language they are in.
"""

import re
from collections.abc import Collection
from functools import cache

from memlog.projector.text.analyzer import is_cjk
from memlog.projector.text.language_files import languages


def turns(word: str) -> bool:
    """Whether `word`, in lower case, changes the meaning of a sentence."""
    words, begins = _turning()
    return word in words or word.startswith(begins) or _turning_endings().fullmatch(word) is not None


def fills(word: str) -> bool:
    """Whether `word`, or a run of Chinese characters, can be left out of a sentence."""
    return word in _words("filling") or _filling_run().fullmatch(word) is not None


def joins(word: str) -> bool:
    """Whether the parts on both sides of `word` may change places."""
    return word in _words("joints")


def verb_stem(word: str) -> str | None:
    """A stem that the tenses of a verb share where Snowball has several; None for most words."""
    if word in _irregular():
        return _irregular()[word]
    found = _verb().fullmatch(word)
    return found["stem"] if found else None


def _tables(name: str) -> list[str]:
    """One table of all languages, with е for ё as in tokens."""
    return [getattr(language.memories, name).replace("ё", "е") for language in languages("memories").values()]


@cache
def _words(name: str) -> Collection[str]:
    """The words of one table of all languages: in order, and quick to look up."""
    return dict.fromkeys(" ".join(_tables(name)).split())


@cache
def _turning() -> tuple[frozenset[str], tuple[str, ...]]:
    listed = _words("turning")
    begins = tuple(word[:-1] for word in listed if word.endswith("*"))
    return frozenset(word for word in listed if not word.endswith("*")), begins


@cache
def _turning_endings() -> re.Pattern[str]:
    endings = (re.escape(ending).replace(r"\*", r"\w{1,20}") for ending in _words("turning_endings"))
    return re.compile(f".+(?:{'|'.join(endings)})")


@cache
def _irregular() -> dict[str, str]:
    verbs = [verb.split("/") for verb in _words("irregular_verbs")]
    return {form: verb[0] for verb in verbs for form in verb}


@cache
def _verb() -> re.Pattern[str]:
    """Verbs whose tenses have several Snowball stems: использует, использовал; maksetaan, maksettiin."""
    endings = "|".join(filter(None, _tables("tense_endings")))
    return re.compile(rf"(?P<stem>[^\W\d_]{{3,}}?)(?:{endings})")


@cache
def _filling_run() -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(filter(is_cjk, _words('filling')))})*")

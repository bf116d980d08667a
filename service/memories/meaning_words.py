"""Words that turn what a sentence says, and words that leave it as it is, from the files of languages.

A word that turns a sentence (a number, a day, a negation, a limit, what makes one thing another's) tells two
memories apart, whatever else is alike, and whatever language the memories are in.
"""

import re
from functools import cache

from memlog.projector.text.analyzer import is_cjk
from memlog.projector.text.language_files import languages


def turns(word: str) -> bool:
    """Whether `word`, in lower case, turns what a sentence says."""
    words, begins = _turning()
    return word in words or word.startswith(begins) or _turning_endings().fullmatch(word) is not None


def fills(word: str) -> bool:
    """Whether `word`, or a run of Chinese characters, leaves what a sentence says as it is."""
    return word in _filling() or _filling_run().fullmatch(word) is not None


def joins(word: str) -> bool:
    """Whether what stands on both sides of `word` may be exchanged."""
    return word in _words("joints")


def verb_stem(word: str) -> str | None:
    """What the tenses of a verb have in common beyond the stem of a language; None for most words."""
    if word in _irregular():
        return _irregular()[word]
    found = _verb().fullmatch(word)
    return found["stem"] if found else None


def sound_alike(one: str, other: str) -> bool:
    """Whether two Chinese characters are often typed for one another."""
    return any(one in alike and other in alike for alike in _words("same_sound"))


def _tables(name: str) -> list[str]:
    """One table of all languages, with е for ё as in the words that are compared."""
    return [getattr(language.memories, name).replace("ё", "е") for language in languages("memories").values()]


@cache
def _words(name: str) -> list[str]:
    return " ".join(_tables(name)).split()


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
    """A verb whose tenses Snowball's stems tell apart: использует, использовал; maksetaan, maksettiin."""
    endings = "|".join(filter(None, _tables("tense_endings")))
    return re.compile(rf"(?P<stem>[^\W\d_]{{3,}}?)(?:{endings})")


@cache
def _filling() -> frozenset[str]:
    return frozenset(_words("filling"))


@cache
def _filling_run() -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(filter(is_cjk, _words('filling')))})*")

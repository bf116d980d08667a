"""Words that change the meaning of a sentence, and words that do not, from the language files.

A word that changes the meaning (a number, a day, a negation, a limit, a possessive) keeps two memories apart,
whatever language they are in.
"""

import re
from collections.abc import Collection
from functools import cache

from memlog.projector.text.language_files import languages
from memlog.projector.text.spaceless import is_cjk


def turns(word: str) -> bool:
    """Whether `word`, in lower case, changes the meaning of a sentence."""
    words, begins = _turning()
    return (
        word in words
        or negates(word)
        or word.startswith(begins)
        or _turning_endings().fullmatch(word) is not None
    )


def understood() -> list[str]:
    """The languages of which memlog knows the words that do not change the meaning of a sentence."""
    return [name for name, language in languages("memories").items() if language.memories.filling]


def is_certain(text: str, language: str) -> bool:
    """Whether a text in lower case has what tells its language from all others in the same script."""
    words = languages("memories")[language].memories
    return bool(re.search(words.certain, text)) and not (words.foreign and re.search(words.foreign, text))


def negates(word: str) -> bool:
    """Whether `word`, in lower case, changes what the word behind it says."""
    return word in _words("negating") or word.endswith("n't")


def fills(word: str, language: str | None) -> bool:
    """Whether `word`, or a run of Chinese characters, can be left out of a sentence of a language."""
    if language is None:
        return False
    return word in _filling(language) or _filling_run(language).fullmatch(word) is not None


def joins(word: str) -> bool:
    """Whether the parts on both sides of `word` may change places."""
    return word in _words("joints")


@cache
def _words(name: str) -> Collection[str]:
    """The words of one table of all languages, with е for ё as in tokens: in order, and quick to look up."""
    tables = (getattr(language.memories, name) for language in languages("memories").values())
    return dict.fromkeys(" ".join(tables).replace("ё", "е").split())


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
def _filling(language: str) -> frozenset[str]:
    known = languages("memories").get(language)  # None of one that memlog has no words of
    return frozenset() if known is None else frozenset(known.memories.filling.replace("ё", "е").split())


@cache
def _filling_run(language: str) -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(filter(is_cjk, _filling(language)))})*")

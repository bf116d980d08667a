"""Makes full-text expressions of questions. Input is never FTS5 syntax: every word is quoted."""

import re
from collections.abc import Sequence
from functools import cached_property

import msgspec

from memlog.eventlog.text import break_before
from memlog.projector.text.analyzer import Word, question_names, question_words, written_words
from memlog.projector.text.marks import Marks, marks_of
from memlog.projector.text.spaceless import gram_length, is_spaceless
from memlog.projector.text.spelling import other_spelling

MAX_WORDS = 64
"""Different words that are searched for: more make a search slow and no better."""

LONGEST_QUESTION = 100_000
"""Characters of a question that are read: analysing so many takes 0.2 s of CPU time."""

_PHRASE = re.compile(r'"([^"]+)"')
_PREFIX_LENGTH = 3


class FtsQuery(msgspec.Struct, frozen=True, dict=True):
    """A question for the full text.

    phrases: the texts in double quotes.
    words: the rest, without stop words if other words remain.
    names: the words of each path, address, version or code in the rest, which must be adjacent.
    forms: for each word an expression for all its forms.
    left_out: the number of different words beyond `MAX_WORDS`.
    is_cut: whether it was longer than `LONGEST_QUESTION`.
    fts5: a given expression in FTS5's own syntax.
    """

    phrases: tuple[str, ...]
    words: tuple[str, ...]
    names: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    left_out: int = 0
    is_cut: bool = False
    fts5: str | None = None

    @property
    def is_raw(self) -> bool:
        """Whether it was given in FTS5's own syntax."""
        return self.fts5 is not None

    @cached_property
    def marks(self) -> Marks:
        """The marks of the words in a text that was found."""
        return marks_of([*self.words, *(word for phrase in self.phrases for word in phrase.split())])

    @property
    def terms(self) -> list[str]:
        """Each phrase, name and word as an expression of its own."""
        if self.fts5 is not None:
            return [self.fts5]
        return [*(f'"{phrase}"' for phrase in self.phrases), *map(_prefix, self.names), *self.forms]

    @property
    def expression(self) -> str | None:
        """All terms in one, in FTS5's syntax; None without words."""
        return " OR ".join(self.terms) or None


def parse(text: str) -> FtsQuery:
    """The words and phrases of the beginning of `text`, analysed like the index."""
    is_cut = len(text) > LONGEST_QUESTION
    text = text[: break_before(text, 0, LONGEST_QUESTION)] if is_cut else text
    phrases = [written_words(phrase) for phrase in _PHRASE.findall(text)]
    rest = _PHRASE.sub(" ", text)
    words = question_words(rest)
    names = question_names(rest)
    telling = [word for word in words if not word.is_stop]
    kept = telling if telling or any(phrases) else words
    return FtsQuery(
        phrases=tuple(map(_joined, filter(None, phrases)))[:MAX_WORDS],
        words=tuple(word.written for word in kept[:MAX_WORDS]),
        names=tuple(dict.fromkeys(map(_joined, names)))[:MAX_WORDS],
        forms=tuple(dict.fromkeys(" OR ".join(_terms(word)) for word in kept[:MAX_WORDS])),
        left_out=sum(max(0, count - MAX_WORDS) for count in (len(kept), *map(len, [*phrases, *names]))),
        is_cut=is_cut,
    )


def _joined(words: Sequence[str]) -> str:
    """Words that must be adjacent. FTS5 looks up each word of a phrase."""
    return " ".join(words[:MAX_WORDS])


def raw(text: str) -> FtsQuery:
    """`text` as FTS5's own syntax; its words only place the snippet."""
    return FtsQuery(phrases=(), words=parse(text).words, fts5=text)


def _terms(word: Word) -> list[str]:
    """The terms that find a word: itself, and words with its beginning, or with its stem in a known language;
    in English also its other spelling. In a script without spaces a pair or a triple, or what begins so.
    """
    stems = [f'"{stem}"' for stem in word.stems]
    if (other := other_spelling(word.written)) is not None:
        stems.append(f'"{other}"')
    if is_spaceless(word.written):
        is_whole = len(word.written) >= gram_length(word.written)
        return [f'"{word.written}"' if is_whole else f'"{word.written}"*']
    if word.stem:
        # Words with this beginning have this stem, too. Searching for both was measured worse.
        return [f'"{word.stem}"*', *stems]
    prefix = [f'"{word.written}"*'] if len(word.written) >= _PREFIX_LENGTH else []
    return [f'"{word.written}"', *prefix, *stems]


def _prefix(name: str) -> str:
    """A name and its continuations; 1.20 is no continuation of 1.2."""
    return f'"{name}"' if name[-1].isdigit() else f'"{name}"*'

"""What a person typed, as a full-text expression. Input is never FTS5 syntax: every word is quoted."""

import re
from collections.abc import Sequence
from functools import cached_property

import msgspec

from memlog.eventlog.text import break_before
from memlog.projector.text.analyzer import Word, is_cjk, question_names, question_words, written_words
from memlog.projector.text.marks import Marks, marks_of
from memlog.projector.text.spelling import other_spelling

MAX_WORDS = 64
"""More different words than this make a search slow and no better; the search says when it left some out."""

LONGEST_QUESTION = 100_000
"""Characters of a question that are looked at: to analyse as many takes 0.2 s of CPU time."""

_PHRASE = re.compile(r'"([^"]+)"')
_PREFIX_LENGTH = 3


class FtsQuery(msgspec.Struct, frozen=True, dict=True):
    """A question as the full text is asked it.

    phrases: what stood in double quotes.
    words: the rest, without stop words where anything remains.
    forms: the same, each as an expression for all its forms.
    names: the words of each path, address, version or code among the rest, to be found next to each other.
    left_out: how many different words were too many.
    is_cut: whether it was longer than what is looked at.
    fts5: an expression in FTS5's own syntax, as it was given.
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
        """What shows in a text why it was found."""
        return marks_of([*self.words, *(word for phrase in self.phrases for word in phrase.split())])

    @property
    def terms(self) -> list[str]:
        """Each phrase, name and word as an expression of its own."""
        if self.fts5 is not None:
            return [self.fts5]
        return [*(f'"{phrase}"' for phrase in self.phrases), *map(_prefix, self.names), *self.forms]

    @property
    def expression(self) -> str | None:
        """All terms in one, in FTS5's syntax; None where there is no word to look for."""
        return " OR ".join(self.terms) or None


def parse(text: str) -> FtsQuery:
    """The words and phrases of the beginning of `text`, analysed as the index is."""
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
    """Words that are asked for next to each other. FTS5 looks up each word of a phrase."""
    return " ".join(words[:MAX_WORDS])


def raw(text: str) -> FtsQuery:
    """`text` as FTS5's own syntax; its words serve to find the place of a snippet."""
    return FtsQuery(phrases=(), words=parse(text).words, fts5=text)


def _terms(word: Word) -> list[str]:
    """What finds a word: itself and what begins with it, or with its stem where its language is known; in
    English also its other spelling.

    Of Chinese, Japanese and Korean a pair, or one character's pairs.
    """
    stems = [f'"{stem}"' for stem in word.stems]
    if (other := other_spelling(word.written)) is not None:
        stems.append(f'"{other}"')
    if is_cjk(word.written):
        return [f'"{word.written}"' if len(word.written) > 1 else f'"{word.written}"*']
    if word.stem:
        # All that begins with the word begins with its stem. To ask for both was measured worse.
        return [f'"{word.stem}"*', *stems]
    prefix = [f'"{word.written}"*'] if len(word.written) >= _PREFIX_LENGTH else []
    return [f'"{word.written}"', *prefix, *stems]


def _prefix(name: str) -> str:
    """A name, and those that go on where it ends: but 1.2 is not the beginning of 1.20."""
    return f'"{name}"' if name[-1].isdigit() else f'"{name}"*'

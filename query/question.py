"""What a person typed, as a full-text expression. Input is never FTS5 syntax: every word is quoted."""

import re
from dataclasses import dataclass

from memlog.projector.analysis import analysed_query, is_cjk

MAX_WORDS = 64
"""More different words than this make a search slow and no better; the search says when it left some out."""

_PHRASE = re.compile(r'"([^"]+)"')
_WORD = re.compile(r"[^\W_]+")
_PREFIX_LENGTH = 3

# The words that carry the grammar of an English question, not its subject.
STOP_WORDS = frozenset(
    """
    a about above after again against all am an and any are aren as at be because been before being below
    between both but by can could couldn d did didn do does doesn doing don down during each few for from
    further had hadn has hasn have haven having he her here hers herself him himself his how i if in into is
    isn it its itself just ll m me might more most must my myself no nor not now o of off on once only or
    other our ours ourselves out over own re s same shall she should shouldn so some such t than that the
    their theirs them themselves then there these they this those through to too under until up ve very was
    wasn we were weren what when where which while who whom whose why will with won would wouldn you your
    yours yourself yourselves
    """.split()
)


@dataclass(frozen=True)
class Question:
    """A question as the full text is asked it.

    phrases: what stood in double quotes.
    words: the rest, without stop words where anything remains.
    left_out: how many different words were too many.
    fts5: an expression in FTS5's own syntax, as it was given.
    """

    phrases: tuple[str, ...]
    words: tuple[str, ...]
    left_out: int = 0
    fts5: str | None = None

    @property
    def is_raw(self) -> bool:
        """Whether it was given in FTS5's own syntax."""
        return self.fts5 is not None

    @property
    def terms(self) -> list[str]:
        """Each phrase and word in FTS5's syntax."""
        if self.fts5 is not None:
            return [self.fts5]
        return [*(f'"{phrase}"' for phrase in self.phrases), *map(_term, self.words)]

    @property
    def expression(self) -> str | None:
        """All terms in one; None where there is no word to look for."""
        return " OR ".join(self.terms) or None


def parse(text: str) -> Question:
    """The words and phrases of `text`, analysed as the index is."""
    phrases = [" ".join(_words(phrase)) for phrase in _PHRASE.findall(text)]
    words = list(dict.fromkeys(_words(_PHRASE.sub(" ", text))))
    telling = [word for word in words if word not in STOP_WORDS]
    kept = telling if telling or any(phrases) else words
    return Question(
        phrases=tuple(phrase for phrase in phrases if phrase)[:MAX_WORDS],
        words=tuple(kept[:MAX_WORDS]),
        left_out=max(0, len(kept) - MAX_WORDS),
    )


def raw(text: str) -> Question:
    """`text` as FTS5's own syntax; its words serve to find the place of a snippet."""
    return Question(phrases=(), words=parse(text).words, fts5=text)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(analysed_query(text))]


def _term(word: str) -> str:
    """A word, and what begins with it; of Chinese, Japanese and Korean a pair, or one character's pairs."""
    if is_cjk(word):
        return f'"{word}"' if len(word) > 1 else f'"{word}"*'
    return f'"{word}" OR "{word}"*' if len(word) >= _PREFIX_LENGTH else f'"{word}"'

"""The request for a search. Separate from the other modules, which are imported only for a search."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import force_setattr, replace

from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Reads
from memlog.eventlog.settings import DEFAULTS, Fusion, Hits
from memlog.eventlog.settings import Mode as Mode
from memlog.eventlog.text import find_break_before
from memlog.projector.text.analyzer import (
    Word,
    find_names_in_question,
    split_into_written_words,
    split_question_into_words,
)
from memlog.projector.text.marks import Marks, make_marks
from memlog.projector.text.tokens import gram_length, is_spaceless, other_spelling
from memlog.query.conversations import MAX_NEIGHBOURS
from memlog.query.filters import Filters
from memlog.query.request import ChatField, OfText, Request, Synced, Unit

# docs/search.md has the figures, and those of conversations 6 to 10.

Weight = Annotated[float, Meta(ge=0, le=1000)]

_POOLS: dict[Fusion, tuple[float, float]] = {"rrf": (1, 1.5), "convex": (4, 4)}
"""The candidates by words and by vectors before the cut, as multiples of the depth. A sum of scores needs
more: a missing entry adds nothing."""

_VECTORS_ALONE = 2.0
"""The multiple for a search by vectors alone: 1.5 costs it .01 of R@10, and costs a hybrid search nothing."""


class Ranking(Request, frozen=True, kw_only=True):
    """How the two sides of a search are ranked and fused.

    Raises:
        BadInput: a value is out of range, or both weights are 0.
    """

    fusion: Annotated[
        Fusion,
        "Join the sides by rank (rrf), or by the sum of their scores, scaled to 0 to 1 (convex).",
    ] = "rrf"
    rank_constant: Annotated[
        Weight,
        "k of reciprocal rank fusion: how little it matters to be first rather than second.",
    ] = 10.0
    text_weight: Annotated[Weight, "How much words count."] = 1.0
    vector_weight: Annotated[Weight, "How much meaning counts."] = 0.5
    depth: Annotated[
        Hits,
        "Candidates of each side, at least as many as hits; four times as many with convex.",
    ] = DEFAULTS.search_depth
    context: Annotated[bool, "Whether the neighbours of a message count for it."] = True
    priors: Annotated[
        bool,
        "Whether length, a speaker or topic that the text names, and being a question count.",
    ] = True
    salience: Annotated[bool, "Whether the present relevance of memories counts."] = True

    def __post_init__(self) -> None:
        """Reject two weights of 0."""
        super().__post_init__()
        if not (self.text_weight or self.vector_weight):
            raise BadInput("text_weight and vector_weight are both 0", hint="set at least one above 0")

    def text_pool(self, k: int) -> int:
        """Return the number of candidates that full text must find for `k` hits."""
        return int(_POOLS[self.fusion][0] * max(self.depth, k))

    def vector_pool(self, k: int, *, alone: bool) -> int:
        """Return the number of candidates that the vectors must find for `k` hits.

        alone: whether only vectors are searched.
        """
        times = max(_POOLS[self.fusion][1], _VECTORS_ALONE if alone else 0)
        return int(times * max(self.depth, k))

    def cut(self, k: int) -> int:
        """Return the number of candidates that each side contributes for `k` hits."""
        return max(self.depth, k) if self.fusion == "rrf" else self.text_pool(k)


class Search(OfText, frozen=True, kw_only=True, dict=True):
    """Search messages, memories and documents for `text`.

    Words match themselves, their other forms, and longer words that start with them; "double quotes" make a
    phrase. Hits with more of the words rank higher. A message can also be found by its neighbours in the
    conversation.

    Raises:
        BadInput: a value has the wrong type or is out of bounds, or FTS5 rejects a raw text.
        DatabaseError: the read model can neither be read nor rebuilt.
    """

    k: Annotated[Hits, "Hits at most."] = DEFAULTS.search_limit
    mode: Annotated[Mode, "Search by words (text), by meaning (vector), or by both (hybrid)."] = "hybrid"
    chat: Annotated[ChatField | None, "Only hits of this conversation."] = None
    filters: Annotated[Filters | Mapping[str, Any], Reads(Filters.of, wire=Filters), "What hits must be."] = (
        Filters()
    )
    ranking: Annotated[
        Ranking | Mapping[str, Any],
        Reads(Ranking.of, wire=Ranking),
        "How both sides are ranked and joined; the defaults measured best.",
    ] = Ranking()
    min_similarity: Annotated[
        Unit | None,
        "Leave out hits below this similarity, if they have a vector; by default search.min_similarity.",
    ] = None
    is_raw: Annotated[bool, "The text is in FTS5's own query syntax; only the full text is searched."] = False
    explain: Annotated[
        bool,
        "Tell how each side found each hit: rank, score, what neighbours and priors add.",
    ] = False
    expand: Annotated[
        int,
        Meta(ge=0, le=MAX_NEIGHBOURS, title="N"),
        (
            "Show each message with N others of its session on either side, each passage of a document with"
            " the text of N others."
        ),
    ] = 0
    sync: Synced = True

    def __post_init__(self) -> None:
        """Reject an empty text, and FTS5 syntax in a vector-only search."""
        super().__post_init__()
        if not self.text.strip():
            raise BadInput("text must not be empty", hint="enter the words to search for")
        if self.is_raw and self.mode == "vector":
            raise BadInput("is_raw cannot be combined with mode 'vector'", hint="omit one of them")
        if self.is_raw:
            force_setattr(self, "mode", "text")

    @cached_property
    def filters_with_chat(self) -> Filters:
        """The filters, including `chat` if given."""
        filters = Filters.of(self.filters)
        return filters if self.chat is None else replace(filters, chat=self.chat)

    @cached_property
    def ranking_settings(self) -> Ranking:
        """The ranking; `ranking` itself may be a mapping."""
        return Ranking.of(self.ranking)

    @cached_property
    def parsed_question(self) -> "FtsQuery":
        """The question, parsed for full-text search."""
        return wrap_query_in_fts_syntax(self.text) if self.is_raw else parse_query(self.text)


MAX_WORDS = 64
"""The most distinct words of a query: more make a search slower and no better."""

LONGEST_QUESTION = 100_000
"""The most characters of a question that are analysed; this many take 0.2 s of CPU time."""

_PHRASE = re.compile(r'"([^"]+)"')
_PREFIX_LENGTH = 3


class FtsQuery(msgspec.Struct, frozen=True, dict=True):
    """A full-text query.

    phrases: the texts in double quotes.
    words: the rest, without stop words unless nothing else would remain.
    names: paths, addresses, versions and codes in the rest, whose words must be adjacent.
    forms: for each word, an expression that matches all its forms.
    left_out: the number of distinct words beyond `MAX_WORDS`.
    is_cut: whether the question was longer than `LONGEST_QUESTION`.
    fts5: the expression, if it was given in FTS5's own syntax.
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
        """Whether the query was given in FTS5's own syntax."""
        return self.fts5 is not None

    @cached_property
    def marks(self) -> Marks:
        """The marks that highlight the words in a hit."""
        return make_marks([*self.words, *(word for phrase in self.phrases for word in phrase.split())])

    @property
    def terms(self) -> list[str]:
        """Each phrase, name and word as an FTS5 expression."""
        if self.fts5 is not None:
            return [self.fts5]
        # A name may continue, but 1.20 does not continue 1.2.
        names = (f'"{name}"' if name[-1].isdigit() else f'"{name}"*' for name in self.names)
        return [*(f'"{phrase}"' for phrase in self.phrases), *names, *self.forms]

    @property
    def expression(self) -> str | None:
        """All terms, joined by OR in FTS5's syntax, or None."""
        return " OR ".join(self.terms) or None


def parse_query(text: str) -> FtsQuery:
    """Parse the first `LONGEST_QUESTION` characters of `text` into a full-text query."""
    is_cut = len(text) > LONGEST_QUESTION
    phrases, rest = _split_off_phrases(text)
    kept = _choose_words(rest, phrases)
    names = find_names_in_question(rest)
    return FtsQuery(
        phrases=tuple(map(_join_phrase, filter(None, phrases)))[:MAX_WORDS],
        words=tuple(word.written for word in kept[:MAX_WORDS]),
        names=tuple(dict.fromkeys(map(_join_phrase, names)))[:MAX_WORDS],
        forms=tuple(dict.fromkeys(" OR ".join(_search_terms(word)) for word in kept[:MAX_WORDS])),
        left_out=sum(max(0, count - MAX_WORDS) for count in (len(kept), *map(len, [*phrases, *names]))),
        is_cut=is_cut,
    )


def find_query_words(text: str) -> tuple[str, ...]:
    """Return the `words` that `parse_query` finds in `text`."""
    phrases, rest = _split_off_phrases(text)
    return tuple(word.written for word in _choose_words(rest, phrases)[:MAX_WORDS])


def _split_off_phrases(text: str) -> tuple[list[list[str]], str]:
    """Return the words of each quoted phrase, and the rest of the first `LONGEST_QUESTION` characters."""
    if len(text) > LONGEST_QUESTION:
        text = text[: find_break_before(text, 0, LONGEST_QUESTION)]
    phrases = [split_into_written_words(phrase) for phrase in _PHRASE.findall(text)]
    return phrases, _PHRASE.sub(" ", text)


def _choose_words(text: str, phrases: list[list[str]]) -> list[Word]:
    """Return the words of `text` to search for: no stop words, unless there is nothing else."""
    words = split_question_into_words(text)
    telling = [word for word in words if not word.is_stop]
    return telling if telling or any(phrases) else words


def _join_phrase(words: Sequence[str]) -> str:
    """Join the first `MAX_WORDS` words of a phrase, since FTS5 looks up every one."""
    return " ".join(words[:MAX_WORDS])


def wrap_query_in_fts_syntax(text: str) -> FtsQuery:
    """Wrap a query in FTS5's own syntax; its parsed words serve only to place the snippet."""
    return FtsQuery(phrases=(), words=parse_query(text).words, fts5=text)


def _search_terms(word: Word) -> list[str]:
    """Return the terms that find a word.

    These are the word and its continuations or, in a known language, the continuations of its stem, plus any
    other spelling in English. In a script without spaces: its n-gram, or n-grams that start with it.
    """
    stems = [f'"{stem}"' for stem in word.stems]
    if (other := other_spelling(word.written)) is not None:
        stems.append(f'"{other}"')
    if is_spaceless(word.written):
        is_whole = len(word.written) >= gram_length(word.written)
        return [f'"{word.written}"' if is_whole else f'"{word.written}"*']
    if word.stem:
        # The prefix matches the word, too. Searching for both was measured worse.
        return [f'"{word.stem}"*', *stems]
    prefix = [f'"{word.written}"*'] if len(word.written) >= _PREFIX_LENGTH else []
    return [f'"{word.written}"', *prefix, *stems]

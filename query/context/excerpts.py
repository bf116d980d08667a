"""Cuts a passage to the sentences that say most about a question.

Measured on user-assistant chats with long answers (80 questions for facts, 2,000 tokens): at least one turn
with the answer in .912 of the contexts, in .775 without.
"""

import math
import re
from collections.abc import Sequence
from functools import cache

from memlog.projector.text.marks import Marks, marked_places
from memlog.query.context.fence import escaped
from memlog.query.context.token_counters import Counter, weight
from memlog.query.search.fts_query import FtsQuery

EXCERPT_TOKENS = 80
"""Tokens of an excerpt, about."""

_LONGEST = 20_000
"""Characters of a text that are searched for sentences; a passage has fewer."""

_SENTENCE = re.compile(
    r"(?:[^\n\r.!?。！？…।॥؟۔;]|[.!?…;](?![\s\"')\]]))*+(?:[.!?。！？…।॥؟۔;]+[\"')\]]*|[\n\r]|$)\s*"
)
_MOST = 8
"""Tokens of a character at most: `\\U000e0041`."""

_BESIDE = 0.5
"""The share of its score that a sentence gives the one behind it, which may be its answer."""

_CUT = "…"


class Excerpts:
    """Cuts texts for one question."""

    def __init__(self, question: FtsQuery, counter: Counter) -> None:
        self._marks = question.marks
        # As a context prints it: control characters are escapes.
        self._weight = cache(lambda text: weight(escaped(text), counter))

    def of(self, text: str) -> str:
        """The best sentences of `text`, in their order, with `…` where some were left out.

        A text of `EXCERPT_TOKENS` or of one sentence stays whole.
        """
        is_long = len(text) > _LONGEST
        if not is_long and self._weight(text) <= EXCERPT_TOKENS:
            return text
        text = f"{text[:_LONGEST]}{_CUT}" if is_long else text
        sentences = [part for match in _SENTENCE.finditer(text) for part in self._parts(match[0])]
        if not sentences:
            return text
        scores = _scores(sentences, self._marks)
        best = scores.index(max(scores))
        left, taken = float(EXCERPT_TOKENS), set[int]()
        # Sentences with equal scores: those nearest to the best one first.
        for number in sorted(range(len(sentences)), key=lambda each: (-scores[each], abs(each - best))):
            needed = self._weight(sentences[number])
            if needed <= left or not taken:
                taken.add(number)
                left -= needed
        return _joined(text, sentences, sorted(taken))

    def _parts(self, sentence: str) -> list[str]:
        """A sentence; one that is longer than an excerpt in pieces of half of one."""
        if not sentence.strip(_CUT).strip():
            return []
        # A token is a character of some scripts, and an escape is several tokens.
        weighs = self._weight(sentence) if len(sentence) > EXCERPT_TOKENS // _MOST else 0
        if weighs <= EXCERPT_TOKENS:
            return [sentence]
        length = max(1, int(len(sentence) / weighs * EXCERPT_TOKENS / 2))
        return re.findall(rf"(?s)\S.{{0,{length}}}(?=\s)\s*|\s*\S{{1,{length}}}\s*", sentence)


def _scores(sentences: Sequence[str], marks: Marks) -> list[float]:
    """Of each sentence how many of the question's words it has; one that few have counts more."""
    found = [
        {sentence[start:end].casefold() for start, end in marked_places(sentence, marks)}
        for sentence in sentences
    ]
    counts: dict[str, int] = {}
    for words in found:
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    own = [sum(math.log(1 + len(sentences) / counts[word]) for word in words) for words in found]
    return [score + _BESIDE * before for score, before in zip(own, [0.0, *own], strict=False)]


def _joined(text: str, sentences: Sequence[str], taken: Sequence[int]) -> str:
    parts, before = [], -1
    for number in taken:
        parts.append(f"{_CUT} " if number > before + 1 else "")
        parts.append(sentences[number])
        before = number
    joined = "".join(parts).strip()
    if joined.strip(_CUT).strip() == text.strip(_CUT).strip():
        return text
    return joined + (f" {_CUT}" if before < len(sentences) - 1 and not joined.endswith(_CUT) else "")

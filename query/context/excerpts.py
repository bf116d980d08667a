"""Cuts a passage to the sentences that say most about a question.

Measured on user-assistant chats with long answers (80 questions for facts, 2,000 tokens): at least one turn
with the answer in .912 of the contexts, in .775 without.
"""

import math
import re
from collections.abc import Sequence

from memlog.projector.text.marks import Marks, marked_places
from memlog.query.context.token_counters import Counter, weight
from memlog.query.search.fts_query import LONGEST_QUESTION, parse

EXCERPT_TOKENS = 80
"""Tokens of an excerpt, about."""

_LONGEST = 20_000
"""Characters of a text that are searched for sentences; a passage has fewer."""

_SENTENCE = re.compile(
    r"(?:[^\n\r.!?。！？…।॥؟۔;]|[.!?…;](?![\s\"')\]]))*+(?:[.!?。！？…।॥؟۔;]+[\"')\]]*|[\n\r]|$)\s*"
)
_LONGEST_SENTENCE = 160
_PIECE = re.compile(
    rf"\S.{{0,{_LONGEST_SENTENCE}}}(?=\s)\s*|\s*\S{{1,{_LONGEST_SENTENCE // 4}}}\s*", re.DOTALL
)
"""A part of a sentence without an end: up to a space, or of a run without one (Thai, base64)."""
_BESIDE = 0.5
"""The share of its score that a sentence gives the one behind it, which may be its answer."""

_CUT = "…"


class Excerpts:
    """Cuts texts for one question."""

    def __init__(self, question: str, counter: Counter) -> None:
        self._marks = parse(question[:LONGEST_QUESTION]).marks
        self._counter = counter

    def of(self, text: str) -> str:
        """The best sentences of `text`, in their order, with `…` where some were left out.

        A text of `EXCERPT_TOKENS` or of one sentence stays whole.
        """
        is_long = len(text) > _LONGEST
        if not is_long and (len(text) <= EXCERPT_TOKENS or weight(text, self._counter) <= EXCERPT_TOKENS):
            return text
        text = f"{text[:_LONGEST]}{_CUT}" if is_long else text
        sentences = [part for match in _SENTENCE.finditer(text) for part in _parts(match[0])]
        if not sentences:
            return text
        scores = _scores(sentences, self._marks)
        best = scores.index(max(scores))
        left, taken = float(EXCERPT_TOKENS), set[int]()
        # Sentences with equal scores: those nearest to the best one first.
        for number in sorted(range(len(sentences)), key=lambda each: (-scores[each], abs(each - best))):
            needed = weight(sentences[number], self._counter)
            if needed <= left or not taken:
                taken.add(number)
                left -= needed
        return _joined(text, sentences, sorted(taken))


def _parts(sentence: str) -> list[str]:
    if not sentence.strip(_CUT).strip():
        return []
    if len(sentence) <= _LONGEST_SENTENCE:
        return [sentence]
    return [match[0] for match in _PIECE.finditer(sentence)]


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

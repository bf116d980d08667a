"""Cuts a text down to an excerpt: the sentences that matter for a question."""

import math
import re
from collections.abc import Sequence
from functools import cache

from memlog.projector.text.marks import Marks, find_marked_spans
from memlog.query.context.escaping import escape_text
from memlog.query.context.token_counters import Counter, weigh_text
from memlog.query.search.request import FtsQuery

# Measured on user-assistant chats with long answers (80 questions for facts, 2,000 tokens): .912 of the
# contexts contain at least one turn with the answer; without excerpts, .775.

EXCERPT_TOKENS = 80
"""The approximate size of an excerpt, in tokens."""

_LONGEST = 20_000
"""The most characters of a text that are split into sentences; a passage has fewer."""

_SENTENCE = re.compile(
    r"(?:[^\n\r.!?。！？…।॥؟۔;]|[.!?…;](?![\s\"')\]]))*+(?:[.!?。！？…।॥؟۔;]+[\"')\]]*|[\n\r]|$)\s*"
)
_MAX_CHARACTER_TOKENS = 8
"""The most tokens that a character can take, as an escape such as `\\U000e0041`."""

_SHARE_OF_PREVIOUS = 0.5
"""The share of a sentence's score that is added to the next sentence's, which may be the answer."""

_CUT = "…"


class Excerpts:
    """Cuts texts down to the sentences that matter for one question."""

    def __init__(self, question: FtsQuery, counter: Counter) -> None:
        self._marks = question.marks
        # Texts are weighed as they are printed, with escapes.
        self._weight = cache(lambda text: weigh_text(escape_text(text), counter))

    def cut_to_best_sentences(self, text: str) -> str:
        """Return the sentences of `text` that best match the question, in order, with `…` for omissions.

        A text of at most `EXCERPT_TOKENS`, or of a single sentence, stays whole.
        """
        is_long = len(text) > _LONGEST
        if not is_long and self._weight(text) <= EXCERPT_TOKENS:
            return text
        text = f"{text[:_LONGEST]}{_CUT}" if is_long else text
        sentences = [
            part for match in _SENTENCE.finditer(text) for part in self._split_long_sentence(match[0])
        ]
        if not sentences:
            return text
        scores = _score_sentences(sentences, self._marks)
        best = scores.index(max(scores))
        left, taken = float(EXCERPT_TOKENS), set[int]()
        # At equal scores, the sentence nearest to the best one comes first.
        for number in sorted(range(len(sentences)), key=lambda each: (-scores[each], abs(each - best))):
            needed = self._weight(sentences[number])
            if needed <= left or not taken:
                taken.add(number)
                left -= needed
        return _join_sentences(text, sentences, sorted(taken))

    def _split_long_sentence(self, sentence: str) -> list[str]:
        """Split a sentence longer than an excerpt into pieces of about half an excerpt."""
        if not sentence.strip(_CUT).strip():
            return []
        # In some scripts each character is a token; an escape is several tokens.
        weighs = self._weight(sentence) if len(sentence) > EXCERPT_TOKENS // _MAX_CHARACTER_TOKENS else 0
        if weighs <= EXCERPT_TOKENS:
            return [sentence]
        length = max(1, int(len(sentence) / weighs * EXCERPT_TOKENS / 2))
        return re.findall(rf"(?s)\S.{{0,{length}}}(?=\s)\s*|\s*\S{{1,{length}}}\s*", sentence)


def _score_sentences(sentences: Sequence[str], marks: Marks) -> list[float]:
    """Score each sentence by which words of the question it contains; rare words count more."""
    found = [
        {sentence[start:end].casefold() for start, end in find_marked_spans(sentence, marks)}
        for sentence in sentences
    ]
    counts: dict[str, int] = {}
    for words in found:
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    own = [sum(math.log(1 + len(sentences) / counts[word]) for word in words) for words in found]
    return [score + _SHARE_OF_PREVIOUS * before for score, before in zip(own, [0.0, *own], strict=False)]


def _join_sentences(text: str, sentences: Sequence[str], taken: Sequence[int]) -> str:
    parts, before = [], -1
    for number in taken:
        parts.append(f"{_CUT} " if number > before + 1 else "")
        parts.append(sentences[number])
        before = number
    joined = "".join(parts).strip()
    if joined.strip(_CUT).strip() == text.strip(_CUT).strip():
        return text
    return joined + (f" {_CUT}" if before < len(sentences) - 1 and not joined.endswith(_CUT) else "")

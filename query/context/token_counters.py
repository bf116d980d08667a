"""Counts the tokens of a text with one of three counters.

model: an estimate for large language models (`estimate_model_tokens`). chars4: characters // 4. heuristic:
Chinese characters × 1.5 and words × 0.75, rounded up; a word is a run of letters and digits, or of other
signs.

A text is weighed in pieces that begin and end at word boundaries, and never has more tokens than the sum of
their weights. A piece weighs at least one token per 16 characters, even with the heuristic, which would count
a word of a million letters as less than one token.
"""

import math
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Literal

from memlog.eventlog.text import split_into_pieces
from memlog.projector.text.tokens import count_tokens

# The vocabulary of `count_tokens` has only words in Latin script. Any other word, or a run without spaces,
# would be one unknown token: so these are counted by their characters, at the rates below.

CHARACTERS = 16
"""The most characters in a token: a long run of spaces is several tokens."""

_LATIN = (
    r"\x00-\x7f\xa0-\xff\u0100-\u0131\u0134-\u0137\u0139-\u013e\u0141-\u0148\u014a-\u0165\u0168-\u017e"
    r"\u01a0\u01a1\u01af\u01b0\u0218-\u021b\u1e00-\u1e99\u1ea0-\u1ef9\u2010-\u2016\u2018-\u201a\u201c-\u201e"
    r"\u2020-\u2022\u2026\u20ac"
)
"""The characters that the vocabulary has: a word with any other character would be one unknown token."""

# Tokens per character of each script, measured in November 2026 on XQuAD (Thai, Russian, Chinese) and on
# Django's translations into 80 languages: the tokens by OpenAI's cl100k_base, which counts more than
# o200k_base for each script, less those of the words and signs in between, divided by the characters of the
# script. Each rate is at least .8 of that of the most expensive language in its script.
# docs/tools/context.md has the figures.
_RATES = (
    (r"\u0370-\u03ff\u1f00-\u1fff", 1.05),  # Greek
    (r"\u0400-\u052f", 0.75),  # Cyrillic: Russian .53, Kazakh .93
    (r"\u0530-\u058f\u10a0-\u10ff", 2.1),  # Armenian, Georgian
    (r"\u0590-\u05ff", 1.15),  # Hebrew
    (r"\u0600-\u06ff", 0.95),  # Arabic .82, Uyghur 1.16
    (r"\u0900-\u097f", 1.25),  # Devanagari
    (r"\u0980-\u09ff", 1.5),  # Bengali
    (r"\u0a00-\u0dff", 2.05),  # Telugu, Kannada, Malayalam, and scripts beside them
    (r"\u0e00-\u0e7f", 1.0),  # Thai
    (r"\u2500-\u259f", 1.0),  # frames and bars
    (r"\u3000-\u303f\uff00-\uffef", 1.0),  # signs of Chinese and Japanese, wide letters
    (r"\u3040-\u30ff", 1.15),  # kana: .86 in words, 1.4 in any order
    (r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff", 1.5),  # Chinese 1.31, with traditional letters 1.46
    (r"\uac00-\ud7a3", 2.1),  # Hangul: 1.1 in words, 2.6 in any order
)

_OF_A_BYTE = 0.8
"""Tokens per UTF-8 byte of any other character: a vocabulary of bytes has at most one token per byte. An
emoji has three or four bytes, and takes 2.4 to 2.9 tokens."""

_MARK = 0.5
"""Tokens added for a Latin letter with a mark, since the vocabulary drops marks: Vietnamese needs .4."""

_LONGEST_WORD = 32
_LONG_WORD = re.compile(rf"[^\W_]{{{_LONGEST_WORD}}}(?=[^\W_])")
"""Matches where a long word is cut, since one of more than 100 characters would be one unknown token."""


def estimate_model_tokens(text: str) -> float:
    """Estimate the tokens of `text`, unrounded: the sum over its pieces between spaces."""
    return sum(map(_estimate_model_tokens_of_piece, split_into_pieces(text)))


def _estimate_model_tokens_of_piece(text: str) -> float:
    least, tokens = len(text) / CHARACTERS, 0.0
    if not text.isascii():
        of_scripts, other, marked = _token_patterns()
        for script, rate in of_scripts:
            text, count = script.subn(" ", text)
            tokens += rate * count
        unknown = "".join(other.findall(text))
        tokens += _OF_A_BYTE * len(unknown.encode(errors="surrogatepass"))
        tokens += _MARK * len(marked.findall(text))
        text = other.sub(" ", text)
    # The pattern is slower than the split, and few texts have a long word.
    if max(map(len, text.split()), default=0) > _LONGEST_WORD:
        text = _LONG_WORD.sub(r"\g<0> ", text)
    return max(least, tokens + count_tokens(text))


@cache
def _token_patterns() -> tuple[list[tuple[re.Pattern[str], float]], re.Pattern[str], re.Pattern[str]]:
    # Compiled on first use, because many texts are ASCII.
    of_scripts = [(re.compile(f"[{script}]"), rate) for script, rate in _RATES]
    return of_scripts, re.compile(f"[^{_LATIN}]+"), re.compile(r"[\u00c0-\u024f\u1e00-\u1ef9]")


Counter = Literal["model", "chars4", "heuristic"]

# Compiled on first use, because the heuristic is rarely chosen.
_CHINESE = r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]"
_WORD = r"[^\W_]+|(?<!\S)(?:[^\w\s]|_)++(?!\S)"


def weigh_text(text: str, counter: Counter) -> float:
    """Return the most tokens that appending `text` can add to a whole, unrounded."""
    return _known_weight(text, counter) if len(text) <= _KEPT else _weigh_text(text, counter)


def _weigh_text(text: str, counter: Counter) -> float:
    return max(_WEIGHTS[counter](text), least_weight_of_length(text))


# Cached, because each context weighs what always holds, and most of the same window, again.
_known_weight = lru_cache(maxsize=2048)(_weigh_text)
_KEPT = 1000


def least_weight_of_length(text: str) -> float:
    """Return the lowest weight a text of this length can have, without counting its tokens."""
    return len(text) / CHARACTERS


def round_weight_to_tokens(weight: float, counter: Counter) -> int:
    """Round the total weight of a text's pieces to whole tokens, as this counter does."""
    return math.floor(weight) if counter == "chars4" else math.ceil(weight)


def count_text_tokens(text: str, counter: Counter) -> int:
    """Count the tokens of `text`."""
    return round_weight_to_tokens(_WEIGHTS[counter](text), counter)


def _heuristic_tokens_of_piece(text: str) -> float:
    rest, count = re.subn(_CHINESE, " ", text)
    return count * 1.5 + len(re.findall(_WORD, rest)) * 0.75


_WEIGHTS: dict[Counter, Callable[[str], float]] = {
    "model": estimate_model_tokens,
    "chars4": lambda text: len(text) / 4,
    "heuristic": lambda text: sum(map(_heuristic_tokens_of_piece, split_into_pieces(text))),
}

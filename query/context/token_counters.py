"""Counts the tokens of a text, by one of three counters.

model: an estimate for large language models (`model_tokens`). chars4: characters // 4. heuristic: Chinese
characters × 1.5 and words × 0.75, rounded up; a word is a run of letters and digits, or of signs that stand
alone.

A text is joined from pieces that begin and end at words. So each piece has its own weight, and the size of
the text is at most that of the sum of the weights. A piece weighs at least a token per 16 characters, also by
the heuristic, for which a word of a million letters is less than one.
"""

import math
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Literal

from memlog.eventlog.text import pieces
from memlog.query.context.model_tokens import CHARACTERS, model_tokens

Counter = Literal["model", "chars4", "heuristic"]

_CHINESE = r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]"
_WORD = r"[^\W_]+|(?<!\S)(?:[^\w\s]|_)++(?!\S)"


def weight(text: str, counter: Counter) -> float:
    """The most that a piece adds to the size of a text, before rounding."""
    return _known_weight(text, counter) if len(text) <= _KEPT else _weight(text, counter)


def _weight(text: str, counter: Counter) -> float:
    return max(_WEIGHTS[counter](text), least_weight(text))


# What always holds is weighed for each context, and so is most of a window.
_known_weight = lru_cache(maxsize=2048)(_weight)
_KEPT = 1000


def least_weight(text: str) -> float:
    """The least weight of a text, without counting tokens."""
    return len(text) / CHARACTERS


def size(weight: float, counter: Counter) -> int:
    """The tokens of a text whose pieces have this weight together."""
    return math.floor(weight) if counter == "chars4" else math.ceil(weight)


def tokens(text: str, counter: Counter) -> int:
    """The tokens of `text`."""
    return size(_WEIGHTS[counter](text), counter)


def _heuristic_of_piece(text: str) -> float:
    chinese, word = _patterns()
    rest, count = chinese.subn(" ", text)
    return count * 1.5 + len(word.findall(rest)) * 0.75


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    # Compiled on first use: the heuristic is rare.
    return re.compile(_CHINESE), re.compile(_WORD)


_WEIGHTS: dict[Counter, Callable[[str], float]] = {
    "model": model_tokens,
    "chars4": lambda text: len(text) / 4,
    "heuristic": lambda text: sum(map(_heuristic_of_piece, pieces(text))),
}

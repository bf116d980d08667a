"""Reads the vectors that providers answer with, in any of their forms."""

import base64
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

Vector = list[float]

_MOST = 1e30
"""The length of a vector that float32 holds, with a margin."""


def read_vectors(answer: Any, count: int) -> list[Vector | None] | None:  # noqa: ANN401 - JSON
    """The vectors of `count` texts; None for one that has no direction, and for all if nothing tells whose
    they are.

    They stand in the order of the texts, or are numbered, from 0 or from 1 on.
    """
    entries = _entries(answer)
    if entries is None or not 0 < len(entries) <= count:
        return None
    places = _places([each.get("index") if isinstance(each, dict) else None for each in entries], count)
    if places is None:
        return None
    found: list[Vector | None] = [None] * count
    for place, entry in zip(places, entries, strict=True):
        found[place] = _vector(entry.get("embedding") if isinstance(entry, dict) else entry)
    return found


def _entries(answer: Any) -> list[Any] | None:  # noqa: ANN401 - JSON
    """The list of an API (`data`), of Ollama (`embeddings`) and of text-embeddings-inference."""
    if isinstance(answer, dict):
        if isinstance(alone := answer.get("embedding"), list | str):  # of Ollama before 0.3.4
            return [alone]
        answer = answer.get("data", answer.get("embeddings"))
    return answer if isinstance(answer, list) else None


def _places(numbers: Sequence[Any], count: int) -> Sequence[int] | None:
    """Which texts entries are of; None where nothing tells."""
    read = []
    for number in numbers:
        with suppress(TypeError, ValueError, OverflowError):
            read.append(int(number))
    if len(read) == len(numbers) == len({*read}):
        if min(read) >= 0 and max(read) < count and (0 in read or len(read) == count):
            return read
        if min(read) >= 1 and max(read) == count:
            return [number - 1 for number in read]
    return range(count) if len(numbers) == count else None


def _vector(given: Any) -> Vector | None:  # noqa: ANN401 - JSON
    """The numbers of a vector; None where it has no direction, or overflows float32."""
    if isinstance(given, str):
        given = _in_text(given)
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], list):
        given = given[0]  # as llama.cpp has it, which pools nothing
    if not isinstance(given, list) or not given:
        return None
    try:
        numbers = [float(each) for each in given]
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if 0 < math.hypot(*numbers) < _MOST else None


def _in_text(text: str) -> list[Any] | None:
    """A list in JSON, or float32 in base64."""
    with suppress(ValueError, RecursionError):
        if text.lstrip().startswith("["):
            given = json.loads(text)
            return given if isinstance(given, list) else None
        import numpy as np

        numbers: list[Any] = np.frombuffer(base64.b64decode(text, validate=True), "<f4").tolist()
        return numbers
    return None

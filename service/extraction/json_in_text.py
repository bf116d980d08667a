"""Finds JSON in the text of a language model: behind what it thinks, in prose, between fences."""

import json
import re
from collections.abc import Iterator
from typing import Any

_END_OF_THOUGHT = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)

_OPENING = re.compile(r"""\{\s*["}]|\[\s*[\[{"\]\-\dtfnNI]""")
"""What an object or a list begins with."""

_SKIPPED = re.compile(r"(?:[^{\[]*[{\[]){500}")
"""Of what is nested deeper than any answer: objects that begin there are part of it."""

_EFFORT = 20
"""How often all of a text is read at most where JSON begins and does not end."""

_DECODER = json.JSONDecoder(strict=False)


class _Searched(str):
    """A text of which errors are not told by line, for which `json` would count all lines before each."""

    __slots__ = ()

    def count(self, *_: object) -> int:
        """Return 0."""
        return 0

    def rfind(self, *_: object) -> int:
        """Return 0."""
        return 0


def values_in(text: str) -> Iterator[Any]:
    """The JSON objects and lists in a text, in linear time. Where a model has thought aloud and answered
    then, what it has thought is left out."""
    *_, last = _END_OF_THOUGHT.split(text)
    searched = _Searched(last if _OPENING.search(last) else text)
    at, effort = 0, _EFFORT * len(searched)
    while opening := _OPENING.search(searched, at):
        at = opening.start()
        try:
            value, at = _DECODER.raw_decode(searched, at)
        except json.JSONDecodeError as error:
            # That a text between quotes does not end shows at the end.
            reached = len(searched) if error.msg.startswith("Unterminated") else error.pos
            effort -= reached - at
            at = at + 1 if effort > 0 else max(at + 1, error.pos)
        except (ValueError, RecursionError):
            skipped = _SKIPPED.match(searched, at)
            at = skipped.end() if skipped else at + 1
        else:
            yield value

"""Finds keys in a text.

`str.find` looks for the fixed texts of the shapes, and a pattern is tried only there: an ordinary text costs
no pattern. A long text is read in windows, so that no call holds the interpreter for long.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import takewhile
from typing import NamedTuple

from memlog.eventlog.escapes import is_escaped, spans, unescaped
from memlog.eventlog.key_shapes import SHAPES

_LEVELS = 5
"""Levels of escapes to remove: `%252525` could have as many as characters."""
_SHORTEST = len("a://:b@c")
"""Characters of the shortest key with its mark."""
_LONGEST = 1 << 16
"""Characters of the longest key (RSA with 16,384 bits: 13,000)."""
_WINDOW = 1 << 18
"""Other threads wait at most 22 ms, measured on 16 MiB of keys behind escapes; 310 ms without windows."""
_REACH = 1 << 15
"""More than a pattern reads before it decides, with each character an escape; less than a window."""
_CONTEXT = 1 << 10
"""More than the text before a key that decides about it, with each character an escape."""


class Key(NamedTuple):
    """A key in a text; `shape` is an index into SHAPES."""

    start: int
    shape: int
    end: int

    @property
    def kind(self) -> str:
        """The name in its mask."""
        return SHAPES[self.shape].kind


def keys_in(text: str, window: int = _WINDOW) -> Iterable[Key]:
    """The keys of `text` in order, without overlaps, including those behind escapes."""
    return _keys(text, _LEVELS) if len(text) <= window else _keys_by_window(text, window)


def _keys_by_window(text: str, window: int) -> Iterator[Key]:
    start, size = 0, window
    while start < len(text):
        low, high = max(0, start - _CONTEXT), start + size
        found = (Key(low + begin, shape, low + end) for begin, shape, end in _keys(text[low:high], _LEVELS))
        keys = [key for key in found if key.start >= start]
        if high >= len(text):
            yield from keys
            return
        # The next window reads what begins near the end of this one.
        keys = list(takewhile(lambda key: key.start < high - _REACH, keys))  # noqa: B023 - used up at once
        if keys and keys[-1].end > high - _CONTEXT:
            start, size = keys.pop().start, size * 2
        else:
            start, size = max(high - _REACH, keys[-1].end if keys else 0), window
        yield from keys


def _keys(text: str, levels: int) -> list[Key]:
    if len(text) < _SHORTEST:
        return []
    keys = [
        key
        for mark, group in _FIXED.items()
        if mark in text
        for fixed, shapes in group.items()
        if fixed in text
        for shape in shapes
        for key in _keys_of(shape, fixed, text)
    ]
    if levels and is_escaped(text):
        plain = unescaped(text)
        if len(plain) < len(text):
            keys += _in_escaped(text, _keys(plain, levels - 1))
    return _merged(keys)


_MARKS = ("_", "-", ":", "/", "=", "")


def _grouped() -> dict[str, dict[str, list[int]]]:
    """The shapes of each fixed text, by a character in it: most texts lack several of the characters."""
    groups: dict[str, dict[str, list[int]]] = {mark: {} for mark in _MARKS}
    for index, shape in enumerate(SHAPES):
        for fixed in shape.fixed.split():
            mark = next(mark for mark in groups if mark in fixed)
            groups[mark].setdefault(fixed, []).append(index)
    return groups


_FIXED = _grouped()


def _keys_of(shape: int, fixed: str, text: str) -> Iterator[Key]:
    before, rest = _patterns(shape)
    width = SHAPES[shape].width
    at = text.find(fixed)
    while at >= 0:
        head = before.search(text, max(0, at - width), at)
        match = rest.match(text, at + len(fixed), at + _LONGEST) if head else None
        if head is None or match is None:
            at = text.find(fixed, at + 1)
            continue
        start = match.start(1) if rest.groups else head.start()
        end = match.end(rest.groups)
        yield Key(start, shape, end)
        at = text.find(fixed, end)


@cache
def _patterns(shape: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compiled at first use: few texts hold a shape's fixed text."""
    row = SHAPES[shape]
    return re.compile(f"(?:{row.before})\\Z", re.ASCII), re.compile(row.rest, re.ASCII)


def _in_escaped(text: str, keys: list[Key]) -> Iterator[Key]:
    """The spans in `text` of `keys` in its unescaped form."""
    places = spans(text, ((key.start, key.end) for key in keys))
    return (Key(start, key.shape, end) for key, (start, end) in zip(keys, places, strict=True))


def _merged(keys: list[Key]) -> list[Key]:
    merged: list[Key] = []
    for key in sorted(keys):
        if merged and key.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(key.end, merged[-1].end))
        else:
            merged.append(key)
    return merged

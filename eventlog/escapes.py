"""Removes one level of escapes from a text, and maps positions back.

A level is one quoting: JSON or a Python literal (`\\n`, `\\u001b`), a URL (`%3D`), HTML (`&quot;`),
quoted-printable (`=3D`), terminal colours, zero-width characters. An escape becomes one character; a colour
or a zero-width character is removed.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

_COLOUR = r"(?:\[[0-9;:?]{0,32}[A-Za-z]|\([0AB])"
_NO_WIDTH = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_ENTITIES = {"quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">"}
_ESCAPE = re.compile(
    rf"[\\%\x1b&={_NO_WIDTH}](?:"
    rf"(?<=[{_NO_WIDTH}])|(?<=\x1b){_COLOUR}|(?<=%)[0-9A-Fa-f]{{2}}|(?<==)3D|"
    r"(?<=&)(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|quot|apos|amp|lt|gt);|"
    rf"(?<=\\)(?:(?:x1[bB]|u001[bB]|033|e){_COLOUR}|"
    r"u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[0-7]{3}|[abefnrtv0\"'`\\/]))"
)
_CONTROLS = dict(zip("abefnrtv0", "\a\b\x1b\f\n\r\t\v\0", strict=True))
_LAST_CHARACTER = 0x10FFFF


def is_escaped(text: str) -> bool:
    """A quick test whether `text` may have an escape."""
    if "\\" in text or "%" in text or "\x1b" in text or "&" in text or "=3D" in text:
        return True
    return not text.isascii() and any(character in text for character in _NO_WIDTH)


def unescaped(text: str) -> str:
    """`text` without one level of escapes."""
    return _ESCAPE.sub(_character, text)


def spans(text: str, plain_spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Maps rising, non-empty spans of `unescaped(text)` to spans of `text`. Removed characters belong to a
    span only if they lie within it.
    """
    characters = _characters(text, chain.from_iterable((start, end - 1) for start, end in plain_spans))
    return ((first[0], last[1]) for first, last in zip(characters, characters, strict=True))


def _characters(text: str, indexes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Start and end in `text` of the characters at rising `indexes` of `unescaped(text)`."""
    escapes = _ESCAPE.finditer(text)
    escape = next(escapes, None)
    removed = 0
    for index in indexes:
        while escape and escape.start() - removed + _width(escape[0]) <= index:
            removed += len(escape[0]) - _width(escape[0])
            escape = next(escapes, None)
        start = index + removed
        yield start, escape.end() if escape and escape.start() == start else start + 1


def _width(escape: str) -> int:
    return 0 if escape[0] in _NO_WIDTH or "[" in escape or "(" in escape else 1


def _character(match: re.Match[str]) -> str:
    escape = match[0]
    if not _width(escape):
        return ""
    if escape[0] == "%":
        return chr(int(escape[1:], 16))
    if escape[0] == "=":
        return "="
    if escape[0] == "&":
        reference = escape[2:-1]  # `39`, `x27`
        return _ENTITIES.get(escape[1:-1]) or _numbered(
            int(reference) if reference.isdigit() else int(reference[1:], 16)
        )
    if len(escape) == 2:
        return _CONTROLS.get(escape[1], escape[1])
    return _numbered(int(escape[1:], 8) if escape[1].isdigit() else int(escape[2:], 16))


def _numbered(code: int) -> str:
    return chr(code) if code <= _LAST_CHARACTER else " "

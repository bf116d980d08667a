"""Removes one level of escapes from a text, and maps positions back.

A level is one quoting: JSON or a Python literal (`\\n`, `\\u001b`), Markdown (`\\_`), a URL (`%3D`), HTML
(`&quot;`), quoted-printable (`=3D`, and `=` at the end of a line), terminal colours, invisible characters. An
escape becomes one character; a colour, an invisible character or a soft line break is removed.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

_COLOUR = r"(?:\[[0-9;:?]{0,32}[A-Za-z]|\([0AB])"
_NO_WIDTH = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Default ignorable code points, as a set of a pattern: DerivedCoreProperties.txt of Unicode 16."""
_INVISIBLE = re.compile(f"[{_NO_WIDTH}]")
_SOFT = re.compile(r"=(?:3D|\r?\n)")
_ENTITIES = {"quot": '"', "apos": "'", "amp": "&", "lt": "<", "gt": ">"}
_ESCAPE = re.compile(
    rf"[\\%\x1b&={_NO_WIDTH}](?:"
    rf"(?<=[{_NO_WIDTH}])|(?<=\x1b){_COLOUR}|(?<=%)[0-9A-Fa-f]{{2}}|"
    r"(?<==)(?:3D|\r?\n)|"
    r"(?<=&)(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|quot|apos|amp|lt|gt);|"
    rf"(?<=\\)(?:(?:x1[bB]|u001[bB]|033|e){_COLOUR}|"
    r"u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[0-7]{3}|[abefnrtv0]|[!-/:-@\[-`{-~]))"
)
_CONTROLS = dict(zip("abefnrtv0", "\a\b\x1b\f\n\r\t\v\0", strict=True))
_LAST_CHARACTER = 0x10FFFF


def is_escaped(text: str) -> bool:
    """A quick test whether `text` may have an escape."""
    if "\\" in text or "%" in text or "\x1b" in text or "&" in text or _SOFT.search(text):
        return True
    return not text.isascii() and _INVISIBLE.search(text) is not None


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
    is_colour = escape[0] == "\x1b" or (len(escape) > 2 and ("[" in escape or "(" in escape))
    return 0 if is_colour or escape[-1] == "\n" or _INVISIBLE.match(escape) else 1


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

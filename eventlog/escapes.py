"""Texts without one level of escapes, and where each character of such a text came from.

A level is what one quoting adds: JSON or a Python literal (`\\n`, `\\u001b`), a URL (`%3D`), or colours of a
terminal, which become a space. Each escape becomes one character.
"""

import re
from collections.abc import Iterable, Iterator

_COLOUR = r"\[[0-9;:?]{0,32}[A-Za-z]"
_ESCAPE = re.compile(
    r"[\\%\x1b](?:"
    rf"(?<=\x1b){_COLOUR}|(?<=%)[0-9A-Fa-f]{{2}}|"
    rf"(?<=\\)(?:(?:x1[bB]|u001[bB]|033|e){_COLOUR}|"
    r"u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[0-7]{3}|[abefnrtv0\"'`\\/]))"
)
_CONTROLS = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "0": "\0",
}
_LAST_CHARACTER = 0x10FFFF


def unescaped(text: str) -> str:
    """`text` without one level of escapes."""
    return _ESCAPE.sub(_character, text)


def places(text: str, positions: Iterable[int]) -> Iterator[int]:
    """The positions in `text` of rising `positions` in `unescaped(text)`."""
    escapes = _ESCAPE.finditer(text)
    escape = next(escapes, None)
    removed = 0
    for position in positions:
        while escape and escape.start() - removed < position:
            removed += escape.end() - escape.start() - 1
            escape = next(escapes, None)
        yield position + removed


def _character(escape: re.Match[str]) -> str:
    found = escape[0]
    if found[-1].isalpha() and "[" in found:
        return " "
    if found[0] == "%":
        return chr(int(found[1:], 16))
    if len(found) == 2:
        return _CONTROLS.get(found[1], found[1])
    code = int(found[1:], 8) if found[1].isdigit() else int(found[2:], 16)
    return chr(code) if code <= _LAST_CHARACTER else " "

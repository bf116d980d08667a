"""Removes one level of escaping from text, and maps positions back to the original.

A level is one layer of JSON or Python literals (`\\n`, `\\u001b`), Markdown (`\\_`), URLs (`%3D`), HTML
(`&quot;`), quoted-printable (`=3D`, and `=` at the end of a line), terminal colours or invisible characters.
Each escape becomes one character; colours, invisible characters and soft line breaks are removed.
"""

import re
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import TypeVar

import msgspec

_COLOUR = r"(?:\[[0-9;:?]{0,32}[A-Za-z]|\([0AB])"
_NO_WIDTH = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Default ignorable code points for use in a character class, from DerivedCoreProperties.txt (Unicode 16)."""
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


def may_contain_escapes(text: str) -> bool:
    """Whether `text` may contain escapes; a quick check with false positives."""
    if "\\" in text or "%" in text or "\x1b" in text or "&" in text or _SOFT.search(text):
        return True
    return not text.isascii() and _INVISIBLE.search(text) is not None


def unescape(text: str) -> str:
    """Remove one level of escaping from `text`."""
    return _ESCAPE.sub(_decode_escape, text)


def map_spans_to_escaped(text: str, plain_spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Map ascending, non-empty spans of `unescape(text)` to the shortest matching spans of `text`."""
    characters = _locate_characters(text, chain.from_iterable((start, end - 1) for start, end in plain_spans))
    return ((first[0], last[1]) for first, last in zip(characters, characters, strict=True))


def _locate_characters(text: str, indexes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the span in `text` of each character of `unescape(text)` at the ascending `indexes`."""
    escapes = _ESCAPE.finditer(text)
    escape = next(escapes, None)
    removed = 0
    for index in indexes:
        while escape and escape.start() - removed + _decoded_width(escape[0]) <= index:
            removed += len(escape[0]) - _decoded_width(escape[0])
            escape = next(escapes, None)
        start = index + removed
        yield start, escape.end() if escape and escape.start() == start else start + 1


def _decoded_width(escape: str) -> int:
    is_colour = escape[0] == "\x1b" or (len(escape) > 2 and ("[" in escape or "(" in escape))
    return 0 if is_colour or escape[-1] == "\n" or _INVISIBLE.match(escape) else 1


def _decode_escape(match: re.Match[str]) -> str:
    escape = match[0]
    if not _decoded_width(escape):
        return ""
    if escape[0] == "%":
        return chr(int(escape[1:], 16))
    if escape[0] == "=":
        return "="
    if escape[0] == "&":
        reference = escape[2:-1]  # `39`, `x27`
        return _ENTITIES.get(escape[1:-1]) or _decode_code_point(
            int(reference) if reference.isdigit() else int(reference[1:], 16)
        )
    if len(escape) == 2:
        return _CONTROLS.get(escape[1], escape[1])
    return _decode_code_point(int(escape[1:], 8) if escape[1].isdigit() else int(escape[2:], 16))


def _decode_code_point(code: int) -> str:
    return chr(code) if code <= _LAST_CHARACTER else " "


_IGNORABLE = (
    *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
    *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
"""Default_Ignorable_Code_Point of DerivedCoreProperties.txt in the Unicode Character Database. Python's
`unicodedata` does not provide this property (UAX #44)."""

_BLANK = (0x2800, 0x2800)
"""The empty Braille pattern, which looks like a space although Unicode classifies it as a symbol."""

_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Control and format characters, surrogates, line and paragraph separators."""


@lru_cache(4096)
def is_invisible(character: str) -> bool:
    """Whether `character` is invisible."""
    # Imported here: most appends do not need it.
    import unicodedata

    return unicodedata.category(character) in _CATEGORIES or _is_ignorable(character)


def _is_ignorable(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in (*_IGNORABLE, _BLANK))


def has_no_visible_character(text: str) -> bool:
    """Whether `text` has no visible characters."""
    return not any(letter.isalnum() and not _is_ignorable(letter) for letter in text[:_READ]) and all(
        letter.isspace() or is_invisible(letter) for letter in text
    )


_READ = 100
"""The number of characters to check for a letter first; most texts have a letter among them."""

CRC_LENGTH = len(b',"crc":"00000000"}')
_plain = msgspec.json.Encoder()
_T = TypeVar("_T")


def encode_json(value: object, encoder: msgspec.json.Encoder = _plain) -> bytes:
    """Encode `value` as JSON. Raises MemoryError if memory runs out."""
    return bytes(encode_json_buffer(value, encoder))


def encode_json_buffer(value: object, encoder: msgspec.json.Encoder) -> bytearray:
    """Encode `value` as JSON in a buffer; `Encoder.encode` of msgspec 0.22 crashes when memory runs out."""
    buffer = bytearray()
    encoder.encode_into(value, buffer)
    return buffer


def append_crc(body: bytes) -> bytes:
    """Complete `body`, a JSON object without its closing brace, with its crc as the last member."""
    return body + b',"crc":"%08x"}' % zlib.crc32(body)


def ends_with_correct_crc(line: bytes) -> bool:
    """Whether `line` ends with its correct crc."""
    return line.endswith(b',"crc":"%08x"}' % zlib.crc32(line[:-CRC_LENGTH]))


def decode_json(line: bytes | bytearray, kind: type[_T]) -> _T | None:
    """Decode a line of JSON; return None if it is invalid, not a `kind`, or too deeply nested."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None

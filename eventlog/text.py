"""Processes text in linear time, piece by piece.

A single call of `str`, `re` or `unicodedata` on 16 MB holds the GIL for up to a second.
"""

import unicodedata
from collections.abc import Iterator
from itertools import groupby
from typing import Literal

PIECE = 65_536
"""Characters per piece. The slowest operation on a piece, ordering combining marks, takes 17 ms."""

# Python's normalization is quadratic in a run of combining marks: 80,000 take 3.7 s.
_RUN = 64

# A copy of `string.punctuation`, because importing `string` compiles a pattern.
_PUNCTUATION = r"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~"""


def split_into_pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """Yield `text` in pieces of at most `size` characters, split by `find_break_before`."""
    start = 0
    while len(text) - start > size:
        end = find_break_before(text, start, start + size)
        yield text[start:end]
        start = end
    yield text[start:] if start else text


def find_break_before(text: str, start: int, limit: int) -> int:
    """Return the index after the last space or newline between `start` and `limit`.

    Without one, return the index after the last ASCII punctuation character, or else `limit`.
    """
    for marks in (" \n", _PUNCTUATION):
        behind = max(text.rfind(mark, start, limit) for mark in marks) + 1
        if behind > start:
            return behind
    return limit


def normalise_to_nfkc(text: str) -> str:
    """Normalise `text` to Unicode NFKC."""
    return text if text.isascii() else _normalise_by_piece(text, "NFKD", "NFKC")


def normalise_to_nfc(text: str) -> str:
    """Normalise `text` to Unicode NFC."""
    return text if text.isascii() else _normalise_by_piece(text, "NFD", "NFC")


def normalise_width(text: str) -> str:
    """Normalise `text` to NFC, and full-width and half-width forms to standard width; superscripts stay."""
    if text.isascii():
        return text
    wide = (char for char in {*text} if unicodedata.decomposition(char).startswith(("<wide>", "<narrow>")))
    return normalise_to_nfc(text.translate({ord(char): unicodedata.normalize("NFKC", char) for char in wide}))


def equivalent_forms(text: str) -> list[str]:
    """Return the canonically equivalent forms of `text` in common use: the text as it is, NFC and NFD."""
    return list(dict.fromkeys((text, normalise_to_nfc(text), unicodedata.normalize("NFD", text))))


_Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


def _normalise_by_piece(text: str, decomposed: _Form, composed: _Form) -> str:
    return "".join(
        unicodedata.normalize(composed, _order_marks(piece, decomposed)) for piece in split_into_pieces(text)
    )


def _order_marks(text: str, form: _Form) -> str:
    """Sort long runs of combining marks in `text`; the result composes to the same text."""
    firsts = (unicodedata.normalize("NFKD", letter)[0] for letter in text[::_RUN])
    if not any(map(unicodedata.combining, firsts)):
        return text
    decomposed = "".join(unicodedata.normalize(form, letter) for letter in text)
    runs = groupby(decomposed, lambda letter: unicodedata.combining(letter) > 0)
    # Sorting is stable, as Unicode's canonical order is.
    ordered = (sorted(run, key=unicodedata.combining) if is_marks else run for is_marks, run in runs)
    return "".join(letter for run in ordered for letter in run)

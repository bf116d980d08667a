"""Fits what a language model is shown into the tokens of a request."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from memlog.query.context.model_tokens import CHARACTERS
from memlog.query.context.token_counters import tokens

_HEAD, _TAIL = 1000, 500
"""Characters of the output of a tool that are shown: its beginning says what it is, its end how it went."""

_LEAST_DATA = 256
"""Characters of encoded data that are left out; a hash or a token of an address is shorter."""

_DATA = re.compile(
    r"(?:[A-Za-z0-9+/=_-]{24,}+(?:[\s>|]|\\[nr])*+)+"
    r"|(?:\b(?:0x)?[0-9A-Fa-f]{1,8}\b(?:[\s,;:.>\[\]]|\\[nr]|\|[^|\n]{0,40}\|)*+){100,}+"
)
"""Base64 and such in lines of any length, quoted, too; a hundred bytes or numbers one after another."""

_FENCED = re.compile(r"(```[^\n]*\n)(.*?)(\n```)", re.DOTALL)
"""What stands in a message as it is: code, a log, the output of a tool."""


_LEAST_TEXT = 64
"""Tokens of a piece of a text, however small the room is: a piece of a few words tells a model nothing."""

FRAME = 4
"""Tokens of a request around its entries."""


def shortened(role: str, text: str) -> str:
    """Return a message without encoded data, and of what a tool wrote, or what stands in a fence, its
    beginning and its end."""
    text = _DATA.sub(_without_data, text)
    text = _FENCED.sub(lambda found: f"{found[1]}{_ends_of(found[2])}{found[3]}", text)
    return _ends_of(text) if role == "tool" else text


def _ends_of(text: str) -> str:
    left_out = len(text) - _HEAD - _TAIL
    if left_out <= 0:
        return text
    return f"{text[:_HEAD]}\n[{left_out:,} characters left out]\n{text[-_TAIL:]}"


def _without_data(found: re.Match[str]) -> str:
    size = len(found[0])
    behind = " " if found[0][-1].isspace() else ""
    return found[0] if size < _LEAST_DATA else f"[{size:,} characters of data left out]{behind}"


def size_of(entry: dict[str, Any]) -> int:
    """Return the tokens that an entry takes in a request."""
    return tokens(msgspec.json.encode(entry).decode(), "model") + 1  # the comma


def cut(text: str, room: int) -> str:
    """Return the beginning of a text, of at most `room` tokens."""
    return next(_pieces(text, room))


def packed(entries: Iterable[dict[str, Any]], member: str, room: int) -> Iterator[list[dict[str, Any]]]:
    """Yield lists of entries, each of at most `room` tokens as JSON. An entry that is longer is given in
    pieces of its text, which is its `member`. Less room than an entry needs around it is exceeded."""
    part: list[dict[str, Any]] = []
    room = max(1, room - FRAME)
    left = room
    for entry in entries:
        for piece in _entries(entry, member, room):
            needed = size_of(piece)
            if part and needed > left:
                yield part
                part, left = [], room
            part.append(piece)
            left -= needed
    if part:
        yield part


def _entries(entry: dict[str, Any], member: str, room: int) -> Iterator[dict[str, Any]]:
    if size_of(entry) <= room:
        yield entry
        return
    frame = size_of({**entry, member: ""})
    yield from ({**entry, member: piece} for piece in _pieces(entry[member], max(_LEAST_TEXT, room - frame)))


def _pieces(text: str, room: int) -> Iterator[str]:
    """Yield a text in pieces of at most `room` tokens as JSON, cut behind a space where there is one."""
    start = 0
    while True:
        end = min(len(text), start + room * CHARACTERS)
        while (needed := _tokens(text[start:end])) > room and end - start > 1:
            end = start + max(1, (end - start) * room * 9 // (needed * 10))
        if end < len(text):
            space = text.rfind(" ", start + (end - start) * 3 // 4, end)
            end = space + 1 if space > start else end
        yield text[start:end]
        if end >= len(text):
            return
        start = end


def _tokens(text: str) -> int:
    return tokens(msgspec.json.encode(text).decode(), "model")

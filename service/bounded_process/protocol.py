"""The messages between memlog and its bounded process: frames of a length and a message in MessagePack."""

from typing import Literal

import msgspec

MEMORY = 1024 * 1024 * 1024
"""Bytes that the process may take. Measured: 10 MiB of HTML take 490 MB."""

CLOCK_SHARE = 4
"""Seconds by the clock for one of the processor: the machine may have other work."""

LENGTH_BYTES = 4
MAX_TEXT_BYTES = 16 * 1024 * 1024
"""An event has at most 16 MiB: a longer text is no document."""

MAX_REPLY = MAX_TEXT_BYTES + 1024
"""A reply is a text, or a verdict on each path of a batch."""


class Extract(msgspec.Struct, frozen=True, tag=True):
    """Asks for the text of a file; `seconds` of the processor at most."""

    data: bytes
    filetype: str
    seconds: int


class Match(msgspec.Struct, frozen=True, tag=True):
    """Asks which paths a .gitignore leaves out; `seconds` of the processor at most.

    key: names the rules. rules: the text of the file; None where this process has had it.
    """

    key: bytes
    rules: bytes | None
    paths: list[bytes]
    seconds: int


class SearchTexts(msgspec.Struct, frozen=True, tag=True):
    """Asks whether a regular expression matches in one of some texts; `seconds` of the processor at most."""

    pattern: str
    texts: list[str]
    seconds: int


class TextReply(msgspec.Struct, frozen=True, tag=True):
    """The text of a file."""

    text: str


class Verdicts(msgspec.Struct, frozen=True, tag=True):
    """For each path: left out (True), taken (False), or not mentioned by the rules (None).

    Of texts one verdict: whether the pattern matches.
    """

    verdicts: list[bool | None]


class Failed(msgspec.Struct, frozen=True, tag=True):
    """No answer, and why; `detail` is the message of the library."""

    why: Literal["damaged", "no_reader", "memory", "too_large"]
    detail: str = ""


_ENCODER = msgspec.msgpack.Encoder()

Request = Extract | Match | SearchTexts
Reply = TextReply | Verdicts | Failed


class ReaderExited(Exception):
    """The process ended within a request. by: the signal that ended it; None where none did."""

    def __init__(self, by: int | None, printed: bytes) -> None:
        super().__init__(by)
        self.by = by
        self.printed = printed


class TooLate(Exception):
    """There was no reply in time."""


def framed(message: Request | Reply) -> bytearray:
    """A message as it goes through a pipe. It may be large, and is copied once."""
    frame = bytearray(LENGTH_BYTES)
    _ENCODER.encode_into(message, frame, LENGTH_BYTES)
    frame[:LENGTH_BYTES] = (len(frame) - LENGTH_BYTES).to_bytes(LENGTH_BYTES, "big")
    return frame


def length_of(head: bytes) -> int:
    """How many bytes of a message follow its first `LENGTH_BYTES`."""
    return int.from_bytes(head, "big")

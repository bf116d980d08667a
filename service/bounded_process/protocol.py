"""The messages between memlog and its bounded process: frames of a length and a message in MessagePack."""

from typing import Literal

import msgspec

from memlog.query.foreign_tables import TablePage

MEMORY = 1024 * 1024 * 1024
"""Bytes that the process may take. Measured: 10 MiB of HTML take 490 MB."""

CLOCK_SHARE = 4
"""Seconds by the clock for one of the processor: the machine may have other work."""

LENGTH_BYTES = 4
MAX_TEXT_BYTES = 16 * 1024 * 1024
"""An event has at most 16 MiB: a longer text is no document."""

MAX_REPLY = 2 * MAX_TEXT_BYTES + 1024 * 1024
"""A reply is a text, a verdict on each path of a batch, or a page of rows."""

Why = Literal["damaged", "no_reader", "limit"]


class Extract(msgspec.Struct, frozen=True, tag=True):
    """Asks for the text of a file; `seconds` of the processor at most."""

    data: bytes
    filetype: str
    seconds: int


class Match(msgspec.Struct, frozen=True, tag=True):
    """Asks which paths the text of a .gitignore excludes; `seconds` of the processor at most."""

    rules: bytes
    paths: list[bytes]
    seconds: int


class SearchTexts(msgspec.Struct, frozen=True, tag=True):
    """Asks whether a regular expression matches in one of some texts; `seconds` of the processor at most."""

    pattern: str
    texts: list[str]
    seconds: int


class ReadTable(msgspec.Struct, frozen=True, tag=True):
    """Asks for the first rows of a table of an SQLite file; `seconds` of the processor at most.

    known: the columns that are wanted.
    """

    path: str
    table: str
    known: list[str]
    seconds: int


class MoreRows(msgspec.Struct, frozen=True, tag=True):
    """Asks for the next rows of that table; `seconds` of the processor at most."""

    seconds: int


class EmbedTexts(msgspec.Struct, frozen=True, tag=True):
    """Asks for the multilingual model's vectors of texts; `seconds` of the processor at most."""

    texts: list[str]
    is_query: bool
    seconds: int


class VectorsReply(msgspec.Struct, frozen=True, tag=True):
    """Vectors as float32, little endian, one behind the other."""

    vectors: bytes


class TextReply(msgspec.Struct, frozen=True, tag=True):
    """The text of a file."""

    text: str


class Verdicts(msgspec.Struct, frozen=True, tag=True):
    """For each path: excluded (True), included (False), or not mentioned by the rules (None).

    For texts one verdict: whether the pattern matches one of them.
    """

    verdicts: list[bool | None]


class Failed(msgspec.Struct, frozen=True, tag=True):
    """No answer, and why.

    detail: the message of the library. is_final: whether a new process would fail, too.
    """

    why: Why
    detail: str = ""
    is_final: bool = True


_ENCODER = msgspec.msgpack.Encoder()

Request = Extract | Match | SearchTexts | ReadTable | MoreRows | EmbedTexts
Reply = TextReply | Verdicts | TablePage | VectorsReply | Failed


class ReaderFailed(Exception):
    """The process gave no answer; see `Failed`."""

    def __init__(self, why: Why, detail: str, *, is_final: bool = True) -> None:
        super().__init__(detail)
        self.why: Why = why
        self.is_final = is_final


def framed(message: Request | Reply) -> bytearray:
    """A message as it goes through a pipe. It may be large, and is copied once."""
    frame = bytearray(LENGTH_BYTES)
    _ENCODER.encode_into(message, frame, LENGTH_BYTES)
    frame[:LENGTH_BYTES] = (len(frame) - LENGTH_BYTES).to_bytes(LENGTH_BYTES, "big")
    return frame


def length_of(head: bytes) -> int:
    """How many bytes of a message follow its first `LENGTH_BYTES`."""
    return int.from_bytes(head, "big")

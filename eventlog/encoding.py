"""JSON to and from bytes, where msgspec alone would crash or raise one of several errors."""

import zlib
from typing import TypeVar

import msgspec

CRC_LENGTH = len(b',"crc":"00000000"}')
_plain = msgspec.json.Encoder()
_T = TypeVar("_T")


def encoded(value: object, encoder: msgspec.json.Encoder = _plain) -> bytes:
    """`value` as JSON. Raises MemoryError."""
    return bytes(encoded_buffer(value, encoder))


def encoded_buffer(value: object, encoder: msgspec.json.Encoder) -> bytearray:
    """As `encoded`, into a buffer: `Encoder.encode` of msgspec 0.22 crashes when memory runs out."""
    buffer = bytearray()
    encoder.encode_into(value, buffer)
    return buffer


def with_crc(body: bytes) -> bytes:
    """An object with its crc as the last member; `body` lacks the closing brace."""
    return body + b',"crc":"%08x"}' % zlib.crc32(body)


def has_its_crc(line: bytes) -> bool:
    """Whether a line ends with the right crc."""
    return line.endswith(b',"crc":"%08x"}' % zlib.crc32(line[:-CRC_LENGTH]))


def decoded(line: bytes | bytearray, kind: type[_T]) -> _T | None:
    """The value of a line of JSON; None if it is torn, of another kind or too deep."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None

"""Encodes long values as JSON without a crash when memory runs out."""

import msgspec

_plain = msgspec.json.Encoder()


def encoded(value: object, encoder: msgspec.json.Encoder = _plain) -> bytes:
    """`value` as JSON. Raises MemoryError; see `encoded_buffer`."""
    return bytes(encoded_buffer(value, encoder))


def encoded_buffer(value: object, encoder: msgspec.json.Encoder) -> bytearray:
    """`value` as JSON in a buffer.

    Raises:
        MemoryError: memory runs out; `Encoder.encode` of msgspec 0.22 would crash the process.
    """
    buffer = bytearray()
    encoder.encode_into(value, buffer)
    return buffer

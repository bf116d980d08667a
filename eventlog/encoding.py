"""JSON of values that may be as long as an event."""

import msgspec

_plain = msgspec.json.Encoder()


def encoded(value: object, encoder: msgspec.json.Encoder = _plain) -> bytes:
    """`value` as JSON.

    Raises:
        MemoryError: see `encoded_buffer`.
    """
    return bytes(encoded_buffer(value, encoder))


def encoded_buffer(value: object, encoder: msgspec.json.Encoder) -> bytearray:
    """`value` as JSON, in the buffer that it was written to.

    Raises:
        MemoryError: memory runs out, where `Encoder.encode` of msgspec 0.22 crashes the process.
    """
    buffer = bytearray()
    encoder.encode_into(value, buffer)
    return buffer

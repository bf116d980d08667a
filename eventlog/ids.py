"""Event ids: UUID version 7 (RFC 9562, section 5.7), which sort by creation time."""

import os
import time


def new_id() -> str:
    """A new UUIDv7 in its usual text form."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10))
    value = (milliseconds & (2**48 - 1)) << 80 | random & (2**80 - 1)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

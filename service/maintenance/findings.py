"""What an examination of a store finds."""

from typing import Literal

import msgspec

State = Literal["ok", "warning", "problem", "fixed"]


class Finding(msgspec.Struct, frozen=True):
    """What was found of one thing. check: what was looked at. remedy: what a person can do; "" where nothing
    need be done. A warning may stay; a `problem` is one that memlog cannot work well with.
    """

    check: str
    state: State
    finding: str
    remedy: str = ""


def numbered(count: int, one: str, many: str) -> str:
    """`1 segment is`, `2 segments are`: the number with `one` or with `many`."""
    return f"{count:,} {one if count == 1 else many}"

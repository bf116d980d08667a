"""What an examination of a store finds."""

from collections.abc import Iterable
from typing import Literal

import msgspec

State = Literal["ok", "warning", "problem", "fixed"]


class Finding(msgspec.Struct, frozen=True):
    """The result of one check.

    state: a `warning` may stay; with a `problem` memlog does not work well.
    remedy: what a person can do; "" where nothing need be done.
    """

    check: str
    state: State
    finding: str
    remedy: str = ""


def or_ok(check: str, findings: Iterable[Finding], said: str) -> list[Finding]:
    """The findings of a check; where it found nothing, that it is well, as `said`."""
    return [*findings] or [Finding(check, "ok", said)]


def numbered(count: int, one: str, many: str) -> str:
    """`1 segment is`, `2 segments are`: the number with `one` or with `many`."""
    return f"{count:,} {one if count == 1 else many}"

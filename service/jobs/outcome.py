"""What a step of a job did."""

from collections.abc import Sequence

import msgspec


class Outcome(msgspec.Struct, frozen=True):
    """How many things a step changed. note: what it leaves to do, or to look at."""

    count: int
    note: str | None = None


def set_aside_note(whys: Sequence[str]) -> str | None:
    """Return what a step leaves until tomorrow, by the reasons; None where it leaves nothing."""
    # Without names: the line of the run outlives a chat that is forgotten.
    return f"set aside until tomorrow: {len(whys)}, the last: {whys[-1]}" if whys else None


def kept_note(count: int) -> str | None:
    """Return how many imported memories a step has not sent; None where there is none."""
    return f"imported memories not sent (extraction.channels does not name them): {count}" if count else None

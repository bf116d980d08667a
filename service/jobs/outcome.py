"""What a step of a job did."""

import msgspec


class Outcome(msgspec.Struct, frozen=True):
    """How many things a step changed. note: what it leaves to do, or to look at."""

    count: int
    note: str | None = None

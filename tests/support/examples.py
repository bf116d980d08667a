"""How many examples a property test draws: few in `make test`, many in `make test-deep`."""

import os


def examples(few: int) -> int:
    """So many, times MEMLOG_EXAMPLES (default 1; `make test-deep` sets it)."""
    return few * int(os.environ.get("MEMLOG_EXAMPLES", "1"))

"""Which of the ids that a caller names stand."""

from collections.abc import Sequence

import msgspec

from memlog.projector.sqlite import Connection


def unknown(db: Connection, ids: Sequence[str], known: str) -> list[str]:
    """Those of `ids` that do not stand, once each, in their order.

    known: a query for the ids that do.
    """
    rows = db.execute(
        f"SELECT value FROM json_each(?) WHERE value NOT IN ({known}) ORDER BY key",
        (msgspec.json.encode(ids).decode(),),
    )
    return list(dict.fromkeys(each for (each,) in rows))

"""The events that this run has stored: their ids, for a failed acknowledgement, and their warnings."""

from collections import Counter
from collections.abc import Sequence

import memlog
from memlog.cli.output import note

_MOST_IDS = 5
_MOST_KINDS = 20

_Kind = tuple[str, str]


class StoredEvents:
    """The events that a run has stored.

    count: of events not acknowledged yet. ids: of the first of them.
    """

    def __init__(self) -> None:
        self.count = 0
        self.ids: list[str] = []
        self._warnings: Counter[_Kind] = Counter()
        self._first: dict[_Kind, str] = {}

    def add(self, positions: "Sequence[memlog.Position]") -> None:
        """Add durable events, and print their warnings, each kind once."""
        self.count += len(positions)
        self.ids += [position.id for position in positions[: _MOST_IDS - len(self.ids)]]
        for position in positions:
            for warning in position.warnings:
                self._warn(warning)

    def acknowledged(self) -> None:
        """Forget the events: they have been acknowledged."""
        self.count = 0
        self.ids = []

    def print_repeated_warnings(self) -> None:
        """Print how often each kind of warning was repeated, and forget them: the run ends."""
        for kind, count in self._warnings.items():
            if kind not in self._first:
                note(f"{count} warnings of other kinds are in the acknowledgements")
            elif count > 1:
                note(f"{count - 1} more of: {self._first[kind]}")
        self._warnings.clear()
        self._first.clear()

    def _warn(self, warning: "memlog.AppendWarning") -> None:
        kind = warning.code, warning.member
        if kind not in self._first and len(self._first) >= _MOST_KINDS:
            kind = "", ""
        elif kind not in self._first:
            self._first[kind] = warning.message
            note(warning.message)
        self._warnings[kind] += 1


STORED = StoredEvents()
"""The events of this run."""

"""Writes logs in memlog's first format: segments without a writer's name, and one file of seals.

This code is independent of today's appending, so that fixtures in the first format stay the same to the byte.
"""

from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from memlog.eventlog.codec.encode import draft_event
from memlog.eventlog.events import Event
from memlog.eventlog.integrity.seal_format import FIRST, Seal, blank_hash, compute_link_hash, encode_seal


class OlderLog:
    """The log of the store at `folder`, as an older memlog appended to it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "log"
        self.seals = self.path / "seals.jsonl"
        self._sealed: defaultdict[str, set[str]] = defaultdict(set)

    def append(self, event: "Event | dict[str, Any]", at: str) -> None:
        """Append an event at this time. The first of a day seals the stream's older segments."""
        made = draft_event(event)
        segment = self.path / made.stream / f"{at[:10]}.jsonl"
        segment.parent.mkdir(parents=True, exist_ok=True)
        if not segment.exists():
            self._seal_older(made.stream, segment, at)
        with segment.open("ab") as file:
            file.write(made.build_line(at))

    def seal(self, stream: str, segment: str, at: str, *, lost: int | None = None) -> None:
        """Seal a segment as it is, also when it is missing. lost: bytes whose loss a person has accepted."""
        path = self.path / stream / segment
        data = path.read_bytes() if path.exists() else b""
        sealed = self.seals.read_bytes().splitlines() if self.seals.exists() else []
        prev = compute_link_hash(sealed[-1]) if sealed else FIRST
        lines = data.count(b"\n")
        with self.seals.open("ab") as file:
            file.write(
                encode_seal(Seal(stream, segment, len(data), lines, sha256(data).hexdigest(), prev, at, lost))
            )

    def blank_first_seal(self) -> None:
        """Erase the hash of the first seal, as an erasure of bytes of its segment does."""
        first, *rest = self.seals.read_bytes().splitlines(keepends=True)
        self.seals.write_bytes(blank_hash(first.rstrip(b"\n")) + b"\n" + b"".join(rest))

    def _seal_older(self, stream: str, newest: Path, at: str) -> None:
        for path in sorted(newest.parent.glob("*.jsonl")):
            if path.name not in self._sealed[stream]:
                self._sealed[stream].add(path.name)
                self.seal(stream, path.name, at)

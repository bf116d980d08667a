"""The log of a month line by line, as it came into being, and what it should leave."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from memlog.eventlog.log.layout import SEALS
from memlog.projector.lifecycle import Generations, Projector
from tests.support import victim as victim_process

EVENTS = 2000


class Line(NamedTuple):
    """A line of a segment, or of the seals. arrival: when it was written."""

    arrival: str
    is_event: bool
    path: str
    data: bytes


class MonthLog:
    """The log of the month that `tests.support.month` has made in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"

    def lines(self) -> list[Line]:
        """All lines in the order in which they were written."""
        return sorted(self._lines(), key=lambda line: line[:2])

    def parts(self, every: int) -> Iterator[list[Line]]:
        """The lines, so many events at a time; a seal goes with the event behind it."""
        part: list[Line] = []
        count = 0
        for line in self.lines():
            part.append(line)
            count += line.is_event
            if line.is_event and count % every == 0:
                yield part
                part = []
        if part:
            yield part

    def standing(self) -> dict[str, str]:
        """The content of the memories that should be found, by id: computed without the projector, from the
        events of the memory in the one order."""
        events = sorted(self._of_memories(), key=lambda event: event["place"])
        gone = {event["target_id"] for event in events if event["type"] == "redacted"}
        known: dict[str, str | None] = {}
        for event in events:
            match event["type"]:
                case "memory_saved" if event["id"] not in gone:
                    known[event["memory_id"]] = event["content"]
                case "memory_updated" if known.get(event["memory_id"]):
                    known[event["memory_id"]] = event.get("content") or known[event["memory_id"]]
                case "memory_archived" | "memory_deleted":
                    known[event["memory_id"]] = None
        return {memory_id: content for memory_id, content in known.items() if content is not None}

    def said_of_memories(self) -> dict[str, set[str]]:
        """All that was ever said of each memory."""
        said: dict[str, set[str]] = {}
        for event in self._of_memories():
            if event.get("content"):
                said.setdefault(event["memory_id"], set()).add(event["content"])
        return said

    def redacted(self) -> list[str]:
        """What the events that were redacted had said."""
        written = [json.loads(line.data) for line in self.lines() if line.is_event]
        gone = {event["target_id"] for event in written if event["type"] == "redacted"}
        return [event.get("content") or event["value"] for event in written if event["id"] in gone]

    def _of_memories(self) -> list[dict[str, Any]]:
        """The events of the memory, each with its place in the one order."""
        return [
            json.loads(data) | {"place": (json.loads(data)["ts"], path.name, number)}
            for path in (self.log / "memory").glob("*.jsonl")
            for number, data in enumerate(path.read_bytes().splitlines())
        ]

    def _lines(self) -> Iterator[Line]:
        for path in sorted(self.log.rglob("*.jsonl")):
            name = str(path.relative_to(self.log.parent))
            for data in path.read_bytes().splitlines(keepends=True):
                members = json.loads(data)
                # Others write no `at`; the scheduler of this month says it in its own way.
                arrival = members.get("at") or members["meta"]["written_at"]
                yield Line(arrival, path.name != SEALS, name, data)


def write(store: Path, some: Sequence[Line]) -> None:
    """Append lines to the log of a store."""
    for line in some:
        path = store / line.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(line.data)


@contextmanager
def victim() -> Iterator[Callable[[Path, str, float], None]]:
    """Has a child of another process project or rebuild a store, and kills it after so many seconds."""
    process = victim_process.started()
    assert process.stdin is not None
    assert process.stdout is not None

    def strike(store: Path, what: str, seconds: float) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        print(
            json.dumps({"store": str(store), "what": what, "seconds": seconds}),
            file=process.stdin,
            flush=True,
        )
        assert json.loads(process.stdout.readline()) == []

    yield strike
    process.stdin.close()
    assert process.wait(10) == 0


def is_behind(store: Path) -> bool:
    """Whether the read model lacks lines of the log."""
    if Generations(store).find_live_file() is None:
        return True
    projector = Projector(store)
    (done,) = (
        projector.connect_to_live().execute("SELECT coalesce(sum(offset), 0) FROM checkpoints").fetchone()
    )
    projector.close()
    segments = (path for path in (store / "log").rglob("*.jsonl") if path.name != SEALS)
    return bool(done < sum(path.stat().st_size for path in segments))

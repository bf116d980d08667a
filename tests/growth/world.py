"""What functions that take text need beside it: a store with a little of everything, and plain values."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import memlog
from memlog.eventlog.codec.upcast import Place
from memlog.eventlog.events import Event
from memlog.eventlog.integrity.seal_file import SealIndex
from memlog.eventlog.log.streams import SegmentName
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import Connection, connect
from memlog.projector.text.marks import marks_of
from memlog.query.filters import Filters
from memlog.service.documents.scan import Patterns

TODAY = "2026-02-24"
STREAM = "conversations/cli_1"

_EVENTS = (
    memlog.Message(channel="cli", chat_id="1", role="user", content="I like green tea", id="m-1"),
    memlog.MemorySaved(content="Anna drinks green tea", memory_id="tea"),
    memlog.FactStored(topic_key="favorite_teas", value="green", rank=1, kind="ranked"),
    memlog.CoreMemoryUpdated(section="user", key="name", value="Anna"),
)


class World:
    """A store in a folder of its own, without a model, and what its parts are made from."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="growth-"))
        self.path = self.folder / "store"
        self.store = memlog.open(self.path, durability="os", model=self.folder / "none")
        self.store.append(_EVENTS)
        (segment,) = (self.path / "log" / STREAM).glob("*.jsonl")
        with segment.open("ab") as file:
            file.write(b'{"id":"torn\n')
        self.store.maintenance.project()

    def close(self) -> None:
        """Leave nothing."""
        self.store.close()
        shutil.rmtree(self.folder)

    @cached_property
    def db(self) -> Connection:
        """The read model; what a function writes to it is undone after each call."""
        (live,) = (self.path / "model").glob("*.db")
        return connect(live, "write")

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Takes back what is written to the read model."""
        self.db.execute("SAVEPOINT growth")
        try:
            yield
        finally:
            self.db.execute("ROLLBACK TO growth")
            self.db.execute("RELEASE growth")

    message = _EVENTS[0]
    marks = marks_of(["green", "tea"])

    @cached_property
    def values(self) -> dict[Any, Callable[[], Any]]:
        """By annotation."""
        return {
            Connection: lambda: self.db,
            Path: lambda: self.path / "log",
            ChunkSizes: ChunkSizes,
            Event: lambda: self.message,
            Filters: Filters,
            Place: lambda: Place(STREAM, SegmentName(TODAY), 0),
            bool: lambda: False,
            int: lambda: 8,
            float: lambda: 0.5,
        }

    @cached_property
    def objects(self) -> dict[str, Callable[[], Any]]:
        """By the name of its class, what a method is called of."""
        store, engine = self.store, self.store._engine
        return {
            "Store": lambda: store,
            "Memories": lambda: store.memories,
            "Documents": lambda: store.documents,
            "Workspaces": lambda: store.workspaces,
            "Facts": lambda: store.facts,
            "Core": lambda: store.core,
            "DailyEvents": lambda: store.daily,
            "ReadModel": lambda: engine.read_model,
            "Erasure": lambda: store.erasure,
            "Conversations": lambda: store.conversations,
            "Maintenance": lambda: store.maintenance,
            "Log": lambda: engine.log,
            "Patterns": lambda: Patterns(("*.md",), ("old*",)),
            "SealIndex": SealIndex,
        }

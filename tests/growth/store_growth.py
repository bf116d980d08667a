"""How the steps of operations grow with what a store holds: each is counted at n and at 4n.

A step is a line of Python that runs, or 100 instructions of SQLite's virtual machine: the counts are the same
on every run, whatever else the machine does. Linear work gives a ratio of 4, quadratic work one of 16.
"""

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import memlog
from memlog.eventlog.files import disk
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments
from memlog.eventlog.log.writer import Log
from memlog.projector import sqlite

LIMIT = 6
"""The ratio of 4n to n above which an operation grows too fast: between linear, 4, and quadratic, 16."""

FLOOR = 20_000
"""Steps below which growth does not count: what an operation takes beside its growth."""

_CHAT = {"channel": "c", "chat_id": "1"}
_STREAM = "conversations/c_1"

Fill = Callable[[Path, int], None]


def _append(store: Path, events: Any) -> None:
    Log(store, durability="os").append(events)


def _said(number: int, **members: Any) -> dict[str, Any]:
    content = f"we talked about item {number} and green tea number {number % 97}"
    return {"type": "message", **_CHAT, "role": "user", "content": content} | members


def messages(store: Path, count: int) -> None:
    _append(store, map(_said, range(count)))


def streams(store: Path, count: int) -> None:
    _append(store, (_said(number, chat_id=str(number)) for number in range(count)))


def segments(store: Path, count: int) -> None:
    folder = store / "log" / _STREAM
    folder.mkdir(parents=True)
    for number in range(count):
        day = date(2020, 1, 1) + timedelta(number)
        (folder / f"{day.isoformat()}.jsonl").write_bytes(b'{"role":"user","content":"tea %d"}\n' % number)


def memories(store: Path, count: int) -> None:
    _append(
        store,
        (
            {
                "type": "memory_saved",
                "memory_id": f"m{n}",
                "content": f"memory {n} about tea",
                "category": "context",
            }
            for n in range(count)
        ),
    )


def memory_saved_again(store: Path, count: int) -> None:
    _append(store, ({"type": "memory_saved", "memory_id": "m", "content": f"tea {n}"} for n in range(count)))


def memory_accessed(store: Path, count: int) -> None:
    memories(store, 5)
    _append(store, ({"type": "memory_accessed", "memory_ids": ["m1", "m2"]} for _ in range(count)))


def contexts_given(store: Path, count: int) -> None:
    messages(store, count)
    chat = f"{_CHAT['channel']}:{_CHAT['chat_id']}"
    entries = [{"part": "window", "id": "m1", "stream": _STREAM}, {"part": "memory", "id": "m1"}]
    given = {"type": "context_given", "chat_id": chat, "entries": entries}
    _append(store, (given | {"message_id": f"m{n}"} for n in range(count)))


def memories_deleted(store: Path, count: int) -> None:
    memories(store, count)
    _append(store, ({"type": "memory_deleted", "memory_id": f"m{n}"} for n in range(count)))


def decays(store: Path, count: int) -> None:
    memories(store, 20)
    _append(
        store,
        (
            {
                "type": "salience_decayed",
                "ts": f"2099-01-01T{n % 24:02d}:00:00.000Z",
                "rates": {"context": 0.999},
            }
            for n in range(count)
        ),
    )


def facts(store: Path, count: int) -> None:
    _append(
        store,
        (
            {
                "type": "fact_stored",
                "topic_key": f"topic_{n}",
                "kind": "single",
                "rank": 0,
                "value": f"tea {n}",
            }
            for n in range(count)
        ),
    )


def ranked_facts(store: Path, count: int) -> None:
    _append(
        store,
        (
            {"type": "fact_stored", "topic_key": "teas", "kind": "ranked", "rank": n + 1, "value": f"tea {n}"}
            for n in range(count)
        ),
    )


def core_keys(store: Path, count: int) -> None:
    _append(
        store,
        (
            {"type": "core_memory_updated", "section": "user", "key": f"k{n}", "value": f"tea {n}"}
            for n in range(count)
        ),
    )


def sessions(store: Path, count: int) -> None:
    _append(store, (event for n in range(count) for event in ({"type": "session_break", **_CHAT}, _said(n))))


def summaries(store: Path, count: int) -> None:
    _append(store, ({"type": "summary_written", **_CHAT, "content": f"tea {n}"} for n in range(count)))


def daily_events(store: Path, count: int) -> None:
    _append(
        store,
        (
            {"type": "daily_event_recorded", "event_date": f"2026-01-{1 + n % 28:02d}", "summary": f"tea {n}"}
            for n in range(count)
        ),
    )


def documents(store: Path, count: int) -> None:
    source = {"type": "source_registered", "source_id": "d", "kind": "docs", "root": "/nowhere"}
    texts = (
        {
            "type": "document_indexed",
            "source_id": "d",
            "file": f"f{n}.md",
            "filetype": "md",
            "content": f"# Tea {n}\n\ntext",
        }
        for n in range(count)
    )
    _append(store, [source, *texts])


def sources(store: Path, count: int) -> None:
    _append(
        store,
        (
            {"type": "source_registered", "source_id": f"d{n}", "kind": "docs", "root": f"/nowhere/{n}"}
            for n in range(count)
        ),
    )


def redactions(store: Path, count: int) -> None:
    """Of ids that nothing has, beside as many lines that are no events."""
    messages(store, 5)
    (segment,) = (store / "log" / _STREAM).iterdir()
    with segment.open("ab") as file:
        file.write(b"no event\n" * count)
    with memlog.open(store) as opened:
        opened.maintenance.project(embed=False)
    _append(
        store, ({"type": "redacted", "target_id": f"nobody-{n}", "stream": _STREAM} for n in range(count))
    )


def conflicts(store: Path, count: int) -> None:
    _append(store, (_said(n, id=f"m{n // 2}") for n in range(count)))


def duplicates(store: Path, count: int) -> None:
    _append(store, (_said(n // 10, id=f"m{n // 10}") for n in range(count)))


SHAPES: dict[Fill, int] = {
    messages: 600,
    streams: 80,
    segments: 120,
    memories: 300,
    memory_saved_again: 400,
    memory_accessed: 400,
    contexts_given: 300,
    memories_deleted: 300,
    decays: 300,
    facts: 400,
    ranked_facts: 400,
    core_keys: 400,
    sessions: 300,
    summaries: 300,
    daily_events: 400,
    documents: 300,
    sources: 300,
    redactions: 600,
    conflicts: 500,
    duplicates: 500,
}
"""Each way in which a store grows, and n."""

Operation = Callable[[memlog.Store], object]

OPERATIONS: dict[str, Operation] = {
    "catch up": lambda store: store.maintenance.project(embed=False),
    "rebuild": lambda store: store.maintenance.project(embed=False, from_scratch=True),
    "query": lambda store: store.search("tea", mode="text"),
    "sessions": lambda store: store.conversations.sessions(all=True),
    "summaries": lambda store: store.conversations.summaries(),
    "memory list": lambda store: store.memories.list(),
    "fact list": lambda store: store.facts.list(),
    "core show": lambda store: store.core.get(),
    "daily list": lambda store: store.daily.list(),
    "docs list": lambda store: store.documents.list(),
    "docs tree": lambda store: store.documents.tree(),
    "docs status": lambda store: store.documents.status(),
    "stats": lambda store: store.maintenance.stats(),
    "quarantine": lambda store: store.maintenance.quarantine(),
    "secrets": lambda store: store.erasure.secrets(),
    "verify": lambda store: store.maintenance.verify(),
    "digest": lambda store: store.maintenance.digest(),
    "decay": lambda store: store.memories.decay(),
    "prune": lambda store: store.memories.prune(),
    "seal": lambda store: seal_unsealed_segments(store.path),
    "append": lambda store: store.append([_said(0)]),
    "forget": lambda store: store.erasure.forget(match="tea"),
    "scrub": lambda store: store.erasure.scrub(),
}


def measured(fill: Fill, count: int) -> Iterator[tuple[str, int]]:
    """The steps of each operation on a store of `count`, appending it first."""
    with tempfile.TemporaryDirectory() as folder, counted() as steps:
        path = Path(folder, "store")
        yield "fill", steps(lambda: fill(path, count))
        with memlog.open(path, durability="os") as store:
            for name, operation in OPERATIONS.items():
                yield name, steps(lambda operation=operation: operation(store))  # type: ignore[misc]


def grown_too_fast(small: dict[str, int], large: dict[str, int]) -> dict[str, float]:
    """The operations whose steps grew more than LIMIT times, and how often."""
    ratios = {name: large[name] / max(FLOOR, small[name]) for name in small}
    return {name: round(ratio, 1) for name, ratio in ratios.items() if ratio > LIMIT}


@contextmanager
def counted() -> Iterator[Callable[[Callable[[], object]], int]]:
    """A function that runs work and returns its steps, on connections that are opened inside the context."""
    count = 0
    connected = sqlite._open_database

    def line(*_: object) -> Any:
        nonlocal count
        count += 1
        return line

    def instructions() -> int:
        line()
        return 0

    def watched(*args: Any) -> Any:
        db = connected(*args)
        db.set_progress_handler(instructions, 100)
        return db

    def steps(work: Callable[[], object]) -> int:
        nonlocal count
        count = 0
        threading.settrace(line)
        sys.settrace(line)
        try:
            work()
        finally:
            sys.settrace(None)
            threading.settrace(None)
        return count

    with (
        mock.patch.object(sqlite, "_open_database", watched),
        mock.patch.multiple(disk, sync=lambda _: None, sync_data=lambda _: None),
    ):
        yield steps

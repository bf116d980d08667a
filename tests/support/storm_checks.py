"""What must be true of a store that nobody is writing to, whatever was killed before.

The log is read by code of its own: a check that shared memlog's reader would share its faults.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.storm_workload import Ack, Event, run_memlog

_SHOWN = 5


@dataclass
class LogContents:
    """The lines of all segments.

    ids: how often each stands in a whole line.
    broken: lines that are not whole.
    falling: lines whose `at` is lower than that of a line before them in their segment.
    """

    ids: Counter[str] = field(default_factory=Counter)
    broken: int = 0
    falling: int = 0


def problems_of(store: Path, submitted: Mapping[str, Event], acknowledged: Iterable[Ack]) -> list[str]:
    """Project the log, and say what is wrong with the store; nothing where all is well.

    submitted: every event that a writer may have written, by id; ids are unique over the store.
    """
    return event_problems(store, submitted, acknowledged) + replay_problems(store)


def event_problems(store: Path, submitted: Mapping[str, Event], acknowledged: Iterable[Ack]) -> list[str]:
    """Project the log, and say which events are not there once, as they were submitted, at their place."""
    projected = run_memlog(store, "project", "--no-embed", "--json")
    if projected.returncode != 0:
        return [f"project: exit {projected.returncode}: {projected.stderr.decode()}"]
    acknowledged = list(acknowledged)
    log = read_log(store)
    with closing(read_model(store)) as db:
        problems = [
            *json.loads(projected.stdout)["notes"],
            *_presence_problems(db, submitted, acknowledged),
            *_content_problems(db, submitted),
            *_count_problems(db, log),
            *_position_problems(store, acknowledged),
        ]
    if log.falling:
        problems.append(f"`at` falls at {log.falling} lines")
    return problems


def rebuild_problems(store: Path) -> list[str]:
    """Rebuild from scratch: that must work, and remove what killed rebuilds left."""
    done = run_memlog(store, "project", "--from-scratch", "--no-embed", "--json")
    if done.returncode != 0:
        return [f"project --from-scratch: exit {done.returncode}: {done.stderr.decode()}"]
    generations = sorted(path.name for path in (store / "model").glob("*.db"))
    sides = {f"{name}{side}" for name in generations for side in ("-wal", "-shm")}
    leftovers = {path.name for path in (store / "model").glob("*.db-*")} - sides
    if (store / "model" / "CURRENT.new").exists():
        leftovers.add("CURRENT.new")
    problems = [f"{len(generations)} generations after a rebuild"] if len(generations) > 2 else []
    return problems + _some(leftovers, "files are left over in model/")


def read_model(store: Path) -> sqlite3.Connection:
    """The live generation, to be read."""
    generation = store / "model" / (store / "model" / "CURRENT").read_text().strip()
    return sqlite3.connect(f"{generation.absolute().as_uri()}?mode=ro", uri=True)


def read_log(store: Path) -> LogContents:
    """What stands in the segments; bytes behind the last newline of the newest one are not a line yet."""
    contents = LogContents()
    for folder in {path.parent for path in (store / "log").rglob("*/*.jsonl")}:
        # A day's second segment has a longer name: 2026-02-24.0001.jsonl.
        segments = sorted(folder.glob("*.jsonl"), key=lambda path: path.name.removesuffix(".jsonl"))
        for segment in segments:
            lines = segment.read_bytes().split(b"\n")
            _count_lines(contents, lines[:-1] if segment == segments[-1] else lines)
    return contents


def _count_lines(contents: LogContents, lines: list[bytes]) -> None:
    last_at = ""
    for line in lines:
        event = _parsed(line)
        if event is not None:
            contents.ids[event["id"]] += 1
            contents.falling += event["at"] < last_at
            last_at = event["at"]
        elif line.strip():
            contents.broken += 1


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        event: dict[str, Any] = json.loads(line.decode())
    except ValueError:
        return None
    return event


def _presence_problems(
    db: sqlite3.Connection, submitted: Mapping[str, Event], acknowledged: list[Ack]
) -> list[str]:
    rows = dict(db.execute("SELECT id, count(*) FROM events GROUP BY id"))
    return [
        *_some({ack.id for ack in acknowledged} - rows.keys(), "acknowledged events are lost"),
        *_some({name for name, count in rows.items() if count > 1}, "events are doubled"),
        *_some(rows.keys() - submitted.keys(), "events were never submitted"),
        *_some({ack.id for ack in acknowledged} - submitted.keys(), "acknowledged ids were never submitted"),
    ]


def _content_problems(db: sqlite3.Connection, submitted: Mapping[str, Event]) -> list[str]:
    rows = "SELECT id, content, metadata FROM messages WHERE type = 'message'"
    said = [(name, content, json.loads(meta or "null")) for name, content, meta in db.execute(rows)]
    doubled = {name for name, count in Counter(name for name, *_ in said).items() if count > 1}
    changed = {
        name
        for name, content, meta in said
        if name in submitted and (submitted[name]["content"], submitted[name].get("meta")) != (content, meta)
    }
    return [
        *_some(changed, "messages do not say what was submitted"),
        *_some(doubled, "messages are doubled"),
    ]


def _count_problems(db: sqlite3.Connection, log: LogContents) -> list[str]:
    """The read model accounts for every line of the log: an event, a retry of one, or a torn one."""
    expected = {
        "events": len(log.ids),
        "duplicates": log.ids.total() - len(log.ids),
        "conflicts": 0,
        "quarantine": log.broken,
        "quarantine WHERE reason <> 'torn'": 0,
    }
    found = {rows: db.execute(f"SELECT count(*) FROM {rows}").fetchone()[0] for rows in expected}
    return [
        f"{found[rows]} {rows} in the read model, {count} by the log"
        for rows, count in expected.items()
        if found[rows] != count
    ]


def _position_problems(store: Path, acknowledged: list[Ack]) -> list[str]:
    """An acknowledgement names the place where the event's bytes are."""
    segments = {
        place: (store / "log" / place[0] / place[1]).read_bytes()
        for place in {(ack.stream, ack.segment) for ack in acknowledged}
    }
    elsewhere = {
        ack.id for ack in acknowledged if _id_at(segments[ack.stream, ack.segment], ack.offset) != ack.id
    }
    return _some(elsewhere, "events are not where their acknowledgement says")


def _id_at(segment: bytes, offset: int) -> str | None:
    event = _parsed(segment[offset : segment.find(b"\n", offset)])
    starts_a_line = offset == 0 or segment[offset - 1 : offset] == b"\n"
    return event["id"] if event is not None and starts_a_line else None


def replay_problems(store: Path) -> list[str]:
    """The read model that grew step by step is the one that a replay gives."""
    done = run_memlog(store, "verify", "--json")
    if not done.stdout:
        return [f"verify: exit {done.returncode}: {done.stderr.decode()}"]
    found = json.loads(done.stdout)
    problems = [f"verify: {problem}" for problem in found["problems"]]
    if found["digest"] != found["replayed"]:
        problems.append("verify: the digest is not that of a replay")
    if done.returncode != 0 and not problems:
        problems.append(f"verify: exit {done.returncode}")
    return problems


def _some(names: Iterable[str], what: str) -> list[str]:
    """One line about all of `names`; nothing where there is none."""
    ordered = sorted(names)
    if not ordered:
        return []
    more = "" if len(ordered) <= _SHOWN else " …"
    return [f"{len(ordered)} {what}: {', '.join(ordered[:_SHOWN])}{more}"]

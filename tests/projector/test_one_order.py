"""Where two events set the same thing, the one with the greater precedence holds, whatever came first."""

from itertools import permutations

from memlog.eventlog.codec.encode import draft_event
from memlog.projector.lifecycle import Projector

SAVED = {"type": "memory_saved", "memory_id": "m", "content": "first", "category": "context"}
CORE = {"section": "user", "key": "city"}
FACT = {"topic_key": "colors", "kind": "ranked", "rank": 1, "chat_id": "cli:1"}


def at(second, **members):
    return {"ts": f"2026-02-24T08:00:{second:02d}.000Z", "id": f"e{second}"} | members


CASES = {
    "a memory's field": (
        [
            at(1, **SAVED),
            at(2, type="memory_updated", memory_id="m", title="second", importance=0.2),
            at(3, type="memory_updated", memory_id="m", title="third"),
        ],
        "SELECT title, importance FROM memories",
        [("third", 0.2)],
    ),
    "a core key": (
        [at(n, type="core_memory_updated", **CORE, value=str(n)) for n in (1, 2, 3)],
        "SELECT value FROM core_memory",
        [("3",)],
    ),
    "a fact's rank": (
        [at(n, type="fact_stored", **FACT, value=str(n)) for n in (1, 2, 3)],
        "SELECT value FROM facts",
        [("3",)],
    ),
    "a deleted memory": (
        [
            at(1, **SAVED),
            at(2, type="memory_updated", memory_id="m", title="second"),
            at(3, type="memory_deleted", memory_id="m"),
        ],
        "SELECT * FROM memories",
        [],
    ),
    "a memory that was saved after its deletion": (
        [at(1, **SAVED), at(2, type="memory_deleted", memory_id="m"), at(3, **SAVED | {"content": "again"})],
        "SELECT content, created_at FROM memories",
        [("again", "2026-02-24T08:00:03.000Z")],
    ),
    "a deleted core key": (
        [
            at(1, type="core_memory_updated", **CORE, value="1"),
            at(2, type="core_memory_updated", **CORE, value="2"),
            at(3, type="core_memory_deleted", **CORE),
        ],
        "SELECT * FROM core_memory",
        [],
    ),
    "a core key that was set after its deletion": (
        [
            at(1, type="core_memory_updated", **CORE, value="1"),
            at(2, type="core_memory_deleted", **CORE),
            at(3, type="core_memory_updated", **CORE, value="3"),
        ],
        "SELECT value FROM core_memory",
        [("3",)],
    ),
    "a removed fact": (
        [
            at(1, type="fact_stored", **FACT, value="1"),
            at(2, type="fact_stored", **FACT, value="2"),
            at(3, type="fact_removed", **FACT),
        ],
        "SELECT * FROM facts",
        [],
    ),
    "decays, in their order, of what is older": (
        [
            at(1, **SAVED),
            at(2, type="salience_decayed", rates={"context": 0.9, "decisions": 0.1}),
            at(3, type="salience_decayed", rates={"context": 0.5}),
        ],
        "SELECT salience FROM memories",
        [(0.45,)],
    ),
    "no decay of what is newer": (
        [
            at(1, type="salience_decayed", rates={"context": 0.5}),
            at(2, **SAVED),
            at(3, type="salience_decayed", rates={"context": 0.9}),
        ],
        "SELECT salience FROM memories",
        [(0.9,)],
    ),
    "a salience that was set between two decays": (
        [
            at(1, **SAVED),
            at(2, type="salience_decayed", rates={"context": 0.5}),
            at(3, type="memory_updated", memory_id="m", salience=0.8),
            at(4, type="salience_decayed", rates={"context": 0.5}),
        ],
        "SELECT salience FROM memories",
        [(0.4,)],
    ),
}


def rows_after(store, sql, *deliveries):
    """The rows when each of `deliveries` (a segment's name and its events) was projected in its turn."""
    projector = Projector(store)
    for name, events in deliveries:
        for event in events:
            made = draft_event(event)
            path = store / "log" / made.stream / f"{name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(made.build_line("2026-02-26T08:00:00.000Z"))
        projector.catch_up()
    rows = projector.connect_to_live().execute(sql).fetchall()
    projector.close()
    return rows


def test_the_latest_event_wins_whatever_the_order_of_arrival(tmp_path):
    for what, (events, sql, expected) in CASES.items():
        for number, arrival in enumerate(permutations(events)):
            deliveries = [("2026-02-24", [event]) for event in arrival]
            assert rows_after(tmp_path / f"{what} {number}", sql, *deliveries) == expected, arrival


def test_at_one_time_the_later_segment_wins_and_in_one_segment_the_later_line(tmp_path):
    for number, order in enumerate(permutations(["2026-02-24", "2026-02-25", "2026-02-25.0001"])):
        events = {
            name: [
                at(1, type="core_memory_updated", **CORE, value=f"{name} {line}") | {"id": f"{name} {line}"}
                for line in (1, 2)
            ]
            for name in order
        }
        rows = rows_after(tmp_path / str(number), "SELECT value FROM core_memory", *events.items())
        assert rows == [("2026-02-25.0001 2",)], order

"""Which of two changes holds, and what the digest of content says of two stores."""

from itertools import permutations

import pytest

import memlog
from memlog.eventlog.codec.encode import draft_event
from memlog.eventlog.events import CoreMemoryUpdated, Event
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments
from memlog.eventlog.log.reader import Line
from memlog.eventlog.log.streams import SegmentName
from memlog.projector.lifecycle import Projector
from memlog.projector.subjects.accepted import PositionedEvent
from memlog.projector.verify import hash_dump

AT = "2026-02-26T08:00:00.000Z"
LATER = "2026-02-26T09:00:00.000Z"


def change(value: str, ts: str) -> dict[str, str]:
    return {
        "type": "core_memory_updated",
        "section": "user",
        "key": "city",
        "value": value,
        "id": value,
        "ts": ts,
    }


LINES = {
    "a lower ts and a higher wins": [
        draft_event(change("first", AT)).build_line(AT, AT),
        draft_event(change("holds", "1970-01-01T00:00:00.000Z")).build_line(AT, LATER),
    ],
    "a line dated 2099 without wins": [
        draft_event(change("first", "2099-01-01T00:00:00.000Z")).build_line(AT),
        draft_event(change("holds", LATER)).build_line(LATER),
    ],
}


@pytest.mark.parametrize("what", LINES)
def test_the_change_with_the_greater_precedence_holds_whatever_its_ts(what, tmp_path):
    for number, arrival in enumerate(permutations(LINES[what])):
        store = tmp_path / str(number)
        (store / "log/core").mkdir(parents=True)
        projector = Projector(store)
        for line in arrival:
            with (store / "log/core/2026-02-26.jsonl").open("ab") as file:
                file.write(line)
            projector.catch_up()
        assert projector.connect_to_live().execute("SELECT value FROM core_memory").fetchall() == [("holds",)]
        projector.close()


def placed(day: str, number: int, writer: str, offset: int, wins: str) -> PositionedEvent:
    event: Event = CoreMemoryUpdated(section="user", key="city", value="x", ts=AT, wins=wins)
    line = Line(offset, 1, 1, offset + 2, b"")
    segment = SegmentName(day, number, writer)
    return PositionedEvent("id", AT, event, "core", segment, line, b"", (day, number, writer, line.offset))


def test_precedence_sorts_as_text_by_time_and_then_by_position():
    rising = [
        placed("2026-02-24", 0, "", 0, AT),
        placed("2026-02-24", 0, "", 9, AT),
        placed("2026-02-24", 0, "", 10, AT),
        placed("2026-02-24", 0, "k7f3qz", 0, AT),
        placed("2026-02-24", 9, "z22222", 0, AT),
        placed("2026-02-24", 10000, "a22222", 0, AT),
        placed("2026-02-25", 0, "", 0, AT),
        placed("2026-02-24", 0, "", 0, LATER),
    ]
    found = [each.precedence for each in rising]
    assert found == sorted(found)
    assert len(set(map(len, found))) == 1


EVENTS = [
    memlog.Message(id="m1", channel="cli", chat_id="1", role="user", content="tea", ts=AT),
    memlog.SummaryWritten(id="s1", channel="cli", chat_id="1", content="tea", ts=AT),
    memlog.MemorySaved(id="a", memory_id="a", content="tea", ts=AT),
    memlog.MemoryUpdated(id="b", memory_id="a", title="Tea", salience=0.5, ts=LATER),
    memlog.SalienceDecayed(id="d", rates={"other": 0.9}, ts=LATER),
    memlog.FactStored(id="f", topic_key="city", value="Oulu", ts=AT),
    memlog.SourceRegistered(id="r", source_id="notes", ts=AT),
]


def test_the_digest_of_content_is_the_same_in_other_segments_of_another_writer(tmp_path):
    found = []
    for name, seals in (("whole", False), ("parts", True)):
        with memlog.open(tmp_path / name) as store:
            for event in EVENTS:
                store.append([event])
                if seals:
                    seal_unsealed_segments(store.path)
        projector = Projector(tmp_path / name)
        projector.catch_up()
        db = projector.connect_to_live()
        (writer,) = db.execute("SELECT writer FROM sources").fetchone()
        found.append((writer, hash_dump(db), hash_dump(db, content=True)))
        projector.close()
    (writer, exact, content), (other_writer, other_exact, other_content) = found
    assert len(writer) == len(other_writer) == 6
    assert (writer, exact) != (other_writer, other_exact)
    assert content == other_content


def test_a_store_of_one_message_with_its_vectors_is_below_600_kilobytes(tmp_path):
    with memlog.open(tmp_path) as store:
        store.append(EVENTS[:1])
        assert store.search("tea", mode="vector").hits
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 600_000

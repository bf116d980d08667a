"""Which of two changes holds, and how `wins` is made of what all writers of a stream have appended."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memlog.eventlog import timestamps
from memlog.eventlog.codec.encode import draft_event
from memlog.eventlog.events import CoreMemoryUpdated, Message, Redacted
from memlog.eventlog.files import disk
from memlog.eventlog.log.order import Clock, compute_precedence, next_precedence
from memlog.eventlog.log.reader import members_in_current_schema, read_accepted_events
from memlog.eventlog.log.streams import SegmentName, list_segment_names, list_segments
from memlog.eventlog.log.writer import Log

TEN = "2026-02-24T10:00:00.000Z"
PLAIN = SegmentName("2026-02-24")


def a_change(**members: Any) -> CoreMemoryUpdated:
    return CoreMemoryUpdated(section="user", key="city", value="Turku", **members)


def test_the_precedence_is_wins_or_a_ts_that_is_not_ahead_of_its_clock() -> None:
    for members, expected in [
        ({"ts": TEN, "at": TEN, "wins": "2026-02-24T11:00:00.000Z"}, "2026-02-24T11:00:00.000Z"),
        ({"ts": TEN, "at": "2026-02-24T10:00:09.000Z"}, TEN),
        ({"ts": "2026-02-24T10:04:00.000Z", "at": TEN}, "2026-02-24T10:04:00.000Z"),
        ({"ts": "2099-01-01T00:00:00.000Z", "at": TEN}, "2026-02-24T10:05:00.000Z"),
        ({"ts": TEN}, TEN),
        ({"ts": "2099-01-01T00:00:00.000Z"}, "2026-02-25T00:04:59.999Z"),
        ({"ts": "2099-01-01T00:00:00.000Z", "at": "no time"}, "2026-02-25T00:04:59.999Z"),
        ({"ts": "9999-12-31T23:59:59.999Z", "at": "9999-12-31T23:59:00.000Z"}, "9999-12-31T23:59:59.999Z"),
    ]:
        assert compute_precedence(a_change(**members), PLAIN) == expected, members


def test_the_next_precedence_is_above_the_highest() -> None:
    for ts, highest, expected in [
        (TEN, "", TEN),
        ("2001-01-01T00:00:00.000Z", "", "2001-01-01T00:00:00.000Z"),
        ("2099-01-01T00:00:00.000Z", "", "2026-02-24T10:05:00.000Z"),
        (TEN, "2026-02-24T09:00:00.000Z", TEN),
        (TEN, TEN, "2026-02-24T10:00:00.001Z"),
        (TEN, "2099-01-01T00:00:00.000Z", "2099-01-01T00:00:00.001Z"),
        (TEN, "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        (TEN, "2026-99-99T99:99:99.999Z", "2026-99-99T99:99:99.999Z"),
    ]:
        assert next_precedence(ts, TEN, highest, is_dated=False) == expected, (ts, highest)


def test_a_dated_change_has_the_precedence_of_its_date() -> None:
    for ts, expected in [
        ("2001-01-01T00:00:00.000Z", "2001-01-01T00:00:00.000Z"),
        (TEN, TEN),
        ("2099-01-01T00:00:00.000Z", "2026-02-24T10:05:00.000Z"),
    ]:
        assert next_precedence(ts, TEN, "2030-01-01T00:00:00.000Z", is_dated=True) == expected, ts


def highest_of(folder: Path, clock: Clock | None = None) -> str:
    fd = disk.open(folder, disk.FOLDER)
    try:
        return (clock or Clock()).highest_precedence(fd, list_segment_names(fd))
    finally:
        disk.close(fd)


def line(wins: str | None, ts: str = TEN) -> bytes:
    return draft_event(
        {"type": "core_memory_updated", "section": "user", "key": "k", "value": "v", "ts": ts}
    ).build_line(TEN, wins)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "core").mkdir()
    return tmp_path / "core"


def test_the_highest_is_that_of_all_writers(folder: Path) -> None:
    (folder / "2026-02-24.aaaaaa.jsonl").write_bytes(line("2026-02-24T10:00:01.000Z"))
    (folder / "2026-02-24.bbbbbb.jsonl").write_bytes(line("2026-02-24T10:00:03.000Z"))
    (folder / "2026-02-25.cccccc.jsonl").write_bytes(line("2026-02-24T10:00:02.000Z"))
    assert highest_of(folder) == "2026-02-24T10:00:03.000Z"


def test_of_a_writer_the_last_change_is_the_highest_whatever_the_days_of_its_segments(folder: Path) -> None:
    (folder / "2099-01-01.aaaaaa.jsonl").write_bytes(line("2099-01-01T00:00:00.000Z"))
    (folder / "2026-02-24.aaaaaa.0001.jsonl").write_bytes(line("2099-01-01T00:00:00.001Z"))
    (folder / "2026-02-25.aaaaaa.0002.jsonl").write_bytes(b"")
    assert highest_of(folder) == "2099-01-01T00:00:00.001Z"


def test_lines_of_an_older_memlog_and_of_other_programs_count(folder: Path) -> None:
    foreign = (
        b'{"type":"core_memory_updated","section":"user","key":"k","value":"v","ts":"2026-02-24T23:00:00Z"}\n'
    )
    (folder / "2026-02-23.jsonl").write_bytes(line(None))
    (folder / "2026-02-24.jsonl").write_bytes(foreign + line(None, "2026-02-24T09:00:00.000Z"))
    assert highest_of(folder) == "2026-02-24T23:00:00.000Z"


def test_a_line_that_another_process_is_still_writing_counts_once_it_is_whole(folder: Path) -> None:
    whole, clock = line("2026-02-24T10:00:05.000Z"), Clock()
    path = folder / "2026-02-24.aaaaaa.jsonl"
    path.write_bytes(line("2026-02-24T10:00:01.000Z") + whole[:40])
    assert highest_of(folder, clock) == "2026-02-24T10:00:01.000Z"
    path.write_bytes(line("2026-02-24T10:00:01.000Z") + whole)
    assert highest_of(folder, clock) == "2026-02-24T10:00:05.000Z"


def test_a_time_that_is_none_gives_no_precedence(folder: Path) -> None:
    said = b'{"type":"core_memory_updated","section":"user","key":"k","value":"v","ts":"yesterday"}\n'
    (folder / "2026-02-24.jsonl").write_bytes(said)
    assert highest_of(folder) == ""


def test_an_older_copy_in_the_place_of_a_segment_is_read_anew(folder: Path) -> None:
    path, clock = folder / "2026-02-24.aaaaaa.jsonl", Clock()
    older = line("2026-02-24T10:00:01.000Z")
    path.write_bytes(older + line("2026-02-24T10:00:05.000Z"))
    assert highest_of(folder, clock) == "2026-02-24T10:00:05.000Z"
    os.truncate(path, len(older))
    assert highest_of(folder, clock) == "2026-02-24T10:00:01.000Z"


def test_a_damaged_line_does_not_set_the_year_9999(folder: Path) -> None:
    broken = line("9999-01-01T00:00:00.000Z").replace(b'"v"', b'"w"')
    (folder / "2026-02-24.aaaaaa.jsonl").write_bytes(line("2026-02-24T10:00:01.000Z") + broken)
    assert highest_of(folder) == "2026-02-24T10:00:01.000Z"


def test_the_last_line_is_found_behind_many_long_ones(folder: Path) -> None:
    noise = b'{"type":"redacted","target_id":"x","pad":"%s"}\n' % (b"x" * 30_000)
    (folder / "2026-02-24.aaaaaa.jsonl").write_bytes(line("2026-02-24T10:00:01.000Z") + noise * 30)
    assert highest_of(folder) == "2026-02-24T10:00:01.000Z"


def stamped(store: Path) -> list[str]:
    folder = store / "log/core"
    names = sorted(list_segment_names(folder), key=lambda name: name.age_key)
    return [
        msgspec.json.decode(each).get("wins", "")
        for path in (folder / name.filename for name in names)
        for each in path.read_bytes().splitlines()
    ]


def test_changes_of_one_append_follow_each_other(tmp_path: Path) -> None:
    Log(tmp_path, durability="os").append([a_change() for _ in range(20)])
    assert stamped(tmp_path) == sorted(set(stamped(tmp_path)))


def test_a_dated_change_hides_no_higher_precedence_from_the_next_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Log(tmp_path, durability="os").append([a_change()])
    (highest,) = stamped(tmp_path)
    Log(tmp_path, durability="os").append([a_change(ts="2001-01-01T00:00:00Z")])
    monkeypatch.setattr(timestamps, "now", lambda: TEN)
    Log(tmp_path, durability="os").append([a_change()])
    assert stamped(tmp_path)[1] == "2001-01-01T00:00:00.000Z"
    assert stamped(tmp_path)[2] > highest


def test_what_another_log_says_is_in_the_same_order_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for now in ("2026-02-24T10:00:05.000Z", TEN):
        monkeypatch.setattr(timestamps, "now", lambda now=now: now)
        Log(one, durability="os").append([a_change()])
    monkeypatch.undo()
    entries = read_accepted_events(list_segments(one / "log")[0], lambda *_: None)
    Log(other, durability="os").append([members_in_current_schema(entry) for entry in entries])
    assert stamped(other) == stamped(one) == ["2026-02-24T10:00:05.000Z", "2026-02-24T10:00:05.001Z"]


def test_wins_of_an_input_is_capped_as_a_date_is_and_that_of_a_message_is_kept(
    tmp_path: Path,
) -> None:
    members = {"type": "core_memory_updated", "section": "user", "key": "k", "value": "v", "ts": TEN}
    log = Log(tmp_path, durability="os")
    log.append([members | {"wins": "9999-01-01T00:00:00.000Z"}, members | {"wins": 7}])
    assert stamped(tmp_path)[0] < timestamps.shift_timestamp(timestamps.now(), 6 * 60 * 1000)
    assert stamped(tmp_path)[1] == TEN
    said = msgspec.to_builtins(Message(channel="c", chat_id="1", role="user", content="x")) | {
        "type": "message"
    }
    (position,) = log.append([said | {"wins": 7}])
    kept = (tmp_path / "log" / position.stream / position.segment).read_bytes()
    assert msgspec.json.decode(kept)["wins"] == 7


def test_a_change_beside_what_is_none_in_one_list_has_wins_alone(tmp_path: Path) -> None:
    store = tmp_path / "store"
    asked = Redacted(target_id="gone", stream="core")
    Log(store, durability="os").append([a_change(), asked, a_change()])
    (segment,) = list_segments(store / "log")[0]
    lines = [msgspec.json.decode(line) for line in segment.path.read_bytes().splitlines()]
    assert ["wins" in line for line in lines] == [True, False, True]
    assert lines[0]["wins"] < lines[2]["wins"]

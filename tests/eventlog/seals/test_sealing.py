"""Sealing: what has a successor is sealed, what is sealed gets no more lines."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from memlog.eventlog.errors import Busy, LogError
from memlog.eventlog.files import disk
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments
from memlog.eventlog.integrity.seal_file import SealIndex, measure_segment, read_seals
from memlog.eventlog.log import rotation
from memlog.eventlog.log.rotation import SealWatch
from memlog.eventlog.log.streams import SegmentName, list_segments
from memlog.eventlog.log.writer import Log

TODAY, TOMORROW = "2026-02-24", "2026-02-25"


def sealed(log: Any) -> list[str]:
    return [segment for _, segment in read_seals(log.store / "log").valid_seals]


def is_as_sealed(log: Any, segment: str) -> bool:
    said = read_seals(log.store / "log").valid_seals["memory", segment]
    return said.is_of(measure_segment(log.store / "log", "memory", segment))


def test_a_stream_of_one_segment_has_no_seals(log: Any, clock: Any) -> None:
    log.append("green", "black")
    assert list((log.store / "log").glob("seals*")) == []


def test_a_new_day_seals_the_day_before(log: Any, clock: Any) -> None:
    log.append("green")
    clock.set("2026-02-25T00:00:00.000Z")
    log.append("black")
    assert log.segments == [log.name(TODAY), log.name(TOMORROW, 1)]
    assert sealed(log) == [log.name(TODAY)]
    assert is_as_sealed(log, log.name(TODAY))


def test_a_segment_that_is_full_is_sealed(log: Any, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "SEGMENT_BYTES", 100)
    log.append("green")
    log.append("black")
    log.append("white")
    assert sealed(log) == [log.name(TODAY), log.name(TODAY, 1)]


def test_a_plain_segment_stays_open_until_it_is_sealed_on_request(log: Any, clock: Any) -> None:
    log.write_segment("2026-02-20.jsonl", b'{"type":"memory_saved","content":"foreign"}')
    log.append("green")
    assert sealed(log) == []
    seal_unsealed_segments(log.store, lock_timeout=0.3)
    assert sealed(log) == ["2026-02-20.jsonl", log.name(TODAY)]
    assert is_as_sealed(log, "2026-02-20.jsonl")


def test_a_seal_stands_before_the_successor_is_made(log: Any, clock: Any, faulty_disk: Any) -> None:
    log.append("green")
    clock.set("2026-02-25T00:00:00.000Z")
    real = disk.open

    def fail(path: Any, flags: int, **options: Any) -> int:
        if flags & disk.NEW == disk.NEW:
            raise OSError(errno.EIO, "cut")
        return real(path, flags, **options)

    faulty_disk.open = fail
    with pytest.raises(LogError, match="cut"):
        log.append("black")
    faulty_disk.open = real
    assert (log.segments, sealed(log)) == ([log.name(TODAY)], [log.name(TODAY)])
    log.start_again()
    log.append("black")
    assert (log.segments, sealed(log)) == ([log.name(TODAY), log.name(TOMORROW, 1)], [log.name(TODAY)])
    assert is_as_sealed(log, log.name(TODAY))


def test_where_no_seal_can_be_written_nothing_is_acknowledged(log: Any, clock: Any) -> None:
    log.append("green")
    os.symlink("elsewhere", log.seals)
    log.append("black")
    clock.set("2026-02-25T00:00:00.000Z")
    with pytest.raises(LogError, match=r"not a regular file: seals\.[a-z2-7]{6}\.jsonl") as error:
        log.append("white")
    assert error.value.code == "cannot_create"
    assert log.segments == [log.name(TODAY)]


def test_seal_closes_the_newest_of_every_stream(log: Any, clock: Any) -> None:
    log.append("green")
    log.writer.append([{"type": "fact_stored", "topic_key": "tea", "value": "green"}])
    made = seal_unsealed_segments(log.store, lock_timeout=0.3)
    assert [said.name for said in made] == [("facts", log.name(TODAY)), ("memory", log.name(TODAY))]
    assert seal_unsealed_segments(log.store, lock_timeout=0.3) == []


def test_the_next_append_begins_the_next_number(log: Any, clock: Any) -> None:
    log.append("green")
    seal_unsealed_segments(log.store)
    (position,) = log.append("black")
    assert (position.segment, position.offset) == (log.name(TODAY, 1), 0)
    assert log.read() == ["green", "black"]
    assert sealed(log) == [log.name(TODAY)]
    log.append("white")
    assert log.segments == [log.name(TODAY), log.name(TODAY, 1)]


def test_the_number_goes_on_the_next_day(log: Any, clock: Any) -> None:
    log.append("green")
    seal_unsealed_segments(log.store, lock_timeout=0.3)
    clock.set("2026-02-25T00:00:00.000Z")
    assert log.append("black")[0].segment == log.name(TOMORROW, 1)


def test_a_tail_without_newline_is_a_line_once_it_is_sealed(log: Any, clock: Any) -> None:
    log.append("green")
    log.add_raw(b'{"type":"memory_saved","content":"foreign"}')
    assert [segment.is_newest for segment in list_segments(log.store / "log")[0]] == [True]
    (made,) = seal_unsealed_segments(log.store, lock_timeout=0.3)
    assert made.lines == 2
    assert [segment.is_newest for segment in list_segments(log.store / "log")[0]] == [False]
    log.append("black")
    assert log.read() == ["green", "foreign", "black"]


def test_what_came_behind_a_seal_is_sealed_with_the_rest(log: Any, clock: Any) -> None:
    log.append("green")
    first = seal_unsealed_segments(log.store, lock_timeout=0.3)
    log.add_raw(b'{"type":"memory_saved","content":"late"}\n')
    (second,) = seal_unsealed_segments(log.store, lock_timeout=0.3)
    assert second.bytes > first[0].bytes
    assert read_seals(log.store / "log").damaged_lines == []
    assert is_as_sealed(log, log.name(TODAY))


def test_what_was_changed_is_not_sealed_anew(log: Any, clock: Any) -> None:
    log.append("green")
    seal_unsealed_segments(log.store, lock_timeout=0.3)
    log.flip_byte(3)
    log.add_raw(b"more\n")
    assert seal_unsealed_segments(log.store, lock_timeout=0.3) == []
    assert not is_as_sealed(log, log.name(TODAY))


def test_an_empty_log_has_nothing_to_seal(log: Any) -> None:
    assert seal_unsealed_segments(log.store, lock_timeout=0.3) == []
    assert not log.store.exists()


def test_who_holds_a_stream_is_waited_for_and_named(log: Any, clock: Any, hold_lock: Any) -> None:
    log.append("green")
    holder = hold_lock(log.segment)
    with pytest.raises(Busy, match=f"memory/{log.name(TODAY)} is locked by process {holder.pid}"):
        seal_unsealed_segments(log.store, lock_timeout=0.3)


def test_a_segment_that_cannot_be_read_is_not_said_to_be_sealed(
    log: Any, clock: Any, faulty_disk: Any
) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    log.append("green")
    faulty_disk.sync_data = fail
    with pytest.raises(LogError, match="memory: Input/output error: it may not have been sealed"):
        seal_unsealed_segments(log.store, lock_timeout=0.3)


def test_appending_reads_the_seals_once_until_they_change(log: Any, clock: Any, faulty_disk: Any) -> None:
    log.append("green")
    seal_unsealed_segments(log.store, lock_timeout=0.3)
    real, read, seals = disk.open, [], log.seals.name

    def count(path: Any, flags: int, **options: Any) -> int:
        read.extend([path] if Path(path).name == seals else [])
        return real(path, flags, **options)

    log.start_again()
    log.append("first")
    faulty_disk.open = count
    for number in range(5):
        log.append(str(number))
    assert read == []
    seal_unsealed_segments(log.store)
    read.clear()
    assert log.append("another")[0].segment == log.name(TODAY, 2)
    assert len(read) == 1


def test_appends_to_many_sealed_streams_index_the_seals_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path / "store")
    said = [
        {"type": "message", "channel": "x", "chat_id": f"{n}", "role": "user", "content": "tea"}
        for n in range(9)
    ]
    log.append(said)
    seal_unsealed_segments(log.store)
    indexed: list[int] = []
    extend = SealIndex.index_bytes

    def count(index: SealIndex, data: bytes) -> None:
        indexed.append(data.count(b"\n"))
        extend(index, data)

    monkeypatch.setattr(SealIndex, "index_bytes", count)
    Log(tmp_path / "store").append(said)
    assert [lines for lines in indexed if lines] == [9]


def test_a_name_in_a_torn_line_is_no_seal(log: Any, clock: Any) -> None:
    log.append("green")
    watch, name = SealWatch(log.store / "log"), SegmentName.parse(log.name(TODAY))
    assert name is not None
    assert not watch.is_sealed("memory", name.filename, name.writer)
    log.seals.write_bytes(b'{"stream":"memory","segment":"%s","bytes":1' % name.filename.encode())
    assert not watch.is_sealed("memory", name.filename, name.writer)
    seal_unsealed_segments(log.store, lock_timeout=0.3)
    assert watch.is_sealed("memory", name.filename, name.writer)

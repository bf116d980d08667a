"""Appending: what is acknowledged stands in the log, whatever stood there before and whatever fails."""

import errno
import os
import signal
import stat
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memlog.eventlog import timestamps
from memlog.eventlog.codec.encode import draft_event
from memlog.eventlog.errors import BadInput, Busy, LogError
from memlog.eventlog.events import CoreMemoryUpdated, MemorySaved, Message
from memlog.eventlog.files import disk, locks
from memlog.eventlog.log import rotation
from memlog.eventlog.log import writer as log_module
from memlog.eventlog.log.streams import list_segments
from memlog.eventlog.log.writer import Log, Position
from memlog.eventlog.positions import IdHolder, KnownId

Hold = Callable[[Path], "subprocess.Popen[bytes]"]

AT = "2026-02-24T10:15:00.000Z"

_linux_only = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs Linux's /proc")


def line_of(log: Any, position: Position) -> dict[str, Any]:
    """The line at a position, which must be whole."""
    data = (log.store / "log" / position.stream / position.segment).read_bytes()
    assert position.offset == 0 or data[position.offset - 1 : position.offset] == b"\n"
    line, newline, _ = data[position.offset :].partition(b"\n")
    members: dict[str, Any] = msgspec.json.decode(line)
    assert newline
    assert members["id"] == position.id
    return members


def ats(log: Any) -> list[str]:
    lines = log.segment.read_bytes().splitlines()
    return [msgspec.json.decode(line).get("at", "") for line in lines if line]


@contextmanager
def ending() -> Iterator[None]:
    """Fails where the block does not end."""

    def ring(*_: object) -> None:
        pytest.fail("not done after 60 s")

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 60)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


# What stands where


def test_an_event_stands_where_its_position_says(log: Any) -> None:
    positions = log.append("one", "two") + log.append("three")
    assert [line_of(log, position)["content"] for position in positions] == ["one", "two", "three"]
    assert log.read() == ["one", "two", "three"]


def test_events_of_several_streams_are_answered_in_the_order_they_came_in(log: Any) -> None:
    events = [
        MemorySaved(content="a"),
        Message(channel="x", chat_id="1", role="user", content="b"),
        MemorySaved(content="c"),
        CoreMemoryUpdated(section="user", key="k", value="d"),
    ]
    positions = log.writer.append(events)
    assert [position.stream for position in positions] == ["memory", "conversations/x_1", "memory", "core"]
    assert [line_of(log, position)["type"] for position in positions] == [
        "memory_saved",
        "message",
        "memory_saved",
        "core_memory_updated",
    ]


def test_nothing_is_written_where_one_event_of_a_list_is_refused(log: Any) -> None:
    with pytest.raises(BadInput):
        log.writer.append([MemorySaved(content="good"), {"type": "memory_saved"}])
    assert not log.store.exists()


def test_appending_nothing_writes_nothing(log: Any) -> None:
    assert log.writer.append([]) == []
    assert not log.store.exists()


def test_the_reply_names_the_durability(log: Any) -> None:
    assert log.append("x")[0].durability == "os"
    assert Log(log.store).append([MemorySaved(content="y")])[0].durability == "fsync"


def test_a_caller_never_chooses_a_file(log: Any) -> None:
    (position,) = log.writer.append([Message(channel="..", chat_id="../../etc", role="user", content="x")])
    assert position.stream == "conversations/.._..%2f..%2fetc"
    written = [path for path in (log.store / "log").rglob("*.jsonl") if path.is_file()]
    assert written == [log.store / "log" / position.stream / position.segment]


def test_several_writers_lose_nothing_and_mix_nothing(log: Any) -> None:
    """Threads of one writer, and several writers: each takes the lock by a descriptor of its own."""
    first, second, third = (Log(log.store, durability="os", lock_timeout=60) for _ in range(3))
    writers = [first, first, second, third]
    acknowledged: list[Position] = []

    def write(number: int, writer: Log) -> None:
        for index in range(25):
            acknowledged.extend(writer.append([MemorySaved(content=f"{number}-{index}" * 200)]))

    threads = [threading.Thread(target=write, args=each) for each in enumerate(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {f"{number}-{index}" * 200 for number in range(4) for index in range(25)}
    assert set(log.read()) == expected
    assert len(log.read()) == 100
    assert {line_of(log, position)["content"] for position in acknowledged} == expected


# Torn tails


def test_a_torn_tail_is_ended_and_stays(log: Any) -> None:
    log.append("one", "two")
    log.shrink(5)
    before = log.segment.read_bytes()
    (position,) = log.append("three")
    after = log.segment.read_bytes()
    assert after.startswith(before + b'\n{"type"')
    assert position.offset == len(before) + 1
    assert log.read() == ["one", "torn", "three"]


def test_every_torn_tail_costs_one_line(log: Any) -> None:
    log.append("one")
    whole = log.segment.stat().st_size
    log.append("two")
    torn = log.segment.read_bytes()
    for size in range(whole + 1, len(torn)):
        log.segment.write_bytes(torn)
        log.shrink(len(torn) - size)
        log.append("three")
        is_whole = size == len(torn) - 1
        assert log.read() == ["one", "two" if is_whole else "torn", "three"], size


def test_a_line_that_ends_is_not_ended_again(log: Any) -> None:
    log.append("one")
    log.start_again()
    log.append("two")
    assert b"\n\n" not in log.segment.read_bytes()


def test_a_foreign_line_without_newline_is_ended(log: Any) -> None:
    log.append("one")
    log.add_raw(b'{"type":"memory_saved","content":"by hand"}')
    log.append("two")
    assert log.read() == ["one", "by hand", "two"]


def test_damage_in_the_middle_leaves_the_rest_alone(log: Any) -> None:
    positions = log.append("one", "two", "three")
    log.flip_byte(positions[1].offset + 40)
    log.append("four")
    assert log.read() == ["one", "bad_crc", "three", "four"]


# Segments


def test_another_day_has_another_segment(log: Any, clock: Any) -> None:
    log.append("one")
    clock.set("2026-02-25T00:00:00.000Z")
    (position,) = log.append("two")
    assert log.segments == [log.name("2026-02-24"), log.name("2026-02-25", 1)]
    assert (position.segment, position.offset) == (log.name("2026-02-25", 1), 0)
    assert log.read() == ["one", "two"]


def test_the_day_is_that_of_appending_and_not_that_of_the_event(log: Any, clock: Any) -> None:
    log.writer.append([MemorySaved(content="old", ts="2001-01-01T00:00:00Z")])
    assert log.segments == [log.name("2026-02-24")]


def test_a_clock_that_goes_back_begins_a_segment_of_the_true_day(log: Any, clock: Any) -> None:
    clock.set("2099-01-01T08:00:00.000Z")
    log.append("one")
    clock.set("2026-02-24T08:00:00.000Z")
    with ending():
        log.append("two")
        log.start_again()
        log.append("three")
    assert log.segments == [log.name("2099-01-01"), log.name("2026-02-24", 1)]
    assert log.read() == ["one", "two", "three"]
    assert ats(log) == ["2026-02-24T08:00:00.000Z"] * 2


def test_a_clock_that_goes_back_some_seconds_at_midnight_begins_no_segment(log: Any, clock: Any) -> None:
    clock.set("2026-02-25T00:00:02.000Z")
    log.append("one")
    clock.set("2026-02-24T23:59:57.000Z")
    log.append("two")
    assert log.segments == [log.name("2026-02-25")]


def test_a_segment_that_has_passed_its_size_gets_no_more_lines(
    log: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "SEGMENT_BYTES", 300)
    contents = [f"{number}" for number in range(9)]
    for content in contents:
        log.append(content)
    sizes = [(log.folder / name).stat().st_size for name in log.segments]
    assert log.segments[:3] == [log.name("2026-02-24", number) for number in range(3)]
    assert all(300 <= size < 600 for size in sizes[:-1])
    assert log.read() == contents


def test_numbers_go_on_on_another_day(log: Any, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "SEGMENT_BYTES", 1)
    log.append("one")
    log.append("two")
    clock.set("2026-02-25T00:00:00.000Z")
    log.append("three")
    log.append("four")
    assert log.segments == [
        log.name("2026-02-24", 0),
        log.name("2026-02-24", 1),
        log.name("2026-02-25", 2),
        log.name("2026-02-25", 3),
    ]


def test_numbers_have_no_last_one(log: Any, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "SEGMENT_BYTES", 1)
    log.write_segment(log.name("2026-02-24", 9_999), b"\n")
    assert log.append("one")[0].segment == log.name("2026-02-24", 10_000)
    log.start_again()
    assert log.append("two")[0].segment == log.name("2026-02-24", 10_001)


def test_a_plain_name_is_read_and_never_appended_to(log: Any, clock: Any) -> None:
    plain = log.write_segment(
        "2026-02-24.jsonl", draft_event({"type": "memory_saved", "content": "old"}).build_line(AT)
    )
    before = plain.read_bytes()
    assert log.append("new")[0].segment == log.name("2026-02-24")
    assert plain.read_bytes() == before
    assert sorted(log.read()) == ["new", "old"]


def test_a_full_segment_is_followed_on_the_true_day_where_the_clock_went_back(
    log: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "SEGMENT_BYTES", 1)
    log.append("one")
    clock.set("2026-02-20T00:00:00.000Z")
    assert log.append("two")[0].segment == log.name("2026-02-20", 1)


def test_a_long_list_is_written_over_several_segments(
    log: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "SEGMENT_BYTES", 300)
    monkeypatch.setattr(log_module, "_COMMIT_BYTES", 300)
    contents = [f"{number}" * 100 for number in range(10)]
    positions = log.append(*contents)
    assert len({position.segment for position in positions}) > 2
    assert [line_of(log, position)["content"] for position in positions] == contents


def _before_the_lock(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Any]) -> None:
    """Let something happen between the opening of a segment and its lock, once."""
    acquire, pending = locks.lock_file, [happens]

    def acquire_late(fd: int, what: str, timeout: float) -> None:
        if pending:
            pending.pop()()
        acquire(fd, what, timeout)

    monkeypatch.setattr(locks, "lock_file", acquire_late)


def test_a_segment_that_was_replaced_while_waiting_is_not_written(
    log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append("one")
    moved = log.segment.with_suffix(".moved")
    before = log.segment.read_bytes()
    segment = log.segment
    _before_the_lock(monkeypatch, lambda: (segment.rename(moved), segment.write_bytes(before)))
    log.append("two")
    assert (moved.read_bytes(), segment.read_bytes()) == (before, before)
    moved.unlink()
    assert sorted(log.read()) == ["one", "two"]


def test_a_segment_that_was_removed_while_waiting_is_not_written(
    log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append("one")
    log.start_again()
    _before_the_lock(monkeypatch, log.segment.unlink)
    assert log.append("two")[0].offset == 0
    assert log.read() == ["two"]


def test_a_newer_segment_that_came_while_waiting_is_the_one_to_write(
    log: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append("one")
    _before_the_lock(monkeypatch, lambda: log.write_segment(log.name("2026-02-24", 1), b""))
    assert log.append("two")[0].segment == log.name("2026-02-24", 1)


def test_a_stream_that_never_stands_still_is_busy(
    log: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append("one")
    acquire, days = locks.lock_file, iter(range(1, 10_000))

    def overtaken(fd: int, what: str, timeout: float) -> None:
        (log.folder / log.name("2026-02-25", next(days))).write_bytes(b"")
        acquire(fd, what, timeout)

    monkeypatch.setattr(locks, "lock_file", overtaken)
    with pytest.raises(Busy, match="memory: its current segment keeps changing"):
        log.append("two")


# Time


def test_at_never_goes_back_within_a_segment(log: Any, clock: Any) -> None:
    log.append("one")
    clock.set("2026-02-24T09:00:00.000Z")
    log.append("two")
    log.start_again()
    log.append("three")
    clock.set("2026-02-24T11:00:00.000Z")
    log.append("four")
    assert ats(log) == [
        "2026-02-24T10:15:00.000Z",
        "2026-02-24T10:15:00.000Z",
        "2026-02-24T10:15:00.000Z",
        "2026-02-24T11:00:00.000Z",
    ]


def test_the_last_at_is_found_behind_any_number_of_foreign_lines(log: Any, clock: Any) -> None:
    log.append("one")
    log.add_raw(b'{"type":"memory_saved","content":"by hand"}\n' * 20_000)
    clock.set("2026-02-24T09:00:00.000Z")
    log.start_again()
    log.append("two")
    assert ats(log)[-1] == "2026-02-24T10:15:00.000Z"


def test_the_at_of_another_process_counts(log: Any, clock: Any) -> None:
    log.append("one")
    clock.set("2026-02-24T12:00:00.000Z")
    Log(log.store, durability="os").append([MemorySaved(content="two")])
    clock.set("2026-02-24T09:00:00.000Z")
    log.append("three")
    assert ats(log)[-1] == "2026-02-24T12:00:00.000Z"


def test_an_at_of_no_known_form_does_not_count(log: Any, clock: Any) -> None:
    log.append("one")
    log.add_raw(b'{"at":"tomorrow"}\n{"at":5}\n{"at":"9999"}\n"at":"x\n')
    log.append("two")
    assert b'"at":"2026-02-24T10:15:00.000Z"' in log.segment.read_bytes().splitlines()[-1]


def test_the_at_of_a_damaged_line_does_not_count(log: Any, clock: Any) -> None:
    """Else one flipped bit, or one line by hand, dates all that follows in its segment to the year 9999."""
    log.append("one")
    log.add_raw(b'{"at":"9999-12-31T23:59:59.999Z"}\n')
    log.append("two")
    assert ats(log)[-1] == "2026-02-24T10:15:00.000Z"


@pytest.mark.parametrize("is_json", [True, False], ids=["with a wrong crc", "of no JSON with a right crc"])
def test_a_damaged_line_dates_nothing_that_follows(log: Any, clock: Any, is_json: bool) -> None:
    body = b'{"at":"9999-12-31T23:59:59.999Z"'
    crc = 0 if is_json else zlib.crc32(body + b"no")
    log.append("one")
    log.add_raw(body + (b"" if is_json else b"no") + b',"crc":"%08x"}\n' % crc)
    log.append("two")
    assert b'"at":"2026-02-24T10:15:00.000Z"' in log.segment.read_bytes().splitlines()[-1]


# Short writes and other writers in between


def _write_in_parts(faulty_disk: Any, *lengths: int) -> list[bytes]:
    """Let the next writes end after so many bytes; returns what is really written, as it is written."""
    left, seen = list(lengths), []

    def write(fd: int, data: bytes) -> int:
        part = data[: left.pop(0)] if left else data
        seen.append(part)
        return os.write(fd, part)

    faulty_disk.write = write
    return seen


def test_a_line_that_was_cut_short_begins_again_on_a_new_line(log: Any, faulty_disk: Any) -> None:
    log.write_segment(log.name(timestamps.today()), b"")
    _write_in_parts(faulty_disk, 30)
    positions = log.append("one", "two")
    assert log.read() == ["torn", "one", "two"]
    assert [line_of(log, position)["content"] for position in positions] == ["one", "two"]
    assert positions[0].offset == 31


def test_whole_lines_before_the_cut_are_not_written_again(log: Any, faulty_disk: Any) -> None:
    length = len(draft_event({"type": "memory_saved", "content": "one"}).build_line(AT, AT))
    log.write_segment(log.name(timestamps.today()), b"")
    _write_in_parts(faulty_disk, length + 10)
    positions = log.append("one", "two", "six")
    assert log.read() == ["one", "torn", "two", "six"]
    assert [position.offset for position in positions] == [0, length + 11, 2 * length + 11]


def test_every_cut_leaves_all_lines_whole_and_every_position_right(log: Any, faulty_disk: Any) -> None:
    whole = _write_in_parts(faulty_disk)
    log.append("one", "two", "six")
    for cut in range(1, len(whole[0])):
        _write_in_parts(faulty_disk, cut)
        positions = log.append("one", "two", "six")
        assert [line_of(log, position)["content"] for position in positions] == ["one", "two", "six"], cut
    assert set(log.read()) == {"one", "two", "six", "torn"}


def test_several_cuts_in_one_write(log: Any, faulty_disk: Any) -> None:
    _write_in_parts(faulty_disk, 1, 1, 2, 50)
    (position,) = log.append("one")
    assert log.read()[-1] == "one"
    assert line_of(log, position)["content"] == "one"
    assert log.read().count("one") == 1


def _write_after(faulty_disk: Any, log: Any, foreign: bytes) -> None:
    """Let a foreign writer, who knows no lock, get in just before the next write."""
    pending = [foreign]

    def write(fd: int, data: bytes) -> int:
        if pending:
            log.add_raw(pending.pop())
        return os.write(fd, data)

    faulty_disk.write = write


def test_a_foreign_writer_in_between_moves_the_position_and_breaks_nothing(
    log: Any, faulty_disk: Any
) -> None:
    whole = b'{"type":"memory_saved","content":"by hand"}\n'
    for foreign in (whole, whole[:27], b"\n", b"x" * 5000):
        for is_torn in (False, True):
            faulty_disk.write = os.write
            log.append("one")
            log.shrink(3 if is_torn else 0)
            _write_after(faulty_disk, log, foreign)
            positions = log.append("two", "three")
            said = [line_of(log, position)["content"] for position in positions]
            assert said == log.read()[-2:] == ["two", "three"], (foreign, is_torn)


# What fails


def _failing(number: int, after: int = 0) -> Callable[..., int]:
    """A write that stores `after` bytes, and then fails."""
    written = [after] if after else []

    def write(fd: int, data: bytes) -> int:
        if written:
            return os.write(fd, data[: written.pop()])
        raise OSError(number, os.strerror(number))

    return write


def test_a_write_that_fails_is_not_acknowledged_and_can_be_tried_again(log: Any, faulty_disk: Any) -> None:
    log.append("one")
    said = ["one"]
    for number in (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG):
        for after in (0, 1, 100):
            event = MemorySaved(id=f"id-{number}-{after}", content=f"{number}-{after}")
            faulty_disk.write = _failing(number, after)
            with pytest.raises(LogError, match=os.strerror(number)) as failed:
                log.writer.append([event])
            assert (failed.value.code, failed.value.retryable) == ("log_io", True)
            assert f"event {event.id} may not have been stored" in failed.value.message
            assert str(event.id) in failed.value.hint
            faulty_disk.write = os.write
            log.writer.append([event])
            said += [*["torn"] * bool(after), event.content]
            assert log.read() == said


def test_what_fails_in_one_stream_does_not_touch_another(log: Any, faulty_disk: Any) -> None:
    log.append("one")

    def write(fd: int, data: bytes) -> int:
        if b"core_memory" in data:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(fd, data)

    faulty_disk.write = write
    drafts = [
        draft_event(MemorySaved(content="two")),
        draft_event(CoreMemoryUpdated(section="user", key="k", value="v")),
        draft_event(MemorySaved(content="three")),
    ]
    first, failed, last = log.writer.append_drafts_individually(drafts)
    assert isinstance(first, Position)
    assert isinstance(failed, LogError)
    assert isinstance(last, Position)
    assert log.read() == ["one", "two", "three"]


def test_a_sync_that_fails_is_not_acknowledged_and_not_tried_again(log: Any, faulty_disk: Any) -> None:
    syncs = []

    def fdatasync(fd: int) -> None:
        syncs.append(fd)
        raise OSError(errno.EIO, "Input/output error")

    faulty_disk.sync_data = fdatasync
    writer = Log(log.store)
    event = MemorySaved(id="my-id", content="one")
    with pytest.raises(LogError, match="my-id may not have been stored") as failed:
        writer.append([event])
    assert failed.value.retryable
    assert len(syncs) == 1
    faulty_disk.sync_data = os.fdatasync
    assert writer.append([event])[0].id == "my-id"


def test_a_folder_that_cannot_be_synced_is_not_written_to(log: Any, faulty_disk: Any) -> None:
    log.append("one")
    before = log.segment.read_bytes()

    def fsync(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    faulty_disk.sync = fsync
    with pytest.raises(LogError):
        Log(log.store).append([MemorySaved(content="two")])
    assert log.segment.read_bytes() == before


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_log_that_cannot_be_written_says_so(log: Any, faulty_disk: Any, number: int) -> None:
    log.append("one")

    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(number, os.strerror(number))

    faulty_disk.open = refuse
    with pytest.raises(LogError, match="may not have been stored") as failed:
        log.append("two")
    assert failed.value.code == "cannot_create"
    assert failed.value.hint.startswith("make the store's folder writable")


def test_a_file_where_the_store_should_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(b"mine")
    with pytest.raises(LogError) as failed:
        Log(tmp_path / "store").append([MemorySaved(content="x")])
    assert failed.value.code == "cannot_create"
    assert (tmp_path / "store").read_bytes() == b"mine"


@pytest.mark.parametrize(("size", "left"), [(0, []), (10, ["torn"])])
def test_a_segment_that_became_shorter_can_be_appended_to(log: Any, size: int, left: list[str]) -> None:
    """An older copy was put back, or another file was given the number of a removed one, while a
    long-running writer had the longer file in mind."""
    log.append("one")
    os.truncate(log.segment, size)
    log.append("two")
    assert sorted(log.read()) == [*left, "two"]


# What is durable, and when


def _recorded(faulty_disk: Any) -> list[str]:
    """The writes and syncs of the log, by what they act on, as they happen."""
    calls: list[str] = []

    def recording(call: str) -> Callable[..., Any]:
        real = getattr(disk, call)

        def recorded(fd: int, *rest: Any) -> Any:
            path = Path(f"/proc/self/fd/{fd}").readlink()
            if path.parent.name != "writers":
                calls.append(f"{call} {path.name}")
            return real(fd, *rest)

        return recorded

    for call in ("write", "sync", "sync_data"):
        setattr(faulty_disk, call, recording(call))
    return calls


@_linux_only
def test_a_process_makes_the_names_durable_before_its_first_bytes(
    log: Any, clock: Any, faulty_disk: Any
) -> None:
    """Whoever made them: another process may have been killed before its own sync."""
    log.append("one")
    calls = _recorded(faulty_disk)
    Log(log.store).append([MemorySaved(content="two")])
    assert calls == [
        "sync memory",
        "sync log",
        "sync store",
        f"sync {log.store.parent.name}",
        f"write {log.name('2026-02-24')}",
        f"sync_data {log.name('2026-02-24')}",
    ]


@_linux_only
def test_the_second_append_of_a_process_syncs_the_bytes_alone(log: Any, clock: Any, faulty_disk: Any) -> None:
    writer = Log(log.store)
    writer.append([MemorySaved(content="one")])
    calls = _recorded(faulty_disk)
    writer.append([MemorySaved(content="two")])
    assert calls == [f"write {log.name('2026-02-24')}", f"sync_data {log.name('2026-02-24')}"]


@_linux_only
def test_a_new_segment_has_its_name_made_durable(log: Any, clock: Any, faulty_disk: Any) -> None:
    writer = Log(log.store)
    writer.append([MemorySaved(content="one")])
    clock.set("2026-02-25T00:00:00.000Z")
    calls = _recorded(faulty_disk)
    writer.append([MemorySaved(content="two")])
    assert calls.index("sync memory") < calls.index(f"write {log.name('2026-02-25', 1)}")


@_linux_only
def test_a_segment_that_was_replaced_has_its_name_made_durable(
    log: Any, clock: Any, faulty_disk: Any, tmp_path: Path
) -> None:
    writer = Log(log.store)
    writer.append([MemorySaved(content="one")])
    log.segment.rename(tmp_path / "kept")
    calls = _recorded(faulty_disk)
    writer.append([MemorySaved(content="two")])
    assert calls.index("sync memory") < calls.index(f"write {log.name('2026-02-24')}")


@_linux_only
def test_a_segment_that_was_removed_and_made_again_has_its_name_made_durable(
    log: Any, clock: Any, faulty_disk: Any
) -> None:
    writer = Log(log.store)
    writer.append([MemorySaved(content="one")])
    log.segment.unlink()
    calls = _recorded(faulty_disk)
    writer.append([MemorySaved(content="two")])
    assert "sync memory" in calls


@_linux_only
def test_many_events_are_one_write_and_one_sync(log: Any, clock: Any, faulty_disk: Any) -> None:
    writer = Log(log.store)
    writer.append([MemorySaved(content="one")])
    calls = _recorded(faulty_disk)
    writer.append([MemorySaved(content=f"{number}") for number in range(100)])
    assert calls == [f"write {log.name('2026-02-24')}", f"sync_data {log.name('2026-02-24')}"]


@_linux_only
def test_with_durability_os_nothing_is_synced(log: Any, clock: Any, faulty_disk: Any) -> None:
    log.append("one")
    calls = _recorded(faulty_disk)
    log.start_again()
    log.append("two")
    assert calls == [f"write {log.name('2026-02-24')}"]


def test_the_lock_is_free_while_the_bytes_are_synced(log: Any, faulty_disk: Any) -> None:
    """So that the syncs of several writers merge."""

    def fdatasync(fd: int) -> None:
        log.append("another writer")
        os.fdatasync(fd)

    log.append("first")
    faulty_disk.sync_data = fdatasync
    Log(log.store).append([MemorySaved(content="one")])
    assert log.read() == ["first", "one", "another writer"]


def test_a_stream_that_is_removed_while_a_segment_is_made_is_an_error(log: Any, faulty_disk: Any) -> None:
    def gone(path: Path | str, *rest: Any, **options: Any) -> int:
        if str(path).endswith(".jsonl"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return real(path, *rest, **options)

    real, faulty_disk.open = disk.open, gone
    with pytest.raises(LogError, match="No such file or directory"):
        log.append("one")


# What stands in a segment's place


def _link(path: Path) -> None:
    path.symlink_to(path.parents[3] / "elsewhere.jsonl")


def _link_to_a_file(path: Path) -> None:
    (path.parents[3] / "elsewhere.jsonl").write_bytes(b"mine")
    _link(path)


@pytest.mark.parametrize("make", [_link, _link_to_a_file, Path.mkdir, os.mkfifo])
@pytest.mark.parametrize("is_next", [False, True], ids=["in the place of the first", "of the next"])
def test_what_is_no_file_in_a_segments_place_is_left_alone_and_stops_no_stream(
    log: Any, clock: Any, tmp_path: Path, make: Callable[[Path], None], is_next: bool
) -> None:
    elsewhere = tmp_path / "elsewhere.jsonl"
    log.folder.mkdir(parents=True)
    if is_next:
        log.append("zero")
        clock.set("2026-02-25T00:00:00.000Z")
    name = log.name("2026-02-25", 1) if is_next else log.name("2026-02-24")
    make(log.folder / name)
    with ending():
        (position,) = log.append("one")
    assert position.segment != name
    assert line_of(log, position)["content"] == "one"
    assert not elsewhere.exists() or elsewhere.read_bytes() == b"mine"


def test_a_link_of_an_older_day_is_not_taken_for_the_newest(log: Any, clock: Any, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.jsonl").touch()
    log.folder.mkdir(parents=True)
    (log.folder / log.name("2026-02-24", 1)).symlink_to(tmp_path / "elsewhere.jsonl")
    assert log.append("one")[0].segment == log.name("2026-02-24")


def test_what_is_acknowledged_stands_where_the_log_is_read(log: Any, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    log.folder.parent.mkdir(parents=True)
    log.folder.symlink_to(tmp_path / "elsewhere")
    try:
        (position,) = log.append("one")
    except LogError:
        return
    segments, _ = list_segments(log.store / "log")
    assert position.stream in [segment.stream for segment in segments]


def test_a_log_that_is_a_link_is_read_and_appended_to_alike(log: Any, tmp_path: Path) -> None:
    """A log on another disk."""
    (tmp_path / "other disk").mkdir()
    log.store.mkdir()
    (log.store / "log").symlink_to(tmp_path / "other disk")
    log.write_segment("2026-02-24.jsonl", b'{"type":"memory_saved","content":"one"}\n')
    is_read = list_segments(log.store / "log")[0] != []
    try:
        is_appended_to = bool(log.append("two"))
    except LogError:
        is_appended_to = False
    assert is_read == is_appended_to


# Locks


@_linux_only
def test_a_lock_that_another_process_holds_is_busy_and_names_it(log: Any, hold_lock: Hold) -> None:
    log.append("one")
    holder = hold_lock(log.segment)
    with pytest.raises(Busy) as busy, ending():
        log.append("two")
    assert busy.value.message == f"memory/{log.segment.name} is locked by process {holder.pid}"
    assert busy.value.retryable
    assert log.read() == ["one"]


@_linux_only
def test_who_waits_for_a_lock_is_not_named_as_its_holder(log: Any, hold_lock: Hold) -> None:
    log.append("one")
    holder = hold_lock(log.segment)
    waiting = subprocess.Popen(["flock", log.segment, "true"])
    try:
        with ending():
            while "->" not in Path("/proc/locks").read_text():
                time.sleep(0.01)
        with pytest.raises(Busy) as busy:
            log.append("two")
    finally:
        holder.kill()
        waiting.wait()
    assert busy.value.message.endswith(f"is locked by process {holder.pid}")


def test_another_stream_is_not_held_up(log: Any, hold_lock: Hold) -> None:
    log.append("one")
    hold_lock(log.segment)
    log.writer.append([CoreMemoryUpdated(section="user", key="k", value="v")])


def test_a_lock_is_free_when_its_holder_was_killed(log: Any, hold_lock: Hold) -> None:
    log.append("one")
    holder = hold_lock(log.segment)
    holder.kill()
    holder.wait()
    log.append("two")
    assert log.read() == ["one", "two"]


def test_a_lock_is_waited_for(log: Any, hold_lock: Hold) -> None:
    log.append("one")
    holder = hold_lock(log.segment)
    threading.Timer(0.2, holder.kill).start()
    Log(log.store, durability="os", lock_timeout=60).append([MemorySaved(content="two")])
    assert log.read() == ["one", "two"]


def test_where_the_system_does_not_tell_who_holds_a_lock_it_is_another_process(
    log: Any, hold_lock: Hold, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log.append("one")
    hold_lock(log.segment)
    monkeypatch.setattr(locks, "_PROC", str(tmp_path / "none"))
    with pytest.raises(Busy, match="is locked by another process"):
        log.append("two")


def test_a_lock_that_fails_is_no_lock_that_another_one_has(log: Any, faulty_disk: Any) -> None:
    def lock(fd: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    log.append("one")
    faulty_disk.lock = lock
    with pytest.raises(LogError, match="No locks available"):
        log.append("two")


def test_whether_a_lock_is_held_can_be_asked_without_taking_it(log: Any, hold_lock: Hold) -> None:
    assert not locks.is_lock_held(log.store / "nothing")
    log.append("one")
    assert not locks.is_lock_held(log.segment)
    holder = hold_lock(log.segment)
    assert locks.is_lock_held(log.segment)
    holder.kill()
    holder.wait()
    assert not locks.is_lock_held(log.segment)


def test_a_lock_is_not_left_behind(log: Any) -> None:
    log.append("one")
    with log.segment.open("ab") as file:
        locks.lock_file(file.fileno(), "the segment", 0.0)


def test_no_descriptor_is_left_open(log: Any, faulty_disk: Any) -> None:
    before = len(os.listdir("/dev/fd"))
    log.append("one")
    faulty_disk.write = _failing(errno.ENOSPC)
    with pytest.raises(LogError):
        log.append("two")
    assert len(os.listdir("/dev/fd")) == before


# Modes


def test_files_and_folders_are_their_owners_alone_whatever_the_umask(log: Any) -> None:
    previous = os.umask(0)
    try:
        Log(log.store).append(
            [MemorySaved(content="x"), Message(channel="a", chat_id="1", role="user", content="y")]
        )
    finally:
        os.umask(previous)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [log.store, *log.store.rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    # The store, its log with FORMAT, three folders and two segments, and two files of the writer in a folder.
    assert len(modes) == 11


def test_an_event_with_a_known_id_is_compared_with_the_one_that_has_it(tmp_path: Path) -> None:
    first = {"type": "memory_saved", "id": "a", "content": "tea"}
    held: dict[str, KnownId] = {}
    log = Log(tmp_path, look_up=lambda _, ids: {each: held[each] for each in ids if each in held})
    (position,) = log.append([first])
    assert (position.conflict, position.duplicate) == (None, False)
    holder = IdHolder(position.stream, position.segment, position.offset)
    held["a"] = KnownId(holder, log.draft_event(first).content)
    again, other, new = log.append([first, first | {"content": "coffee"}, first | {"id": "b"}])
    assert (again.conflict, again.duplicate) == (None, True)
    assert (other.conflict, other.duplicate) == (holder, False)
    assert (new.conflict, new.duplicate) == (None, False)

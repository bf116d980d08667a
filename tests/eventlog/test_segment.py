"""Reading one segment: its lines, and the fingerprint of what was read."""

import os
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlog.eventlog.log.quarantine import MAX_LINE
from memlog.eventlog.log.reader import (
    UNREAD,
    Fingerprint,
    Line,
    opening_segment_file,
    read_line_at,
    read_lines,
    take_fingerprint,
)

MIB = 1024 * 1024
BLOCK = 64 * 1024
LINES = [b'{"n":1}', b"", b"second \xe8\x8c\xb6", b"\r", b"x" * 100]
SMALL = b"".join(line + b"\n" for line in LINES)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A small file of five lines."""
    path = tmp_path / "log" / "memory" / "2026-02-24.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(SMALL)
    return path


def at(path: Path) -> tuple[Path, str, str]:
    """The log, the stream and the file name of a segment."""
    return path.parent.parent, path.parent.name, path.name


def lines_of(path: Path, start: int = 0, **options: Any) -> list[Line]:
    with opening_segment_file(*at(path)) as fd:
        return list(read_lines(fd, start, **options))


def test_lines_know_their_number_offset_length_and_end(segment: Path) -> None:
    assert lines_of(segment) == [
        Line(0, 1, 7, 8, LINES[0]),
        Line(8, 2, 0, 9, LINES[1]),
        Line(9, 3, 10, 20, LINES[2]),
        Line(20, 4, 1, 22, LINES[3]),
        Line(22, 5, 100, 123, LINES[4]),
    ]


def test_every_cut_leaves_all_whole_lines(segment: Path) -> None:
    whole = lines_of(segment)
    for size in range(len(SMALL), -1, -1):
        os.truncate(segment, size)
        assert lines_of(segment) == [line for line in whole if line.end <= size], size


def test_every_cut_leaves_a_tail_where_one_is_asked_for(segment: Path) -> None:
    for size in range(len(SMALL), -1, -1):
        os.truncate(segment, size)
        found = lines_of(segment, tail_is_a_line=True)
        assert b"".join(SMALL[line.offset : line.end] for line in found) == SMALL[:size]
        assert all(line.data == SMALL[line.offset :][: line.length] for line in found)


def test_a_tail_ends_where_the_file_ends(segment: Path) -> None:
    os.truncate(segment, 15)
    assert lines_of(segment, tail_is_a_line=True)[-1] == Line(9, 3, 6, 15, SMALL[9:15])


def test_reading_on_finds_the_rest(segment: Path) -> None:
    whole = lines_of(segment)
    for index, line in enumerate(whole):
        assert lines_of(segment, line.offset, number=line.number) == whole[index:]


def test_reading_stops_at_its_end(segment: Path) -> None:
    whole = lines_of(segment)
    for end in range(len(SMALL) + 1):
        assert lines_of(segment, end=end) == [line for line in whole if line.end <= end], end


def test_only_a_newline_ends_a_line(segment: Path) -> None:
    for mark in ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1e", "\x85", "\r", "\x00"]:
        data = f"one{mark}two".encode()
        segment.write_bytes(data + b"\n" + data + b"\n")
        assert [line.data for line in lines_of(segment)] == [data, data], mark


def test_lines_longer_than_what_is_read_at_once_are_whole(segment: Path) -> None:
    for length in [MIB - 2, MIB - 1, MIB, MIB + 1, 3 * MIB]:
        long = random.Random(length).randbytes(length).replace(b"\n", b"_")
        segment.write_bytes(b"before\n" + long + b"\nafter\n")
        assert [line.data for line in lines_of(segment)] == [b"before", long, b"after"], length


def test_a_line_of_16_mib_is_loaded_and_one_more_byte_is_not(segment: Path) -> None:
    with segment.open("wb") as file:
        for length in (MAX_LINE, MAX_LINE + 1):
            file.write(b"x" * length + b"\n")
        file.write(b"after\n")
    with opening_segment_file(*at(segment)) as fd:
        lines = read_lines(fd)
        first = next(lines)
        assert (first.length, first.data) == (MAX_LINE, b"x" * MAX_LINE)
        assert next(lines) == Line(MAX_LINE + 1, 2, MAX_LINE + 1, 2 * MAX_LINE + 3, None)
        assert next(lines).data == b"after"


def test_a_line_too_long_is_measured_and_not_loaded(segment: Path) -> None:
    """However long it is, no more than the longest line that may be an event is held."""
    for mebibytes in [17, 64]:
        length = mebibytes * MIB
        with segment.open("wb") as file:
            file.truncate(length)  # a hole: NUL bytes
            file.seek(length)
            file.write(b"\nafter\n")
        tracemalloc.start()
        try:
            found = lines_of(segment)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert found == [
            Line(0, 1, length, length + 1, None),
            Line(length + 1, 2, 5, length + 7, b"after"),
        ], mebibytes
        assert peak < MAX_LINE + 4 * MIB, mebibytes


def test_a_tail_too_long_is_measured_and_not_loaded(segment: Path) -> None:
    os.truncate(segment, 0)
    os.truncate(segment, 17 * MIB)
    assert lines_of(segment, tail_is_a_line=True) == [Line(0, 1, 17 * MIB, 17 * MIB, None)]


def test_one_line_is_read_by_its_place(segment: Path) -> None:
    assert [read_line_at(*at(segment), line.offset, line.length) for line in lines_of(segment)] == LINES


def test_a_link_in_a_segments_place_is_not_followed(segment: Path) -> None:
    link = segment.with_name("link")
    link.symlink_to(segment)
    with pytest.raises(FileNotFoundError, match="regular file"), opening_segment_file(*at(link)):
        pass


def test_a_link_in_a_folders_place_is_not_followed(segment: Path) -> None:
    log = segment.parent.parent
    (log / "elsewhere").symlink_to(segment.parent)
    with (
        pytest.raises(FileNotFoundError, match="Not a directory"),
        opening_segment_file(log, "elsewhere", segment.name),
    ):
        pass


def test_the_log_itself_may_be_a_link(segment: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(segment.parent.parent)
    with opening_segment_file(tmp_path / "elsewhere", "memory", segment.name) as fd:
        assert fd


def test_a_pipe_that_stands_as_a_segment_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(FileNotFoundError, match="regular file"), opening_segment_file(*at(tmp_path / "fifo")):
        pass


PREFIX = random.Random(7).randbytes(3 * BLOCK + 5000)


@pytest.fixture(scope="module")
def long_fd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """An open file of three whole blocks and a rest."""
    path = tmp_path_factory.mktemp("segment") / "long.jsonl"
    path.write_bytes(PREFIX)
    fd = os.open(path, os.O_RDWR)
    yield fd
    os.close(fd)


@given(offsets=st.lists(st.integers(0, len(PREFIX)), max_size=6).map(sorted))
def test_a_fingerprint_extended_in_steps_is_that_of_one_go(long_fd: int, offsets: list[int]) -> None:
    mark = UNREAD
    for offset in [*offsets, len(PREFIX)]:
        mark = mark.extend_to_offset(long_fd, offset)
        assert mark == take_fingerprint(long_fd, offset)


def test_a_fingerprint_matches_what_it_was_made_of(long_fd: int) -> None:
    for offset in [0, 1, 4095, 4096, 4097, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK]:
        mark = take_fingerprint(long_fd, offset)
        assert mark.offset == offset, offset
        assert mark.matches_all_bytes(long_fd), offset
        assert mark.matches_tail(long_fd), offset


def test_the_fingerprint_of_nothing_is_that_of_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with opening_segment_file(*at(tmp_path / "empty")) as fd:
        assert take_fingerprint(fd, 0) == UNREAD


def _with_byte_changed(fd: int, offset: int, mark: Fingerprint) -> tuple[bool, bool]:
    """Whether the whole and the tail still match while one byte is another."""
    os.pwrite(fd, bytes([PREFIX[offset] ^ 0x01]), offset)
    try:
        return mark.matches_all_bytes(fd), mark.matches_tail(fd)
    finally:
        os.pwrite(fd, PREFIX[offset : offset + 1], offset)


def test_a_changed_byte_anywhere_is_found(long_fd: int) -> None:
    mark = take_fingerprint(long_fd, len(PREFIX))
    edges = {edge + step for edge in range(0, len(PREFIX), BLOCK) for step in (-1, 0, 1)}
    places = {place for place in edges if 0 <= place < len(PREFIX)} | {len(PREFIX) - 1}
    places |= set(random.Random(1).sample(range(len(PREFIX)), 300))
    unnoticed = [place for place in sorted(places) if _with_byte_changed(long_fd, place, mark)[0]]
    assert unnoticed == []
    assert mark.matches_all_bytes(long_fd)


def test_a_changed_byte_in_the_last_4_kib_is_found_by_the_tail_alone(long_fd: int) -> None:
    mark = take_fingerprint(long_fd, len(PREFIX))
    last = range(len(PREFIX) - 4096, len(PREFIX))
    unnoticed = [place for place in last if _with_byte_changed(long_fd, place, mark)[1]]
    assert unnoticed == []


def test_the_tail_alone_looks_at_4_kib(long_fd: int) -> None:
    """That is what makes it cheap: what stands before them is for the whole fingerprint to find."""
    mark = take_fingerprint(long_fd, len(PREFIX))
    assert _with_byte_changed(long_fd, len(PREFIX) - 4097, mark) == (False, True)


def test_what_follows_does_not_matter(segment: Path) -> None:
    with opening_segment_file(*at(segment)) as fd:
        mark = take_fingerprint(fd, 22)
        segment.write_bytes(SMALL[:22] + b"something else")
        assert mark.matches_all_bytes(fd)
        assert mark.matches_tail(fd)


def test_a_file_that_has_become_shorter_does_not_match(segment: Path) -> None:
    with opening_segment_file(*at(segment)) as fd:
        mark = take_fingerprint(fd, len(SMALL))
        for size in range(len(SMALL)):
            os.truncate(segment, size)
            assert not mark.matches_all_bytes(fd)
            assert not mark.matches_tail(fd)
            segment.write_bytes(SMALL)

"""Seals: what is sealed can be checked byte by byte, and what is done to the seals themselves is told."""

import errno
import os
import stat
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from memlog.eventlog.errors import Busy
from memlog.eventlog.files import disk
from memlog.eventlog.integrity.seal_file import SealFiles, measure_segment, read_seals
from memlog.eventlog.integrity.seal_format import (
    BLANK,
    FIRST,
    Seal,
    Seals,
    compute_link_hash,
    encode_seal,
    parse_seals,
)
from memlog.eventlog.log.streams import list_segments

Hold = Callable[[Path], "subprocess.Popen[bytes]"]

FIRST_DAY, SECOND_DAY, THIRD_DAY = (f"2026-02-2{day}.jsonl" for day in (4, 5, 6))


@pytest.fixture
def sealed(log: Any, clock: Any) -> Path:
    """The log's folder: three segments, each with a seal."""
    for name in (FIRST_DAY, SECOND_DAY, THIRD_DAY):
        log.write_segment(name, f'{{"content":"{name}"}}\n'.encode())
    folder: Path = log.folder.parent
    SealFiles(folder).seal_segments("memory", [FIRST_DAY, SECOND_DAY, THIRD_DAY])
    return folder


def damage_in(folder: Path) -> list[tuple[int, str | None]]:
    return [(line.number, line.damage) for line in read_seals(folder).damaged_lines]


def lines_of(folder: Path) -> list[bytes]:
    return (folder / "seals.jsonl").read_bytes().splitlines(keepends=True)


def write(folder: Path, *lines: bytes) -> None:
    (folder / "seals.jsonl").write_bytes(b"".join(lines))


def flip(data: bytes, offset: int) -> bytes:
    changed = bytearray(data)
    changed[offset] ^= 0x01
    return bytes(changed)


def test_a_log_without_seals_has_none(tmp_path: Path) -> None:
    assert read_seals(tmp_path / "log") == Seals([], {})


def test_the_seals_are_no_stream_and_no_stranger(sealed: Path) -> None:
    segments, strangers = list_segments(sealed)
    assert [segment.stream for segment in segments] == ["memory"] * 3
    assert strangers == []


def test_a_seal_says_what_its_segment_holds(sealed: Path) -> None:
    data = (sealed / "memory" / SECOND_DAY).read_bytes()
    found = read_seals(sealed)
    said = found.valid_seals["memory", SECOND_DAY]
    assert (said.bytes, said.lines, said.sha256) == (len(data), 1, sha256(data).hexdigest())
    assert said.at == "2026-02-24T10:15:00.000Z"
    assert said.is_of(measure_segment(sealed, "memory", SECOND_DAY))
    assert found.damaged_lines == []


def test_each_seal_has_the_hash_of_the_one_before(sealed: Path) -> None:
    first, second, third = (line.rstrip(b"\n") for line in lines_of(sealed))
    said = read_seals(sealed).lines
    assert [line.seal and line.seal.prev for line in said] == [
        FIRST,
        compute_link_hash(first),
        compute_link_hash(second),
    ]
    assert sha256().hexdigest() == FIRST
    assert compute_link_hash(third) != compute_link_hash(second)


def test_a_tail_without_newline_is_sealed_as_it_stands(log: Any) -> None:
    log.write_segment(FIRST_DAY, b'{"content":"tea"}\n{"content":"tor')
    (made,) = SealFiles(log.folder.parent).seal_segments("memory", [FIRST_DAY])
    assert (made.lines, made.bytes) == (2, 33)


def test_an_empty_segment_has_a_seal_too(log: Any) -> None:
    log.write_segment(FIRST_DAY, b"")
    (made,) = SealFiles(log.folder.parent).seal_segments("memory", [FIRST_DAY])
    assert (made.bytes, made.lines, made.sha256) == (0, 0, FIRST)


def test_what_is_sealed_is_not_sealed_again(sealed: Path) -> None:
    before = lines_of(sealed)
    assert SealFiles(sealed).seal_segments("memory", [FIRST_DAY, SECOND_DAY]) == []
    assert lines_of(sealed) == before


def test_the_file_is_for_its_owner_alone(sealed: Path) -> None:
    assert stat.S_IMODE((sealed / "seals.jsonl").stat().st_mode) == 0o600


def test_the_time_never_goes_back(sealed: Path, log: Any, clock: Any) -> None:
    clock.set("2020-01-01T00:00:00.000Z")
    log.write_segment("2026-02-27.jsonl", b"")
    (made,) = SealFiles(sealed).seal_segments("memory", ["2026-02-27.jsonl"])
    assert made.at == "2026-02-24T10:15:00.000Z"


def test_segment_and_names_are_durable_before_their_seal_and_the_seal_before_it_is_told(
    log: Any, faulty_disk: Any
) -> None:
    real, done = (disk.sync, disk.sync_data, disk.write), []

    def name_of(fd: int) -> str:
        return Path(os.readlink(f"/proc/self/fd/{fd}")).name

    def sync(fd: int) -> None:
        done.append(f"sync {name_of(fd)}")
        real[0](fd)

    def sync_data(fd: int) -> None:
        done.append(f"sync {name_of(fd)}")
        real[1](fd)

    def write(fd: int, data: bytes) -> int:
        done.append(f"write {name_of(fd)}")
        return real[2](fd, data)

    log.write_segment(FIRST_DAY, b"{}\n")
    faulty_disk.sync, faulty_disk.sync_data, faulty_disk.write = sync, sync_data, write
    SealFiles(log.folder.parent).seal_segments("memory", [FIRST_DAY])
    assert done == [
        *(f"sync {name}" for name in (FIRST_DAY, "memory", "log", "store")),
        *("sync log", "sync store", "write seals.jsonl", "sync seals.jsonl"),
    ]


def test_a_short_write_leaves_a_fragment_and_the_seal_whole_behind_it(log: Any, faulty_disk: Any) -> None:
    log.write_segment(FIRST_DAY, b"{}\n")
    real, lengths = disk.write, [40]
    faulty_disk.write = lambda fd, data: real(fd, data[: lengths.pop()] if lengths else data)
    SealFiles(log.folder.parent).seal_segments("memory", [FIRST_DAY])
    assert damage_in(log.folder.parent) == [(1, "torn")]
    assert ("memory", FIRST_DAY) in read_seals(log.folder.parent).valid_seals


def test_a_seal_that_could_not_be_written_is_an_error(log: Any, faulty_disk: Any) -> None:
    def write(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    log.write_segment(FIRST_DAY, b"{}\n")
    faulty_disk.write = write
    with pytest.raises(OSError, match="No space"):
        SealFiles(log.folder.parent).seal_segments("memory", [FIRST_DAY])
    assert read_seals(log.folder.parent).valid_seals == {}


def test_a_torn_last_line_is_no_seal_and_is_left_where_it_stands(sealed: Path, log: Any) -> None:
    first, second, third = lines_of(sealed)
    for cut in range(1, len(third) - 1):
        write(sealed, first, second, third[:cut])
        assert damage_in(sealed) == [(3, "torn")], cut
        assert len(read_seals(sealed).valid_seals) == 2
    torn = (sealed / "seals.jsonl").read_bytes()
    SealFiles(sealed).seal_segments("memory", [THIRD_DAY])
    assert (sealed / "seals.jsonl").read_bytes().startswith(torn + b"\n")
    assert damage_in(sealed) == [(3, "torn")]
    assert len(read_seals(sealed).valid_seals) == 3


def test_a_last_line_that_lacks_its_newline_alone_is_a_seal(sealed: Path, log: Any) -> None:
    whole = (sealed / "seals.jsonl").read_bytes()
    write(sealed, whole[:-1])
    assert damage_in(sealed) == []
    log.write_segment("2026-02-27.jsonl", b"")
    SealFiles(sealed).seal_segments("memory", [THIRD_DAY, "2026-02-27.jsonl"])
    assert (sealed / "seals.jsonl").read_bytes().startswith(whole)
    assert damage_in(sealed) == []
    assert len(lines_of(sealed)) == 4


def test_every_flipped_bit_is_told(sealed: Path) -> None:
    whole = (sealed / "seals.jsonl").read_bytes()
    for offset in range(len(whole) - 1):  # the last newline may be missing
        for bit in range(8):
            changed = bytearray(whole)
            changed[offset] ^= 1 << bit
            told = {line.damage for line in parse_seals(bytes(changed), "seals.jsonl").damaged_lines}
            assert told - {"torn"}, (offset, bit)


def test_a_line_that_was_removed_breaks_the_chain(sealed: Path) -> None:
    first, second, third = lines_of(sealed)
    write(sealed, second, third)
    assert damage_in(sealed) == [(1, "broken_chain")]
    write(sealed, first, third)
    assert damage_in(sealed) == [(2, "broken_chain")]


def test_lines_that_were_swapped_break_the_chain(sealed: Path) -> None:
    first, second, third = lines_of(sealed)
    write(sealed, second, first, third)
    assert damage_in(sealed) == [(1, "broken_chain"), (2, "broken_chain"), (3, "broken_chain")]


def test_a_repeated_line_is_told(sealed: Path) -> None:
    first, second, third = lines_of(sealed)
    write(sealed, first, second, second, third)
    assert damage_in(sealed) == [(3, "broken_chain")]


def test_a_second_seal_in_the_chain_is_told(sealed: Path) -> None:
    third = lines_of(sealed)[-1].rstrip(b"\n")
    again = Seal("memory", FIRST_DAY, 1, 1, "0" * 64, compute_link_hash(third), "2026-02-27T00:00:00.000Z")
    write(sealed, *lines_of(sealed), encode_seal(again))
    assert damage_in(sealed) == [(4, "second_seal")]


def test_a_line_of_another_kind_is_told_and_hides_no_seal(sealed: Path) -> None:
    first, *rest = lines_of(sealed)
    write(sealed, first, b'{"type":"message"}\n', b"\xff\n", b"\n", *rest)
    assert damage_in(sealed) == [(2, "no_seal"), (3, "no_seal")]
    assert len(read_seals(sealed).valid_seals) == 3


def test_after_damage_the_chain_goes_on_from_the_last_seal(sealed: Path, log: Any) -> None:
    first, second, third = lines_of(sealed)
    write(sealed, first, second, flip(third, 10))
    SealFiles(sealed).seal_segments("memory", [THIRD_DAY])
    assert [number for number, _ in damage_in(sealed)] == [3]
    assert len(read_seals(sealed).valid_seals) == 3


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("elsewhere", path)])
def test_what_is_no_regular_file_is_told_and_neither_read_nor_written(
    log: Any, make: Callable[[Path], None]
) -> None:
    log.write_segment(FIRST_DAY, b"{}\n")
    make(log.folder.parent / "seals.jsonl")
    assert damage_in(log.folder.parent) == [(0, "no_file")]
    with pytest.raises((FileExistsError, IsADirectoryError)):
        SealFiles(log.folder.parent).seal_segments("memory", [FIRST_DAY])
    assert not (log.folder.parent / "elsewhere").exists()


def test_a_file_that_was_put_in_the_place_of_the_locked_one_is_the_one_written(
    sealed: Path, log: Any, faulty_disk: Any
) -> None:
    log.write_segment("2026-02-27.jsonl", b"")
    path, real = sealed / "seals.jsonl", disk.lock

    def lock(fd: int) -> None:
        real(fd)
        if not (sealed / "old").exists():
            path.rename(sealed / "old")
            path.write_bytes((sealed / "old").read_bytes())

    faulty_disk.lock = lock
    SealFiles(sealed).seal_segments("memory", ["2026-02-27.jsonl"])
    assert len(lines_of(sealed)) == 4
    assert damage_in(sealed) == []


def test_a_file_that_was_removed_under_the_lock_is_made_anew(
    sealed: Path, log: Any, faulty_disk: Any
) -> None:
    real, path = disk.lock, sealed / "seals.jsonl"
    log.write_segment("2026-02-27.jsonl", b"")
    times = [1]

    def lock(fd: int) -> None:
        real(fd)
        if times:
            times.pop()
            path.unlink()

    faulty_disk.lock = lock
    SealFiles(sealed).seal_segments("memory", ["2026-02-27.jsonl"])
    assert len(lines_of(sealed)) == 1


def test_who_waits_for_too_long_is_told_who_holds_the_seals(sealed: Path, log: Any, hold_lock: Hold) -> None:
    holder = hold_lock(sealed / "seals.jsonl")
    log.write_segment("2026-02-27.jsonl", b"")
    with pytest.raises(Busy, match=f"log/seals.jsonl is locked by process {holder.pid}"):
        SealFiles(sealed).seal_segments("memory", ["2026-02-27.jsonl"], lock_timeout=0.05)


def test_who_comes_second_seals_nothing_twice(sealed: Path, log: Any, faulty_disk: Any) -> None:
    log.write_segment("2026-02-27.jsonl", b"")
    real, inner = disk.lock, [1]

    def lock(fd: int) -> None:
        if inner:
            inner.pop()
            SealFiles(sealed).seal_segments("memory", ["2026-02-27.jsonl"])
        real(fd)

    faulty_disk.lock = lock
    assert SealFiles(sealed).seal_segments("memory", ["2026-02-27.jsonl"]) == []
    assert len(lines_of(sealed)) == 4


def scrub(folder: Path) -> None:
    path = folder / "memory" / FIRST_DAY
    path.write_bytes(b" " * (path.stat().st_size - 1) + b"\n")


def test_after_an_erasure_a_new_seal_stands_and_the_old_hash_is_blank(sealed: Path) -> None:
    before = (sealed / "seals.jsonl").read_bytes()
    scrub(sealed)
    made = SealFiles(sealed).reseal("memory", FIRST_DAY)
    after = (sealed / "seals.jsonl").read_bytes()
    found = read_seals(sealed)
    assert found.damaged_lines == []
    assert made == found.valid_seals["memory", FIRST_DAY]
    assert made is not None
    assert made.is_of(measure_segment(sealed, "memory", FIRST_DAY))
    assert found.lines[0].seal is not None
    assert found.lines[0].seal.sha256 == BLANK
    # Nothing else moved: the same file, and every other byte of it.
    changed = [
        at for at, (old, new) in enumerate(zip(before, after[: len(before)], strict=True)) if old != new
    ]
    assert max(changed) < len(lines_of(sealed)[0])


def test_resealing_again_changes_nothing(sealed: Path) -> None:
    scrub(sealed)
    made = SealFiles(sealed).reseal("memory", FIRST_DAY)
    before = (sealed / "seals.jsonl").read_bytes()
    assert SealFiles(sealed).reseal("memory", FIRST_DAY) == made
    assert (sealed / "seals.jsonl").read_bytes() == before


def test_a_segment_without_a_seal_is_given_none(sealed: Path, log: Any) -> None:
    log.write_segment("2026-02-27.jsonl", b"")
    before = lines_of(sealed)
    assert SealFiles(sealed).reseal("memory", "2026-02-27.jsonl") is None
    assert lines_of(sealed) == before


def test_an_erasure_that_was_begun_is_seen_until_the_new_seal_stands(sealed: Path) -> None:
    SealFiles(sealed).blank_seals("memory", FIRST_DAY)
    found = read_seals(sealed)
    assert found.damaged_lines == []
    assert [name for name, said in found.valid_seals.items() if said.is_blank] == [("memory", FIRST_DAY)]
    scrub(sealed)
    SealFiles(sealed).reseal("memory", FIRST_DAY)
    assert not any(said.is_blank for said in read_seals(sealed).valid_seals.values())


def test_an_erasure_cut_at_any_byte_of_the_blanking_is_finished_by_the_next(
    sealed: Path, faulty_disk: Any
) -> None:
    before, real = (sealed / "seals.jsonl").read_bytes(), disk.overwrite
    scrub(sealed)
    for cut in range(0, len(lines_of(sealed)[0]), 16):
        write(sealed, before)

        def overwrite(fd: int, data: bytes, offset: int, *, cut: int = cut) -> int:
            real(fd, data[:cut], offset)
            raise OSError(errno.EIO, "cut")

        faulty_disk.overwrite = overwrite
        with pytest.raises(OSError, match="cut"):
            SealFiles(sealed).reseal("memory", FIRST_DAY)
        faulty_disk.overwrite = real
        SealFiles(sealed).reseal("memory", FIRST_DAY)
        assert damage_in(sealed) == [], cut
        assert BLANK.encode() in lines_of(sealed)[0]


def test_an_overwrite_that_comes_short_goes_on_where_it_stopped(sealed: Path, faulty_disk: Any) -> None:
    real = disk.overwrite
    faulty_disk.overwrite = lambda fd, data, offset: real(fd, data[:7], offset)
    SealFiles(sealed).blank_seals("memory", FIRST_DAY)
    assert damage_in(sealed) == []
    assert BLANK.encode() in lines_of(sealed)[0]


def test_a_second_erasure_blanks_the_seal_of_the_first(sealed: Path) -> None:
    scrub(sealed)
    SealFiles(sealed).reseal("memory", FIRST_DAY)
    path = sealed / "memory" / FIRST_DAY
    path.write_bytes(b" " * path.stat().st_size)
    SealFiles(sealed).reseal("memory", FIRST_DAY)
    hashes = [
        line.seal.sha256 for line in read_seals(sealed).lines if line.seal and line.seal.segment == FIRST_DAY
    ]
    assert hashes == [BLANK, BLANK, sha256(path.read_bytes()).hexdigest()]
    assert damage_in(sealed) == []

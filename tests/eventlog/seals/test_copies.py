"""Seals of several writers in one log: what is still to come from another copy, and what was changed."""

import os
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from memlog.eventlog.events import MemorySaved, Redacted
from memlog.eventlog.integrity import scrub
from memlog.eventlog.integrity.copy_identity import Writer
from memlog.eventlog.integrity.seal_close import accept_losses, seal_unsealed_segments
from memlog.eventlog.integrity.seal_file import SealFiles, read_seals
from memlog.eventlog.integrity.seal_losses import Loss, find_arriving_segments, find_losses
from memlog.eventlog.integrity.seal_reader import read_sealed_lengths
from memlog.eventlog.integrity.verify import LogCheck, check_log
from memlog.eventlog.log.layout import WRITERS
from memlog.eventlog.log.reader import read_redacted_keys, select_segments
from memlog.eventlog.log.streams import list_segments
from memlog.eventlog.log.writer import Log


class Copy:
    """A copy of a store, which appends to segments of its own."""

    def __init__(self, store: Path) -> None:
        self.store, self.log = store, store / "log"

    def say(self, content: str, event_id: str | None = None) -> None:
        Log(self.store, durability="os").append([MemorySaved(id=event_id, content=content)])

    def seal(self) -> None:
        seal_unsealed_segments(self.store)

    def forget(self, event_id: str) -> None:
        Log(self.store, durability="os").append([Redacted(target_id=event_id, stream="memory")])

    def scrub(self) -> list[str]:
        """As the service does it, on the log alone; returns what became of each seal."""
        seals = SealFiles(self.log, Writer(self.store).find_or_create_name())
        segments = select_segments(self.log)
        redacted = read_redacted_keys(segments)
        erased = [
            scrub.erase_lines(
                segment, lines, redacted, seals=seals, lock_timeout=1, around=lambda _: nullcontext()
            )
            for segment, lines in scrub.find_lines_to_erase(segments, redacted)
        ]
        for segment in scrub.find_unfinished_segments(segments):
            seals.reseal(*segment.stream_and_filename, lock_timeout=1)
        return [each.seal for each in erased]

    def check(self) -> LogCheck:
        return check_log(self.log)

    @property
    def segments(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (self.log / "memory").iterdir()}

    @property
    def seals(self) -> bytes:
        return b"".join(path.read_bytes() for path in sorted(self.log.glob("seals*")))


@pytest.fixture
def origin(tmp_path: Path) -> Copy:
    """One sealed segment of three lines, and one that is open."""
    copy = Copy(tmp_path / "origin")
    for number in range(3):
        copy.say(f"green {number}", f"m{number}")
    copy.seal()
    copy.say("black")
    return copy


@pytest.fixture
def other(origin: Copy, tmp_path: Path) -> Copy:
    """A copy of `origin` that has made a writer of its own."""
    shutil.copytree(origin.store, tmp_path / "other", copy_function=shutil.copy2)
    copy = Copy(tmp_path / "other")
    copy.say("white")
    return copy


def sealed_segment(copy: Copy) -> Path:
    ((stream, name),) = read_sealed_lengths(copy.log)
    return copy.log / stream / name


def send(source: Copy, target: Copy) -> None:
    """Copy all files that the writer of `source` makes, as a file sync does, and no others."""
    writer = Writer(source.store).find_or_create_name()
    for path in source.log.rglob(f"*.{writer}.*"):
        shutil.copy2(path, target.log / path.relative_to(source.log))


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_segment_of_another_writer_that_is_shorter_than_its_seal_is_arriving(
    other: Copy, size: int
) -> None:
    path = sealed_segment(other)
    whole = path.stat().st_size
    os.truncate(path, size)
    found = other.check()
    assert found.tampered == []
    assert found.notes == [f"memory/{path.name}: {size} of {whole} bytes have arrived"]
    assert find_losses(other.log) == []
    assert find_arriving_segments(other.log) == [Loss("memory", path.name, whole, size)]


def test_a_segment_of_another_writer_that_is_not_there_is_arriving(other: Copy) -> None:
    path = sealed_segment(other)
    whole = path.stat().st_size
    path.unlink()
    found = other.check()
    assert (found.tampered, find_losses(other.log)) == ([], [])
    assert found.notes == [f"memory/{path.name}: 0 of {whole} bytes have arrived"]


def test_a_segment_of_another_writer_whose_seal_is_missing_is_arriving(other: Copy) -> None:
    path = sealed_segment(other)
    next(other.log.glob("seals*")).unlink()
    found = other.check()
    assert found.tampered == []
    assert found.notes == [f"memory/{path.name}: its seal has not arrived"]


def test_of_the_own_writer_a_shorter_segment_and_a_missing_seal_are_told(origin: Copy) -> None:
    path = sealed_segment(origin)
    whole = path.read_bytes()
    os.truncate(path, 100)
    assert len(origin.check().tampered) == len(find_losses(origin.log)) == 1
    path.write_bytes(whole)
    assert origin.check().tampered == []
    next(origin.log.glob("seals*")).unlink()
    assert origin.check().tampered == [f"memory/{path.name}: its seal is missing"]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data + b"\n",
        lambda data: data.replace(b"green", b"brown"),
        lambda data: data.replace(b"green", b"brown") + b"\n",
    ],
)
def test_a_segment_of_another_writer_that_is_longer_or_other_than_its_seal_was_tampered_with(
    other: Copy, change: Callable[[bytes], bytes]
) -> None:
    path = sealed_segment(other)
    path.write_bytes(change(path.read_bytes()))
    assert len(other.check().tampered) == 1


def test_the_tail_of_an_arriving_segment_is_a_line_once_its_seal_is_there(other: Copy) -> None:
    path = sealed_segment(other)
    whole = path.read_bytes()
    os.truncate(path, len(whole) - 5)
    assert other.check().lines.quarantined == {"torn": 1}
    seals = next(other.log.glob("seals*"))
    kept = seals.read_bytes()
    seals.unlink()
    assert other.check().lines.quarantined.total() == 0
    seals.write_bytes(kept)
    path.write_bytes(whole)
    assert other.check().lines.quarantined.total() == 0


def test_whether_a_tail_is_pending_does_not_depend_on_the_machine(origin: Copy, other: Copy) -> None:
    for copy in (origin, other):
        os.truncate(sealed_segment(copy), 100)
    names = {path.name for path in (origin.log / "memory").iterdir()}
    of_each = [
        {
            segment.name: segment.is_newest
            for segment in list_segments(copy.log)[0]
            if segment.name.filename in names
        }
        for copy in (origin, other)
    ]
    assert of_each[0] == of_each[1]
    assert set(of_each[0].values()) == {True, False}


def test_damage_is_told_with_the_file_that_has_it(other: Copy) -> None:
    other.seal()
    foreign = next(
        path
        for path in other.log.glob("seals*")
        if Writer(other.store).find_or_create_name() not in path.name
    )
    foreign.write_bytes(b"nonsense\n" + foreign.read_bytes())
    assert other.check().tampered == [f"{foreign.name}:1: no_seal"]
    foreign.unlink()
    foreign.symlink_to("elsewhere")
    assert f"not a regular file: {foreign.name}" in other.check().tampered


def test_two_copies_that_scrub_end_with_equal_segments_and_no_seal_of_what_was_erased(
    origin: Copy, other: Copy
) -> None:
    old_hash = read_seals(origin.log).valid_seals["memory", sealed_segment(origin).name].sha256.encode()
    other.forget("m1")
    send(other, origin)
    send(origin, other)
    assert (other.scrub(), origin.scrub()) == (["renewed"], ["renewed"])
    for _ in range(2):
        send(other, origin)
        send(origin, other)
        for copy in (origin, other):
            assert copy.check().tampered == copy.check().notes == []
            assert b"green 1" not in b"".join(copy.segments.values())
            assert old_hash not in copy.seals
    assert origin.segments == other.segments


def test_an_erasure_of_the_other_copy_is_no_alarm_before_the_own_scrub(origin: Copy, other: Copy) -> None:
    other.forget("m1")
    other.scrub()
    send(other, origin)
    assert origin.check().tampered == []
    assert origin.scrub() == ["renewed"]
    assert (origin.check().tampered, origin.check().notes) == ([], [])


def test_an_erasure_that_has_come_with_one_of_two_files_is_arriving(origin: Copy, other: Copy) -> None:
    origin.forget("m1")
    origin.scrub()
    before = {path: path.read_bytes() for path in other.log.rglob("*.jsonl")}
    path = sealed_segment(origin)
    shutil.copy2(path, other.log / "memory" / path.name)
    found = other.check()
    assert (found.tampered, len(found.notes)) == ([], 1)
    for old, data in before.items():
        old.write_bytes(data)
    seals = next(origin.log.glob("seals*"))
    shutil.copy2(seals, other.log / seals.name)
    found = other.check()
    assert (found.tampered, len(found.notes)) == ([], 1)
    send(origin, other)
    assert (other.check().tampered, other.check().notes) == ([], [])


def test_a_seal_that_comes_after_its_segment_was_erased_here_is_renewed_by_the_next_scrub(
    origin: Copy, other: Copy
) -> None:
    origin.say("tea", "m9")
    send(origin, other)
    other.forget("m9")
    assert other.scrub() == ["none"]
    origin.seal()
    (seals,) = origin.log.glob("seals*")
    shutil.copy2(seals, other.log / seals.name)
    assert (other.check().tampered, len(other.check().notes)) == ([], 1)
    other.scrub()
    assert (other.check().tampered, other.check().notes) == ([], [])


def test_erasing_in_another_writers_files_keeps_their_mtime(origin: Copy, other: Copy) -> None:
    foreign = [sealed_segment(other), next(other.log.glob("seals*"))]
    before = [(path.stat().st_mtime_ns, path.read_bytes()) for path in foreign]
    other.forget("m1")
    other.scrub()
    for path, (mtime, data) in zip(foreign, before, strict=True):
        assert path.stat().st_mtime_ns == mtime
        assert path.read_bytes() != data
        assert path.stat().st_size == len(data)


def test_of_the_own_files_an_erasure_changes_the_mtime(origin: Copy) -> None:
    path = sealed_segment(origin)
    os.utime(path, ns=(0, 0))
    origin.forget("m1")
    origin.scrub()
    assert path.stat().st_mtime_ns > 0


def test_a_blanked_hash_is_seen_though_the_mtime_stays(origin: Copy, other: Copy) -> None:
    name = ("memory", sealed_segment(other).name)
    reader = SealFiles(other.log, Writer(other.store).find_or_create_name())
    reader.refresh()
    SealFiles(other.log, reader.writer).blank_seals(*name)
    reader.refresh()
    (seal,) = reader.find_last_seals(*name)
    assert seal.is_blank


def test_a_scrub_of_an_arriving_segment_leaves_its_seal_blank_until_the_rest_is_here(
    origin: Copy, other: Copy
) -> None:
    other.forget("m0")
    path = sealed_segment(other)
    whole = path.read_bytes()
    os.truncate(path, len(whole) - 20)
    assert other.scrub() == ["arriving"]
    assert other.check().tampered == []
    with path.open("ab") as file:
        file.write(whole[-20:])
    other.scrub()
    assert (other.check().tampered, other.check().notes) == ([], [])


def test_an_accepted_loss_holds_against_the_seal_of_another_file(origin: Copy, other: Copy) -> None:
    (origin.log / "memory" / "2026-02-24.jsonl").write_bytes(b"plain\n" * 10)
    origin.seal()
    send(origin, other)
    shutil.copy2(origin.log / "memory" / "2026-02-24.jsonl", other.log / "memory" / "2026-02-24.jsonl")
    os.truncate(other.log / "memory" / "2026-02-24.jsonl", 12)
    assert len(find_losses(other.log)) == 1
    (made,) = accept_losses(other.store)
    assert (made.bytes, made.lost) == (12, 48)
    assert (find_losses(other.log), other.check().tampered) == ([], [])
    assert read_sealed_lengths(other.log)["memory", "2026-02-24.jsonl"] == 12
    shutil.copy2(origin.log / "memory" / "2026-02-24.jsonl", other.log / "memory" / "2026-02-24.jsonl")
    assert other.check().tampered == []


def test_an_erasure_of_a_plain_segment_by_another_copy_is_no_tampering(tmp_path: Path) -> None:
    """Each copy seals a plain segment, and a file sync brings one copy's erasure of it to the others."""
    here, there = Copy(tmp_path / "here"), Copy(tmp_path / "there")
    here.say("green", "m0")
    here.say("black", "m1")
    (own,) = (here.log / "memory").iterdir()
    plain = own.rename(own.with_name("2026-02-24.jsonl"))
    shutil.rmtree(here.store / WRITERS)
    shutil.copytree(here.store, there.store)
    for copy in (here, there):
        copy.seal()
    there.forget("m0")
    there.scrub()
    shutil.copy2(there.log / "memory" / plain.name, plain)
    send(there, here)
    assert here.check().tampered == []
    here.scrub()
    check = here.check()
    assert (check.tampered, check.notes) == ([], [])
    plain.write_bytes(plain.read_bytes().replace(b"black", b"white"))
    assert here.check().problems == [
        "1 line is not as memlog wrote it: store.maintenance.quarantine() lists where"
    ]

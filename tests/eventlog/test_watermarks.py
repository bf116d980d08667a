"""What was read of segments without a seal is remembered, so that its loss is seen."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlog.eventlog.errors import Busy
from memlog.eventlog.events import MemorySaved, Redacted
from memlog.eventlog.files import disk
from memlog.eventlog.integrity import scrub
from memlog.eventlog.integrity.copy_identity import Writer
from memlog.eventlog.integrity.seal_close import accept_losses, find_all_losses, seal_unsealed_segments
from memlog.eventlog.integrity.seal_file import SealFiles
from memlog.eventlog.integrity.seal_losses import find_losses
from memlog.eventlog.log.layout import WATERMARKS
from memlog.eventlog.log.reader import (
    Fingerprint,
    opening_segment_file,
    read_redacted_keys,
    select_segments,
    take_fingerprint,
)
from memlog.eventlog.log.streams import Segment, list_segments
from memlog.eventlog.log.watermarks import OpenLoss, Read, WatermarkFile, Watermarks, WriteLoss
from memlog.eventlog.log.writer import Log


class Projected:
    """A store with one segment of the stream `memory`, and what a projection does to its watermarks."""

    def __init__(self, store: Path) -> None:
        self.store, self.log = store, store / "log"
        self.file = store / WATERMARKS

    def say(self, content: str, event_id: str | None = None) -> None:
        Log(self.store, durability="os").append([MemorySaved(id=event_id, content=content)])

    def forget(self, event_id: str) -> None:
        Log(self.store, durability="os").append([Redacted(target_id=event_id, stream="memory")])

    @property
    def segments(self) -> list[Segment]:
        return list_segments(self.log)[0]

    @property
    def path(self) -> Path:
        (segment,) = self.segments
        return segment.path

    def project(self) -> list[OpenLoss]:
        """Read all segments, and return what was found lost."""
        return Watermarks(self.store).raise_watermarks(
            [Read(segment, _read(segment)) for segment in self.segments]
        )

    def scrub(self) -> None:
        seals, segments = (
            SealFiles(self.log, Writer(self.store).find_or_create_name()),
            select_segments(self.log),
        )
        redacted = read_redacted_keys(segments)
        for segment, lines in scrub.find_lines_to_erase(segments, redacted):
            scrub.erase_lines(
                segment,
                lines,
                redacted,
                seals=seals,
                lock_timeout=1,
                around=lambda fd, segment=segment: Watermarks(self.store).keeping_watermarks_while_erasing(
                    segment, fd
                ),
            )

    def losses(self) -> list[OpenLoss]:
        return Watermarks(self.store).find_losses()

    def remembered(self) -> int:
        """How many bytes of the segment."""
        file = WatermarkFile(self.store)
        file.refresh()
        mark = file.find_watermark("memory", self.path.name)
        return 0 if mark is None else mark.bytes

    def lines(self) -> list[bytes]:
        """The lines of the file, without its header."""
        return self.file.read_bytes().splitlines()[1:]


def _read(segment: Segment, size: int | None = None) -> Fingerprint:
    with opening_segment_file(segment.log, segment.stream, segment.name.filename) as fd:
        return take_fingerprint(fd, disk.status_of_descriptor(fd).st_size if size is None else size)


@pytest.fixture
def store(tmp_path: Path) -> Projected:
    """Of three memories, which a projection has read."""
    made = Projected(tmp_path / "store")
    for number in range(3):
        made.say(f"green {number}", f"m{number}")
    assert made.project() == []
    return made


def shorter(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 10)


def changed(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"green 1", b"brown 1"))


LOSE = pytest.mark.parametrize("lose", [shorter, changed])


@LOSE
def test_a_projection_finds_what_is_lost_and_the_watermark_stays(
    store: Projected, lose: Callable[[Path], None]
) -> None:
    path, size = store.path, store.path.stat().st_size
    lose(path)
    lost = [OpenLoss("memory", path.name, size, path.stat().st_size)]
    before = store.file.read_bytes()
    assert store.project() == lost
    assert store.losses() == lost
    assert store.file.read_bytes() == before


def test_a_segment_that_goes_after_it_was_read_is_lost(store: Projected) -> None:
    path, size = store.path, store.path.stat().st_size
    store.say("green 3")
    (segment,) = store.segments
    read = Read(segment, _read(segment))
    path.unlink()
    lost = [OpenLoss("memory", path.name, size, None)]
    assert Watermarks(store.store).raise_watermarks([read]) == lost
    assert store.losses() == lost


def test_nothing_is_remembered_of_a_segment_that_was_never_there_when_it_was_remembered(
    tmp_path: Path,
) -> None:
    store = Projected(tmp_path)
    store.say("green")
    (segment,) = store.segments
    read = Read(segment, _read(segment))
    size = segment.path.stat().st_size
    segment.path.unlink()
    assert Watermarks(store.store).raise_watermarks([read]) == []
    assert store.losses() == [WriteLoss("memory", segment.path.name, size, None)]


def test_a_segment_that_goes_while_it_is_compared_is_lost(store: Projected, faulty_disk: Any) -> None:
    """A file sync removes it between the look at its size and the opening."""
    path, size, real = store.path, store.path.stat().st_size, disk.open

    def removed_before(name: Path | str, flags: int, **options: Any) -> int:
        if name == path.name:
            path.unlink(missing_ok=True)
        return real(name, flags, **options)

    faulty_disk.open = removed_before
    assert store.losses() == [OpenLoss("memory", path.name, size, None)]


def test_a_projection_that_has_read_less_leaves_the_watermark_where_it_is(store: Projected) -> None:
    before = store.file.read_bytes()
    (segment,) = store.segments
    assert Watermarks(store.store).raise_watermarks([Read(segment, _read(segment, 100))]) == []
    assert store.file.read_bytes() == before


def test_growth_raises_the_watermark(store: Projected) -> None:
    (segment,) = store.segments
    before = _read(segment)
    store.say("green 3")
    assert Watermarks(store.store).raise_watermarks([Read(segment, _read(segment), before)]) == []
    assert store.remembered() == store.path.stat().st_size
    shorter(store.path)
    assert len(store.losses()) == 1


def test_a_change_before_what_was_read_on_is_found(store: Projected) -> None:
    (segment,) = store.segments
    before = _read(segment)
    changed(store.path)
    store.say("green 3")
    (lost,) = Watermarks(store.store).raise_watermarks([Read(segment, _read(segment), before)])
    assert (lost.read, lost.bytes) == (before.offset, store.path.stat().st_size)


def test_the_accepted_loss_of_a_file_of_another_program_leaves_the_writer_its_name(store: Projected) -> None:
    foreign = store.path.with_name("2026-02-24.jsonl")
    foreign.write_bytes(b'{"type":"memory_saved","content":"tea"}\n' * 3)
    store.project()
    shorter(foreign)
    name = Writer(store.store).find_or_create_name()
    (loss,) = Watermarks(store.store).accept_losses(lock_timeout=1)
    assert (loss.segment, Writer(store.store).find_or_create_name()) == (foreign.name, name)
    assert store.losses() == []


def test_a_torn_line_counts_for_nothing(store: Projected) -> None:
    """A projection was killed while it wrote: the line before it holds."""
    size = store.path.stat().st_size
    with store.file.open("ab") as file:
        file.write(b'{"stream":"memory","segment":"%s","byt' % store.path.name.encode())
    assert store.remembered() == size
    assert store.losses() == []
    shorter(store.path)
    assert len(store.losses()) == 1


def test_a_file_without_its_own_header_counts_for_nothing_and_is_made_anew(store: Projected) -> None:
    for header in [b"", b"[]", b"\xff", b'{"inode":1,"generation":1}', b'{"ino']:
        store.file.write_bytes(header + b"\n" + b"\n".join(store.lines()) + b"\n")
        assert store.remembered() == 0, header
        shorter(store.path)
        assert not [loss for loss in store.losses() if not isinstance(loss, WriteLoss)], header
        size = store.path.stat().st_size
        assert store.project() == [], header
        assert store.remembered() == size, header


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("make", [_folder, _pipe, _link])
def test_what_is_no_file_in_its_place_counts_for_nothing(
    store: Projected, make: Callable[[Path], None]
) -> None:
    store.file.unlink()
    make(store.file)
    assert store.losses() == []
    accept_losses(store.store)
    assert seal_unsealed_segments(store.store) != []


def test_the_file_is_written_anew_once_it_is_twice_as_long_as_its_entries(store: Projected) -> None:
    for number in range(100):
        store.say(f"black {number}")
        assert store.project() == []
    assert len(store.lines()) < 100
    shorter(store.path)
    assert len(store.losses()) == 1


def test_the_file_is_not_written_anew_where_each_line_is_of_another_segment(store: Projected) -> None:
    for number in range(80):
        plain = store.log / f"conversations/x_{number}/2026-02-24.jsonl"
        plain.parent.mkdir(parents=True)
        plain.write_bytes(b'{"role":"user","content":"tea"}\n')
    inode = store.file.stat().st_ino
    assert store.project() == []
    assert (len(store.lines()), store.file.stat().st_ino) == (81, inode)
    shorter(plain)
    assert [loss.stream for loss in store.losses()] == ["conversations/x_79"]


def test_of_sealed_segments_the_file_keeps_those_that_had_lost_something_before(store: Projected) -> None:
    """What a seal speaks of it protects; a loss before it does not show in it."""
    first = store.path
    seal_unsealed_segments(store.store)
    store.say("in the second")
    (second,) = (segment.path for segment in store.segments if segment.is_newest)
    store.project()
    second.write_bytes(second.read_bytes().replace(b"in the second", b"in the 2nd   "))
    seal_unsealed_segments(store.store)
    store.say("in the third")
    _compact(store)
    kept = {line.split(b'"')[7].decode() for line in store.lines()}
    assert first.name not in kept
    assert second.name in kept
    assert [loss.segment for loss in store.losses()] == [second.name]


def _compact(store: Projected) -> None:
    """Project until the file was written anew."""
    inode = store.file.stat().st_ino
    for number in range(200):
        store.say(f"black {number}")
        store.project()
        if store.file.stat().st_ino != inode:
            return
    pytest.fail("the file was not written anew")


@LOSE
def test_a_loss_that_is_accepted_is_told_no_more_and_the_next_one_is(
    store: Projected, lose: Callable[[Path], None]
) -> None:
    path, size = store.path, store.path.stat().st_size
    lose(path)
    (accepted,) = accept_losses(store.store)
    assert accepted == OpenLoss("memory", path.name, size, path.stat().st_size)
    assert find_all_losses(store.store) == []
    shorter(path)
    assert len(find_all_losses(store.store)) == 1


def test_a_loss_of_a_whole_segment_that_is_accepted_is_told_no_more(store: Projected) -> None:
    store.path.unlink()
    (accepted,) = accept_losses(store.store)
    assert accepted.bytes is None
    assert accept_losses(store.store) == find_all_losses(store.store) == []


def test_who_holds_the_read_model_while_a_loss_is_accepted_is_waited_for_and_named(
    store: Projected, hold_lock: Any
) -> None:
    shorter(store.path)
    lock = store.store / "projector.lock"
    lock.touch()
    holder = hold_lock(lock)
    with pytest.raises(Busy, match=str(holder.pid)):
        accept_losses(store.store, lock_timeout=0.3)
    assert len(store.losses()) == 1


def test_a_writer_whose_segment_is_shorter_than_was_read_takes_another_name(store: Projected) -> None:
    """A process of its own, which never saw it longer."""
    path = store.path
    assert Log(store.store).read_own_writer_names() == (Writer(store.store).find_or_create_name(),)
    shorter(path)
    left = path.read_bytes()
    store.say("green 3")
    retired, current = sorted(
        Log(store.store).read_own_writer_names(), key=lambda name: name not in path.name
    )
    assert retired in path.name
    assert path.read_bytes() == left
    assert any(current in segment.path.name for segment in store.segments)


def test_a_store_without_a_writer_has_no_names(tmp_path: Path) -> None:
    assert Log(tmp_path).read_own_writer_names() == ()


def test_an_erasure_is_no_loss_and_leaves_no_hash_of_the_text(store: Projected) -> None:
    store.forget("m1")
    store.project()
    before = store.lines()
    store.scrub()
    assert b"green 1" not in store.path.read_bytes()
    assert store.losses() == store.project() == []
    for line in before:
        assert line not in store.lines()
    shorter(store.path)
    assert len(store.losses()) == 1


class Killed(BaseException):
    """As a process is."""


def test_an_erasure_that_was_killed_is_no_loss_and_the_next_projection_remembers_again(
    store: Projected, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.forget("m1")
    store.project()

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(scrub, "_overwrite_lines", killed)
        with pytest.raises(Killed):
            store.scrub()
    assert store.losses() == []
    store.say("green 3")
    assert store.project() == store.losses() == []
    whole = store.path.read_bytes()
    store.path.write_bytes(whole.replace(b"green 2", b"brown 2"))
    assert len(store.losses()) == 1
    store.path.write_bytes(whole)
    store.scrub()
    assert b"green 1" not in store.path.read_bytes()
    assert store.losses() == []


@LOSE
def test_a_loss_from_before_an_erasure_stays_one(store: Projected, lose: Callable[[Path], None]) -> None:
    store.forget("m0")
    store.say("behind the redaction")
    store.project()
    size = store.path.stat().st_size
    lose(store.path)
    store.scrub()
    assert b"green 0" not in store.path.read_bytes()
    assert [loss.read for loss in store.losses()] == [size]
    assert [loss.read for loss in store.project()] == [size]


def test_an_erasure_before_anything_was_read_remembers_nothing(tmp_path: Path) -> None:
    store = Projected(tmp_path)
    store.say("green", "m0")
    store.forget("m0")
    store.scrub()
    assert not store.file.exists()


@pytest.fixture
def erased_elsewhere(store: Projected, tmp_path: Path) -> Path:
    """The segment as another copy of the store has erased a line of it; the redaction is in both."""
    store.forget("m1")
    store.project()
    shutil.copytree(store.store, tmp_path / "copy")
    copy = Projected(tmp_path / "copy")
    copy.scrub()
    return copy.path


def test_an_erasure_by_another_copy_is_no_loss_and_is_remembered(
    store: Projected, erased_elsewhere: Path
) -> None:
    shutil.copyfile(erased_elsewhere, store.path)
    assert store.losses() == []
    assert store.project() == []
    shorter(store.path)
    assert len(store.losses()) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"green 2", b"brown 2"),
        lambda data: data[:-1],
    ],
    ids=["another line is changed", "shorter"],
)
def test_what_else_is_lost_beside_an_erasure_is_seen(
    store: Projected, erased_elsewhere: Path, change: Callable[[bytes], bytes]
) -> None:
    store.path.write_bytes(change(erased_elsewhere.read_bytes()))
    assert len(store.losses()) == 1


def test_a_line_that_was_overwritten_where_nothing_was_forgotten_is_a_loss(store: Projected) -> None:
    first, *others = store.path.read_bytes().splitlines(keepends=True)
    store.path.write_bytes(b"".join([b" " * (len(first) - 1) + b"\n", *others]))
    assert len(store.losses()) == 1


def test_an_erasure_by_another_copy_of_an_event_that_was_appended_twice_is_no_loss(tmp_path: Path) -> None:
    store = Projected(tmp_path / "store")
    for _ in range(2):
        store.say("green", "m0")
    store.forget("m0")
    store.project()
    first, second, redaction = store.path.read_bytes().splitlines(keepends=True)
    erased = (b" " * (len(line) - 1) + b"\n" for line in (first, second))
    store.path.write_bytes(b"".join([*erased, redaction]))
    assert store.losses() == store.project() == []


def test_text_that_comes_back_with_another_copys_file_is_no_loss_and_goes_with_the_next_scrub(
    store: Projected,
) -> None:
    store.forget("m1")
    store.project()
    before = store.path.read_bytes()
    store.scrub()
    store.path.write_bytes(before)
    assert store.losses() == store.project() == []
    store.scrub()
    assert b"green 1" not in store.path.read_bytes()
    assert store.losses() == []
    shorter(store.path)
    assert len(store.losses()) == 1


def test_a_file_in_which_another_copy_has_erased_other_lines_is_no_loss(store: Projected) -> None:
    whole = store.path.read_bytes().splitlines(keepends=True)
    store.forget("m1")
    store.scrub()
    store.forget("m0")
    store.project()
    behind = store.path.read_bytes().splitlines(keepends=True)[len(whole) :]
    erased = b" " * (len(whole[0]) - 1) + b"\n"
    store.path.write_bytes(b"".join([erased, *whole[1:], *behind]))
    assert store.losses() == []
    changed_too = whole[2].replace(b"green 2", b"brown 2")
    store.path.write_bytes(b"".join([erased, whole[1], changed_too, *behind]))
    assert len(store.losses()) == 1


def test_a_line_that_was_erased_and_is_another_one_now_is_a_loss(store: Projected) -> None:
    store.forget("m1")
    store.scrub()
    store.project()
    lines = store.path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[0].ljust(len(lines[1]))[: len(lines[1]) - 1] + b"\n"
    store.path.write_bytes(b"".join(lines))
    assert len(store.losses()) == 1


def test_a_loss_that_a_seal_tells_is_not_told_twice(store: Projected) -> None:
    seal_unsealed_segments(store.store)
    store.path.unlink()
    assert store.losses() == []
    assert len(find_losses(store.log)) == 1


def _chat(store: Path, number: int) -> Path:
    """A segment of a chat of its own."""
    path = store / f"log/conversations/x_{number}/2026-02-24.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"role":"user","content":"tea"}\n')
    return path


def test_one_pass_over_many_streams_reads_the_file_once(tmp_path: Path, faulty_disk: Any) -> None:
    for number in range(20):
        _chat(tmp_path, number)
    store, watermarks = Projected(tmp_path), Watermarks(tmp_path)
    store.project()
    real, opened_files = disk.open, []

    def count(path: Path | str, flags: int, **options: Any) -> int:
        opened_files.extend([path] if path == store.file and not flags & os.O_APPEND else [])
        return real(path, flags, **options)

    faulty_disk.open = count
    for segment in store.segments:
        with segment.path.open("ab") as file:
            file.write(b'{"role":"user","content":"green tea"}\n')
        assert watermarks.raise_watermarks([Read(segment, _read(segment))]) == []
        assert watermarks.find_losses(stream=segment.stream) == []
    assert len(opened_files) == 1
    assert len(store.lines()) == 40


def test_the_losses_of_one_stream_look_at_its_segments_alone(tmp_path: Path, faulty_disk: Any) -> None:
    paths = [_chat(tmp_path, number) for number in range(3)]
    store = Projected(tmp_path)
    store.project()
    seal_unsealed_segments(tmp_path)
    real, looked_at = disk.status_of_path, []

    def count(path: Path | str, **options: Any) -> os.stat_result:
        looked_at.extend([str(path)] if "conversations" in str(path) else [])
        return real(path, **options)

    faulty_disk.status_of_path = count
    assert Watermarks(tmp_path).find_losses(stream="conversations/x_1") == []
    assert set(looked_at) == {str(paths[1]), *(str(path) for path in paths[1].parents[:2])}


def test_watermarks_of_another_process_are_seen(tmp_path: Path) -> None:
    first, second = _chat(tmp_path, 1), _chat(tmp_path, 2)
    store, watermarks = Projected(tmp_path), Watermarks(tmp_path)
    one, two = store.segments
    assert watermarks.is_void
    watermarks.raise_watermarks([Read(one, _read(one))])
    Watermarks(tmp_path).raise_watermarks([Read(two, _read(two))])
    for path in (first, second):
        shorter(path)
    assert [loss.stream for loss in watermarks.find_losses()] == ["conversations/x_1", "conversations/x_2"]
    store.file.unlink()
    assert watermarks.find_losses() == []
    assert watermarks.is_void

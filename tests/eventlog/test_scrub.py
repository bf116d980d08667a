"""Erasing bytes of the log: which lines go, that nothing else changes, and what a crash leaves."""

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from memlog.eventlog.codec.decode import ERASING
from memlog.eventlog.errors import Busy, LogError
from memlog.eventlog.events import Message, Redacted
from memlog.eventlog.files import disk
from memlog.eventlog.integrity import scrub
from memlog.eventlog.integrity.scrub import Erased
from memlog.eventlog.integrity.seal_file import SealFiles, measure_segment, read_seals
from memlog.eventlog.log.reader import read_entries_in_log_order, read_redacted_keys, select_segments
from memlog.eventlog.log.writer import Log

STREAM = "conversations/x_1"
OLD = "2026-02-24.jsonl"
SECRET = b"5551234"


class Erasing:
    """A store whose log is written to, forgotten and erased."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "log"
        self.folder = self.log / STREAM

    def say(self, **contents: str) -> None:
        events = [
            Message(id=each, channel="x", chat_id="1", role="user", content=said)
            for each, said in contents.items()
        ]
        Log(self.path, durability="os").append(events)

    def forget(self, *targets: str) -> None:
        events = [Redacted(target_id=each, stream=STREAM, reason=f"why {each}") for each in targets]
        Log(self.path, durability="os").append(events)

    def write(self, data: bytes, filename: str = OLD) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / filename
        with path.open("ab") as file:
            file.write(data)
        return path

    def scrub(self, **options: Any) -> list[Erased]:
        """As the service does it, on the log alone."""
        segments = select_segments(self.log)
        redacted = read_redacted_keys(segments)
        erased = [
            scrub.erase_lines(
                segment,
                lines,
                redacted,
                seals=SealFiles(self.log),
                lock_timeout=0.3,
                around=options.get("around", lambda _: nullcontext()),
            )
            for segment, lines in scrub.find_lines_to_erase(segments, redacted)
        ]
        for segment in scrub.find_unfinished_segments(segments):
            SealFiles(self.log).reseal(*segment.stream_and_filename, lock_timeout=0.3)
        return erased

    @property
    def newest(self) -> Path:
        return max(self.folder.iterdir())

    def said(self) -> list[str]:
        """What the lines are, in the order of the log."""
        return [entry.event_id for entry in read_entries_in_log_order(select_segments(self.log))]


@pytest.fixture
def store(tmp_path: Path) -> Erasing:
    return Erasing(tmp_path / "store")


def foreign(content: str, **members: str) -> bytes:
    return json.dumps({"role": "user", "content": content, **members}).encode() + b"\n"


def test_bytes_become_spaces_and_nothing_else_moves(store: Erasing) -> None:
    store.say(a="green tea", b="my number is 5551234", c="black tea")
    store.forget("b")
    before, status = store.newest.read_bytes(), store.newest.stat()
    (erased,) = store.scrub()
    lines = before.split(b"\n")
    lines[1] = b" " * len(lines[1])
    assert store.newest.read_bytes() == b"\n".join(lines)
    assert (store.newest.stat().st_ino, store.newest.stat().st_size) == (status.st_ino, status.st_size)
    assert (erased.lines, erased.bytes, erased.seal) == (1, len(lines[1]), "none")
    assert store.scrub() == []


def test_every_line_of_an_id_goes_in_every_segment(store: Erasing) -> None:
    store.write(foreign("my number is 5551234", id="b") + foreign("kept", id="a"))
    store.write(foreign("of an older day 5551234", id="b").removesuffix(b"\n"), "2026-02-23.jsonl")
    store.say(b="my number is 5551234", c="kept")
    store.say(b="another text, 5551234")
    store.forget("b")
    assert sum(erased.lines for erased in store.scrub()) == 4
    assert SECRET not in b"".join(path.read_bytes() for path in store.folder.iterdir())
    assert [each for each in store.said() if len(each) == 1] == ["a", "c"]
    assert store.scrub() == []


def test_a_line_without_an_event_goes_by_its_position(store: Erasing) -> None:
    first = foreign("my number is 5551234")
    path = store.write(first + b"torn 5551234\n" + foreign("kept", id="c"))
    store.forget(f"{OLD}:0", f"{OLD}:{len(first)}")
    store.scrub()
    assert path.read_bytes().split(b"\n")[:2] == [b" " * (len(first) - 1), b" " * 12]
    assert "c" in store.said()


def test_a_redaction_and_its_reason_stay(store: Erasing) -> None:
    store.say(a="my number is 5551234")
    store.forget("a")
    (redaction,) = [each for each in store.said() if each != "a"]
    store.forget(redaction)
    store.scrub()
    assert store.newest.read_bytes().count(b"why a") == 1


def test_a_tail_that_a_writer_may_be_at_is_left_to_him(store: Erasing) -> None:
    store.say(a="my number is 5551234")
    store.forget("a", "b")
    tail = foreign("half of a line 5551234", id="b").removesuffix(b"\n")
    store.write(tail, store.newest.name)
    store.scrub()
    assert store.newest.read_bytes().endswith(tail)


def test_nuls_around_a_line_stay(store: Erasing) -> None:
    path = store.write(b"\0\0" + foreign("my number is 5551234", id="a").removesuffix(b"\n") + b"\0\n")
    store.forget("a")
    store.scrub()
    line = path.read_bytes().split(b"\n")[0]
    assert (line[:3], line[-2:], line.strip(b"\0 ")) == (b"\0\0 ", b" \0", b"")


def test_a_stream_in_which_nothing_was_forgotten_is_not_touched(store: Erasing) -> None:
    path = store.write(ERASING + b"whatever this is\n")
    store.forget()
    assert store.scrub() == []
    assert path.read_bytes() == ERASING + b"whatever this is\n"


def test_a_line_too_long_to_be_an_event_goes_by_its_position(store: Erasing) -> None:
    path = store.write(b"x" * (16 * 1024 * 1024 + 5) + SECRET + b"\n" + foreign("kept", id="c"))
    store.forget(f"{OLD}:0")
    (erased,) = store.scrub()
    assert (erased.lines, erased.bytes) == (1, 16 * 1024 * 1024 + 12)
    assert SECRET not in path.read_bytes()
    assert store.scrub() == []


def test_a_line_that_says_something_else_by_now_stays(store: Erasing) -> None:
    """Between the look and the lock somebody has changed the file in place."""
    store.say(a="my number is 5551234", b="kept")
    store.forget("a")
    segments = select_segments(store.log)
    redacted = read_redacted_keys(segments)
    ((segment, lines),) = scrub.find_lines_to_erase(segments, redacted)
    store.newest.write_bytes(store.newest.read_bytes().replace(b'"id":"a"', b'"id":"z"'))
    before = store.newest.read_bytes()
    erased = scrub.erase_lines(
        segment, lines, redacted, seals=SealFiles(store.log), lock_timeout=0.3, around=lambda _: nullcontext()
    )
    assert (erased.lines, store.newest.read_bytes()) == (0, before)


def test_a_segment_that_was_replaced_is_not_written(store: Erasing, faulty_disk: Any) -> None:
    store.say(a="my number is 5551234")
    store.forget("a")
    real = disk.status_of_path

    def look(path: Path | str, *, folder: int | None = None) -> os.stat_result:
        if path == store.newest.name:
            copy = store.newest.with_suffix(".copy")
            copy.write_bytes(store.newest.read_bytes())
            copy.replace(store.newest)
        return real(path, folder=folder)

    faulty_disk.status_of_path = look
    with pytest.raises(LogError, match="was replaced in the meantime"):
        store.scrub()
    assert SECRET in store.newest.read_bytes()


def test_another_writer_is_waited_for_and_then_named(store: Erasing, hold_lock: Any) -> None:
    store.say(a="my number is 5551234")
    store.forget("a")
    hold_lock(store.newest)
    with pytest.raises(Busy, match=f"{STREAM}/{store.newest.name} is locked by process"):
        store.scrub()


def test_what_is_no_file_is_not_written(store: Erasing) -> None:
    store.say(a="my number is 5551234")
    store.forget("a")
    segments = select_segments(store.log)
    redacted = read_redacted_keys(segments)
    ((segment, lines),) = scrub.find_lines_to_erase(segments, redacted)
    store.newest.unlink()
    os.mkfifo(store.folder / segment.name.filename)
    with pytest.raises(FileExistsError):
        scrub.erase_lines(
            segment,
            lines,
            redacted,
            seals=SealFiles(store.log),
            lock_timeout=0.3,
            around=lambda _: nullcontext(),
        )


# Seals


def seal_old(store: Erasing) -> None:
    SealFiles(store.log).seal_segments(STREAM, [OLD])


def test_a_seal_is_renewed_and_its_old_hash_is_blank(store: Erasing) -> None:
    store.write(foreign("my number is 5551234", id="a") + foreign("kept", id="b"))
    seal_old(store)
    store.forget("a")
    (erased,) = store.scrub()
    assert erased.seal == "renewed"
    read = read_seals(store.log)
    assert (read.damaged_lines, [line.seal.is_blank for line in read.lines if line.seal]) == (
        [],
        [True, False],
    )
    assert read.valid_seals[STREAM, OLD].is_of(measure_segment(store.log, STREAM, OLD))
    store.scrub()
    assert read_seals(store.log) == read


def test_the_seal_of_a_segment_that_was_changed_stays_and_tells_it(store: Erasing) -> None:
    path = store.write(foreign("my number is 5551234", id="a") + foreign("green tea", id="b"))
    seal_old(store)
    before = read_seals(store.log)
    path.write_bytes(path.read_bytes().replace(b"green tea", b"black tea"))
    store.forget("a")
    (erased,) = store.scrub()
    assert (erased.lines, erased.seal) == (1, "unlike")
    assert read_seals(store.log) == before


def test_a_sealed_segment_may_have_grown(store: Erasing) -> None:
    store.write(foreign("my number is 5551234", id="a"))
    seal_old(store)
    store.write(foreign("late", id="b"))
    store.forget("a")
    (erased,) = store.scrub()
    assert erased.seal == "renewed"


def test_an_erasure_that_was_killed_before_its_seal_was_renewed_is_finished(store: Erasing) -> None:
    store.write(foreign("my number is 5551234", id="a"))
    seal_old(store)
    store.forget("a")
    SealFiles(store.log).blank_seals(STREAM, OLD)
    assert [
        segment.name.filename for segment in scrub.find_unfinished_segments(select_segments(store.log))
    ] == [OLD]
    (erased,) = store.scrub()
    assert erased.seal == "renewed"
    assert scrub.find_unfinished_segments(select_segments(store.log)) == []
    assert scrub.find_unfinished_segments([]) == []


# Kills, and disks that fail


class Killed(BaseException):
    """What ends a process."""


@contextmanager
def dying_at(monkeypatch: pytest.MonkeyPatch, number: int, how: Callable[[], Any]) -> Iterator[list[str]]:
    """Meanwhile the `number`-th call of the disk, from 0, does `how` instead; gives the names of calls."""
    calls: list[str] = []

    def standing_in(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            calls.append(name)
            return how() if len(calls) == number + 1 else real(*args, **options)

        return call

    with monkeypatch.context() as patched:
        for name in disk.CALLS:
            if name != "close":  # a kill closes all, too
                patched.setattr(disk, name, standing_in(name, getattr(disk, name)))
        yield calls


def kill() -> None:
    raise Killed


def fail_with(number: int) -> Callable[[], None]:
    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail


def prepared(folder: Path) -> tuple[Erasing, dict[Path, list[bytes]]]:
    """A log of two segments, one of them sealed, of which something is to go; and its lines without it."""
    store = Erasing(folder)
    store.write(foreign("my number is 5551234", id="a") + foreign("kept", id="b"))
    seal_old(store)
    store.say(a="again, 5551234", c="kept", d="more, 5551234 " * 500)
    store.forget("a", "d")
    lines = {path: path.read_bytes().split(b"\n") for path in store.folder.iterdir()}
    for each in lines.values():
        each[:] = [b" " * len(line) if SECRET in line else line for line in each]
    return store, lines


def check_between(store: Erasing, wanted: dict[Path, list[bytes]]) -> None:
    """Every line is what it was, what it shall be, or being erased; no reader sees more than before."""
    for path, lines in wanted.items():
        found = path.read_bytes().split(b"\n")
        assert [len(line) for line in found] == [len(line) for line in lines]
        for line, shall in zip(found, lines, strict=True):
            assert line == shall or line[:1] in (b"{", ERASING, b" ")
            if shall.strip() or line[:1] == b" ":
                assert line == shall
    assert [each for each in store.said() if len(each) == 1 and each not in "ad"] == ["b", "c"]
    read = read_seals(store.log)
    assert [line.damage for line in read.damaged_lines if line.damage != "torn"] == []
    seal = read.valid_seals[STREAM, OLD]
    assert seal.is_blank or seal.is_of(measure_segment(store.log, STREAM, OLD))


def check_after(store: Erasing, wanted: dict[Path, list[bytes]]) -> None:
    store.scrub()
    assert {path: path.read_bytes().split(b"\n") for path in wanted} == wanted
    read = read_seals(store.log)
    assert read.valid_seals[STREAM, OLD].is_of(measure_segment(store.log, STREAM, OLD))
    assert store.scrub() == []
    store.say(e="the next")
    assert store.said()[-1] == "e"


def deaths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Callable[[], Any]) -> list[str]:
    """Die at each call of the disk in turn, look, and finish; the calls of a whole run."""
    number = 0
    while True:
        store, wanted = prepared(tmp_path / f"store-{number}")
        with dying_at(monkeypatch, number, how) as calls:
            try:
                store.scrub()
            except (Killed, OSError):
                died = True
            else:
                died = False
        check_between(store, wanted)
        check_after(store, wanted)
        if len(calls) <= number:
            assert not died
            return calls
        number += 1


def test_a_kill_at_any_call_leaves_what_the_next_run_finishes(tmp_path, monkeypatch) -> None:
    calls = deaths(tmp_path, monkeypatch, kill)
    assert calls.count("overwrite") >= 9
    assert calls.count("sync_data") >= 6


def test_a_disk_that_fails_at_any_call_leaves_what_the_next_run_finishes(tmp_path, monkeypatch) -> None:
    deaths(tmp_path, monkeypatch, fail_with(errno.EIO))


def test_a_disk_that_takes_few_bytes_at_once_gets_them_all(store: Erasing, faulty_disk: Any) -> None:
    store.say(a="my number is 5551234 " * 50)
    store.forget("a")
    real, calls = disk.overwrite, []

    def overwrite(fd: int, data: bytes, offset: int) -> int:
        calls.append(len(data))
        return real(fd, data[:100], offset)

    faulty_disk.overwrite = overwrite
    store.scrub()
    assert len(calls) > 10
    assert SECRET not in store.newest.read_bytes()


def test_a_kill_between_the_bytes_of_a_line_leaves_no_line_that_is_read(
    store: Erasing, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.say(a="my number is 5551234 " * 50, b="kept")
    store.forget("a")
    real, left = disk.overwrite, [100]

    def overwrite(fd: int, data: bytes, offset: int) -> int:
        if not left[0]:
            raise Killed
        done = real(fd, data[: left[0]], offset)
        left[0] -= done
        return done

    with monkeypatch.context() as patched:
        patched.setattr(disk, "overwrite", overwrite)
        with pytest.raises(Killed):
            store.scrub()
    line = store.newest.read_bytes().split(b"\n")[0]
    assert (line[:1], line[1:90].strip(), SECRET in line) == (ERASING, b"", True)
    assert store.said()[0] == "b"
    (erased,) = store.scrub()
    assert erased.lines == 1
    assert SECRET not in store.newest.read_bytes()


def test_what_a_failed_sync_has_left_in_doubt_is_written_again(store: Erasing, faulty_disk: Any) -> None:
    store.say(a="my number is 5551234")
    store.forget("a")
    real, syncs = disk.sync_data, []

    def sync_data(fd: int) -> None:
        syncs.append(fd)
        if len(syncs) == 2:
            raise OSError(errno.EIO, "the pages may be gone")
        real(fd)

    faulty_disk.sync_data = sync_data
    with pytest.raises(OSError, match="the pages may be gone"):
        store.scrub()
    written: list[bytes] = []
    overwrite = disk.overwrite
    faulty_disk.overwrite = lambda fd, data, offset: (
        written.append(bytes(data)) or overwrite(fd, data, offset)
    )
    (erased,) = store.scrub()
    assert sum(map(len, written)) == erased.bytes + 1

"""What is lost of sealed segments: found, and accepted only by a line that says so."""

from pathlib import Path
from typing import Any

import pytest

from memlog.eventlog.errors import LogError
from memlog.eventlog.files import disk
from memlog.eventlog.integrity.seal_close import accept_losses, find_all_losses, seal_unsealed_segments
from memlog.eventlog.integrity.seal_file import SealFiles, read_seals
from memlog.eventlog.integrity.seal_losses import find_altered_segments, find_losses
from memlog.eventlog.integrity.seal_reader import read_sealed_lengths

TODAY = "2026-02-24"


@pytest.fixture
def sealed(log: Any, clock: Any) -> Any:
    log.append("green", "black")
    seal_unsealed_segments(log.store, lock_timeout=0.3)
    return log


def folder(log: Any) -> Path:
    path: Path = log.store / "log"
    return path


def why(log: Any) -> list[str]:
    return [each.description for each in find_altered_segments(folder(log))]


def test_what_stands_as_it_was_sealed_is_no_loss(sealed: Any) -> None:
    assert (find_losses(folder(sealed)), find_altered_segments(folder(sealed))) == ([], [])


def test_a_segment_that_is_gone_is_a_loss(sealed: Any) -> None:
    size = sealed.segment.stat().st_size
    sealed.segment.unlink()
    (loss,) = find_all_losses(sealed.store)
    assert (loss.stream, loss.segment, loss.sealed, loss.bytes) == ("memory", sealed.name(TODAY), size, None)
    assert loss.description == f"{sealed.name(TODAY)}, sealed with {size} bytes, is gone"
    assert why(sealed) == [f"sealed with {size} bytes, is gone"]


def test_the_losses_of_one_stream_are_asked_for(sealed: Any) -> None:
    sealed.shrink(1)
    assert find_losses(folder(sealed), only=[("core", sealed.name(TODAY))]) == []
    assert (
        find_losses(folder(sealed), only=[("memory", sealed.name(TODAY))])
        == find_losses(folder(sealed))
        != []
    )


@pytest.mark.parametrize("call", ["open", "status_of_path"])
def test_a_file_of_seals_that_goes_while_it_is_read_has_none(
    sealed: Any, faulty_disk: Any, call: str
) -> None:
    """A file sync, or a person, has removed it since the folder was listed."""
    seals, real = sealed.seals, getattr(disk, call)

    def removed_before(path: Path | str, *rest: Any, **options: Any) -> Any:
        if Path(path) == seals:
            seals.unlink(missing_ok=True)
        return real(path, *rest, **options)

    setattr(faulty_disk, call, removed_before)
    if call == "open":
        assert read_seals(folder(sealed)).lines == []
    else:
        assert read_sealed_lengths(folder(sealed)) == {}


def test_a_segment_that_is_shorter_is_a_loss(sealed: Any) -> None:
    size = sealed.segment.stat().st_size
    sealed.shrink(1)
    (loss,) = find_all_losses(sealed.store)
    assert loss.description == f"{sealed.name(TODAY)}, sealed with {size} bytes, has {size - 1}"
    assert why(sealed) == [f"sealed with {size} bytes, has {size - 1}"]


def test_a_changed_byte_and_a_late_line_are_unlike_the_seal_and_no_loss(sealed: Any) -> None:
    size = sealed.segment.stat().st_size
    sealed.flip_byte(7)
    assert why(sealed) == [f"its {size} bytes differ from those sealed"]
    sealed.add_raw(b"late\n")
    assert why(sealed) == [f"sealed with {size} bytes, has {size + 5}"]
    assert find_losses(folder(sealed)) == []


def test_swapped_lines_of_a_sealed_segment_are_found(sealed: Any) -> None:
    first, second = sealed.segment.read_bytes().splitlines(keepends=True)
    sealed.segment.write_bytes(second + first)
    assert why(sealed) == [f"its {len(first + second)} bytes differ from those sealed"]


def test_an_accepted_loss_is_a_line_that_says_how_much_it_was(sealed: Any) -> None:
    size = sealed.segment.stat().st_size
    sealed.shrink(10)
    (made,) = accept_losses(sealed.store, lock_timeout=0.3)
    assert (made.bytes, made.lost, made.stream) == (size - 10, 10, "memory")
    assert b'"lost":10,"crc":"' in sealed.seals.read_bytes()
    found = read_seals(folder(sealed))
    assert (found.damaged_lines, find_losses(folder(sealed)), find_altered_segments(folder(sealed))) == (
        [],
        [],
        [],
    )
    assert accept_losses(sealed.store, lock_timeout=0.3) == []


def test_the_loss_of_a_whole_segment_is_accepted_too(sealed: Any) -> None:
    lost = sealed.segment
    lost.unlink()
    (made,) = accept_losses(sealed.store, lock_timeout=0.3)
    assert (made.bytes, made.lines) == (0, 0)
    assert (find_losses(folder(sealed)), find_altered_segments(folder(sealed))) == ([], [])
    # Its name is not used again: another copy of the store may still have it.
    assert sealed.append("white")[0].segment != lost.name
    assert find_altered_segments(folder(sealed)) == []


def test_bytes_that_changed_are_accepted_as_they_stand(sealed: Any) -> None:
    sealed.flip_byte(7)
    (made,) = accept_losses(sealed.store, lock_timeout=0.3)
    assert made.lost == 0
    assert find_altered_segments(folder(sealed)) == []


def test_of_a_segment_whose_hash_is_blank_the_length_alone_is_compared(sealed: Any) -> None:
    SealFiles(folder(sealed)).blank_seals("memory", sealed.name(TODAY))
    sealed.flip_byte(7)
    assert find_altered_segments(folder(sealed)) == []
    sealed.shrink(1)
    assert len(find_altered_segments(folder(sealed))) == len(find_losses(folder(sealed))) == 1


def test_a_link_in_the_place_of_a_sealed_segment_is_a_loss(sealed: Any) -> None:
    path = sealed.segment
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")
    assert len(find_losses(folder(sealed))) == len(find_altered_segments(folder(sealed))) == 1


def test_seals_that_cannot_be_read_are_an_error(sealed: Any, faulty_disk: Any) -> None:
    def fail(fd: int, length: int, offset: int) -> bytes:
        raise OSError(5, "Input/output error")

    faulty_disk.read = fail
    with pytest.raises(OSError, match="Input/output error"):
        find_all_losses(sealed.store)
    with pytest.raises(LogError, match="it may not have been sealed"):
        accept_losses(sealed.store, lock_timeout=0.3)


def test_a_segment_that_goes_while_it_is_looked_at_is_gone(sealed: Any, faulty_disk: Any) -> None:
    opened, name = disk.open, sealed.segment.name

    def open_late(path: Any, *rest: Any, **more: Any) -> int:
        if path == name:
            sealed.segment.unlink()
        return opened(path, *rest, **more)

    faulty_disk.open = open_late
    assert [each.held for each in find_altered_segments(folder(sealed))] == [None]


def test_a_sealed_segment_that_is_gone_is_not_sealed_again(sealed: Any) -> None:
    sealed.segment.unlink()
    assert SealFiles(folder(sealed)).seal_segments("memory", [sealed.name(TODAY)], also_grown=True) == []

"""Each copy of a store is a writer of its own; a moved store, or a shared one, keeps its writers."""

import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memlog.eventlog.integrity import copy_identity
from memlog.eventlog.integrity.copy_identity import Writer

MINT = "import sys; from pathlib import Path\n"
MINT += "from memlog.eventlog.integrity.copy_identity import Writer; sys.stdin.read();"
MINT += " print(Writer(Path(sys.argv[1])).find_or_create_name())"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store that has a writer."""
    path = tmp_path / "store"
    Writer(path).find_or_create_name()
    return path


def file_of(store: Path) -> Path:
    """The file that says who writes."""
    return store / "writers" / copy_identity._hash_machine_id()


def test_eight_processes_that_mint_at_once_agree_on_one_name(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MINT, str(tmp_path / "store")]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(8)]
    # All of them have imported what they need and wait for the end of stdin.
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    names = {process.communicate(timeout=60)[0] for process in processes}
    assert len(names) == 1
    assert names == {Writer(tmp_path / "store").find_or_create_name().encode() + b"\n"}


def _cp(old: Path, new: Path) -> None:
    subprocess.run(["cp", "-a", old, new], check=True)


def _linked(old: Path, new: Path) -> None:
    subprocess.run(["cp", "-al", old, new], check=True)


def _restored(old: Path, new: Path) -> None:
    archive = new.with_suffix(".tar")
    subprocess.run(["tar", "-cf", archive, "-C", old, "."], check=True)
    new.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", new], check=True)


def _cloned(old: Path, new: Path) -> None:
    git = ["git", "-C", old, "-c", "user.name=x", "-c", "user.email=x@x.invalid"]
    for args in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["clone", "-q", ".", new]):
        subprocess.run([*git, *args], check=True)


def _log_alone(old: Path, new: Path) -> None:
    new.mkdir()
    shutil.copytree(old, new, dirs_exist_ok=True, ignore=shutil.ignore_patterns("writers"))


@pytest.mark.parametrize("copy", [_cp, _linked, _restored, _cloned, _log_alone])
def test_a_copied_store_gets_a_writer_of_its_own(
    store: Path, tmp_path: Path, copy: Callable[[Path, Path], None]
) -> None:
    name = Writer(store).find_or_create_name()
    copy(store, tmp_path / "copy")
    assert Writer(tmp_path / "copy").read_own_names() == ()
    assert Writer(tmp_path / "copy").find_or_create_name() != name


def test_a_moved_store_keeps_its_writer(store: Path, tmp_path: Path) -> None:
    name = Writer(store).find_or_create_name()
    subprocess.run(["mv", store, tmp_path / "moved"], check=True)
    assert Writer(tmp_path / "moved").find_or_create_name() == name


def test_two_machines_on_one_store_keep_their_writers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def name_on(machine: str) -> str:
        (tmp_path / "machine-id").write_text(machine)
        monkeypatch.setattr(copy_identity, "_MACHINE_IDS", (str(tmp_path / "machine-id"),))
        return Writer(tmp_path / "store").find_or_create_name()

    names = [name_on(machine) for machine in ("one", "other", "one", "other")]
    assert names[:2] == names[2:]
    assert names[0] != names[1]


def test_a_machine_without_an_id_is_known_by_its_host_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images of containers hold an empty /etc/machine-id."""
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "new").write_text("uninitialized\n")
    without = tuple(str(tmp_path / name) for name in ("gone", ".", "empty", "new"))
    monkeypatch.setattr(copy_identity, "_MACHINE_IDS", without)
    Writer(tmp_path / "store").find_or_create_name()
    assert file_of(tmp_path / "store").name == f"{zlib.crc32(os.uname().nodename.encode()):08x}"


@pytest.mark.parametrize("machine_id", [None, "", "uninitialized\n"])
def test_containers_without_an_id_are_one_writer_until_the_machine_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine_id: str | None
) -> None:
    if machine_id is not None:
        (tmp_path / "id").write_text(machine_id)
    boot_id = tmp_path / "boot_id"
    *ids, known = copy_identity._MACHINE_IDS
    assert known == "/proc/sys/kernel/random/boot_id"
    monkeypatch.setattr(copy_identity, "_MACHINE_IDS", (*[str(tmp_path / "id") for _ in ids], str(boot_id)))

    def run_container(number: int) -> str:
        host = os.uname_result(("Linux", f"container-{number}", "6.1", "#1", "x86_64"))
        with monkeypatch.context() as patch:
            patch.setattr(os, "uname", lambda: host)
            return Writer(tmp_path / "store").find_or_create_name()

    boot_id.write_text("e0283130-23f8-4a13-9567-6f7aa38df5c8\n")
    assert len({run_container(number) for number in range(60)}) == 1
    boot_id.write_text("1f3b1f8e-65b8-4d5c-8ab4-40a3f2b29d54\n")
    assert len({run_container(number) for number in range(60)}) == 1
    assert len([*(tmp_path / "store/writers").glob("*.segments")]) == 2


def test_a_name_that_is_no_writers_is_replaced(store: Path) -> None:
    for name in [b"ABCDEF", b"../../x", b"abcde1", b"abcdefg"]:
        file, own = file_of(store), Writer(store).find_or_create_name().encode()
        with file.open("r+b") as opened:
            opened.write(file.read_bytes().replace(own, name))
        assert Writer(store).read_own_names() == (), name


def test_a_torn_or_foreign_file_is_minted_anew(store: Path) -> None:
    for damage in [b"", b'{"writer":"abc', b"\xff", b'{"writer":"abcdef","inode":1}', b"[]"]:
        name = Writer(store).find_or_create_name()
        file_of(store).write_bytes(damage)
        assert Writer(store).read_own_names() == (), damage
        minted = Writer(store).find_or_create_name()
        assert minted not in (name, "abcdef"), damage
        assert Writer(store).find_or_create_name() == minted, damage


def test_a_retired_writer_is_replaced_once(store: Path) -> None:
    name = Writer(store).find_or_create_name()
    Writer(store).retire_name(name)
    other = Writer(store).find_or_create_name()
    assert other != name
    # Another process found the same loss, and comes later.
    Writer(store).retire_name(name)
    assert Writer(store).find_or_create_name() == other


def test_names_are_of_six_characters_and_begin_with_a_letter() -> None:
    for name in {copy_identity.writer_name_from_bytes(os.urandom(6)) for _ in range(1000)}:
        assert len(name) == 6
        assert name[0].isalpha()
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz234567")


def test_a_link_in_place_of_the_file_is_replaced_and_what_it_names_stays(store: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    os.rename(file_of(store), elsewhere)
    said = elsewhere.read_bytes()
    (store / "writers" / copy_identity._hash_machine_id()).symlink_to(elsewhere)
    Writer(store).find_or_create_name()
    assert elsewhere.read_bytes() == said
    assert not file_of(store).is_symlink()


STREAM, SEGMENT = "conversations/cli_1", "2026-02-24.abcdef.jsonl"


@pytest.fixture
def segment(store: Path) -> Iterator[int]:
    """The descriptor of a segment of the store's writer."""
    with (store / SEGMENT).open("wb+") as file:
        Writer(store).record_size(STREAM, SEGMENT, file.fileno(), lock_timeout=1)
        yield file.fileno()


def record_of(store: Path) -> Path:
    """The file that says what the writer has made."""
    return file_of(store).with_suffix(".segments")


def test_a_record_of_many_lines_is_written_anew_with_the_last_of_each(
    store: Path, segment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_identity, "_SPARE_LINES", 4)
    writer = Writer(store)
    for _ in range(12):
        os.write(segment, b"line\n")
        writer.record_size(STREAM, SEGMENT, segment, lock_timeout=1)
    assert record_of(store).read_bytes().count(b"\n") < 10
    assert Writer(store).has_created_open_segment(STREAM, SEGMENT, segment)


def test_a_record_that_is_written_anew_has_the_newest_segment_of_a_stream(
    store: Path, segment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_identity, "_SPARE_LINES", 0)
    writer = Writer(store)
    newest = f"2026-02-25.{writer.find_or_create_name()}.0001.jsonl"
    older = f"2026-02-24.{writer.find_or_create_name()}.jsonl"
    for name in (older, newest, older, older):
        writer.record_size("memory", name, segment, lock_timeout=1)
    for _ in range(8):
        writer.record_size(STREAM, SEGMENT, segment, lock_timeout=1)
    assert ("memory", newest) in Writer(store).recorded_segments()


def test_a_torn_line_of_the_record_hides_no_later_one(store: Path, segment: int) -> None:
    with record_of(store).open("ab") as record:
        record.write(b'{"stream":"conv')
    Writer(store).record_size(STREAM, "2026-02-25.abcdef.jsonl", segment, lock_timeout=1)
    later = Writer(store)
    assert later.has_ever_created_segment(STREAM, "2026-02-25.abcdef.jsonl")
    assert later.has_ever_created_segment(STREAM, SEGMENT)


def test_without_its_record_a_writer_has_made_nothing(store: Path, segment: int) -> None:
    writer = Writer(store)
    assert writer.has_ever_created_segment(STREAM, SEGMENT)
    record_of(store).unlink()
    assert not writer.has_ever_created_segment(STREAM, "2026-02-26.abcdef.jsonl")
    assert not writer.has_ever_created_segment(STREAM, SEGMENT)

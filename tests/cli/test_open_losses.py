"""What a projection has read of a segment without a seal, and is lost: seen until it is back or accepted."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from memlog import Store
from memlog.eventlog.integrity.seal_close import accept_losses, seal_unsealed_segments
from memlog.eventlog.log.layout import WATERMARKS
from memlog.eventlog.log.streams import list_segments
from memlog.eventlog.log.watermarks import Watermarks
from tests.support.examples import examples

Run = Callable[..., object]
CHATS = ("x:1", "x:2", "x:3")
MESSAGES = 12


def say(store: Path, chat: str, text: str) -> None:
    with Store(store) as opened:
        opened.append([message(chat, text)])


def message(chat: str, text: str) -> dict[str, str]:
    channel, chat_id = chat.split(":")
    return {"type": "message", "role": "user", "content": text, "channel": channel, "chat_id": chat_id}


def project(store: Path, *, from_scratch: bool = False) -> list[str]:
    with Store(store) as opened:
        return opened.maintenance.project(embed=False, from_scratch=from_scratch).notes


def tampered(store: Path) -> list[str]:
    """What `verify` says of bytes that were read and are lost."""
    with Store(store) as opened:
        return [line for line in opened.maintenance.verify().tampered if "read before" in line]


def texts(store: Path, chat: str) -> list[str]:
    channel, chat_id = chat.split(":")
    with Store(store) as opened:
        return [message.content for message in opened.conversations.window((channel, chat_id)).messages]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A store with a chat of some messages, projected."""
    store = tmp_path / "store"
    for number in range(3):
        say(store, "x:1", f"message {number}")
    project(store)
    return store


def segment(store: Path, chat: str = "x:1") -> Path:
    (path,) = (store / "log" / "conversations" / chat.replace(":", "_")).iterdir()
    return path


def gone(path: Path) -> None:
    path.unlink()


def shorter(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def changed(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"message 1", b"message 7"))


@pytest.mark.parametrize("lose", [gone, shorter, changed])
def test_a_loss_without_a_seal_is_reported_until_the_bytes_are_back(written: Path, lose) -> None:
    path = segment(written)
    whole = path.read_bytes()
    lose(path)
    for heartbeat in (
        lambda: say(written, "x:1", "after"),
        lambda: project(written),
        lambda: project(written, from_scratch=True),
        lambda: [shutil.rmtree(written / name, ignore_errors=True) for name in ("model", "cache")],
        lambda: project(written),
    ):
        heartbeat()
        (said,) = tampered(written)
        assert said.startswith(f"conversations/x_1/{path.name}")
    assert "after" in texts(written, "x:1")
    appended = path.read_bytes()[len(whole) :] if lose is changed else b""
    path.write_bytes(whole + appended)
    assert tampered(written) == []
    project(written)
    assert {"message 0", "message 1", "message 2"} <= set(texts(written, "x:1"))


@pytest.mark.parametrize("lose", [gone, shorter, changed])
def test_an_open_loss_is_accepted(memlog, store: Path, lose) -> None:
    for number in range(3):
        say(store, "x:1", f"message {number}")
    project(store)
    lose(segment(store))
    assert memlog("verify").code == 3
    doctor = memlog("doctor")
    assert doctor.code == 1
    assert b"--accept-loss" in doctor.out + doctor.err
    assert memlog("seal").code == 3
    assert memlog("seal", "--accept-loss").code == 0
    project(store)
    assert Watermarks(store).find_losses() == []
    assert memlog("seal").code == 0


def test_an_edit_beside_growth_is_found(written: Path) -> None:
    """The projector looks at the last 4 KiB alone where a segment has grown."""
    say(written, "x:1", "x" * 8000)
    project(written)
    path = segment(written)
    changed(path)
    inode = path.stat().st_ino
    with path.open("ab") as file:
        file.write(b'{"type":"message","role":"user","content":"late","channel":"x","chat_id":"1"}\n')
    assert path.stat().st_ino == inode
    project(written)
    assert len(tampered(written)) == 1


def test_a_catch_up_that_reads_nothing_new_leaves_the_file_alone(written: Path) -> None:
    before = (written / WATERMARKS).stat()
    project(written)
    project(written, from_scratch=True)
    after = (written / WATERMARKS).stat()
    assert (before.st_mtime_ns, before.st_ino, before.st_size) == (
        after.st_mtime_ns,
        after.st_ino,
        after.st_size,
    )
    assert before.st_mode & 0o777 == 0o600


def test_a_torn_last_line_costs_no_entry(written: Path) -> None:
    with (written / WATERMARKS).open("ab") as file:
        file.write(b'{"stream":"conversations/x_1","segm')
    say(written, "x:1", "more")
    project(written)
    assert tampered(written) == []
    shorter(segment(written))
    assert len(tampered(written)) == 1


def test_the_file_stays_small(written: Path) -> None:
    with Store(written) as opened:
        for number in range(80):
            opened.append([message("x:1", str(number))])
            opened.maintenance.project(embed=False)
    assert (written / WATERMARKS).read_bytes().count(b"\n") <= 64
    assert tampered(written) == []
    shorter(segment(written))
    assert len(tampered(written)) == 1


def test_a_copy_of_the_file_says_nothing(written: Path, tmp_path: Path) -> None:
    """A store that is copied while others write may have older segments than watermarks."""
    copy = tmp_path / "copy"
    shutil.copytree(written, copy)
    shorter(segment(copy))
    assert Watermarks(copy).find_losses() == []
    shorter(segment(written))
    assert len(Watermarks(written).find_losses()) == 1


def test_an_erasure_is_no_loss_and_leaves_no_hash(written: Path) -> None:
    before = [json.loads(line) for line in (written / WATERMARKS).read_text().splitlines()[1:]]
    with Store(written) as opened:
        hit = opened.conversations.window(("x", "1")).messages[1]
        opened.erasure.forget(hit.id)
        opened.erasure.scrub()
    assert tampered(written) == []
    after = (written / WATERMARKS).read_text()
    assert not any(mark["rest"] in after for mark in before)
    shorter(segment(written))
    assert len(tampered(written)) == 1


def test_an_erasure_leaves_no_hash_in_a_torn_line(written: Path) -> None:
    last = (written / WATERMARKS).read_bytes().splitlines()[-1]
    torn = last[: last.index(b'"rest":"') + 40]
    with (written / WATERMARKS).open("ab") as file:
        file.write(torn)
    with Store(written) as opened:
        opened.erasure.forget(opened.conversations.window(("x", "1")).messages[1].id)
        opened.erasure.scrub()
    assert torn[-32:] not in (written / WATERMARKS).read_bytes()
    assert tampered(written) == []
    shorter(segment(written))
    assert len(tampered(written)) == 1


def test_an_erased_version_from_another_copy_is_no_loss(written: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(written, copy)
    with Store(copy) as opened:
        hit = opened.conversations.window(("x", "1")).messages[1]
        opened.erasure.forget(hit.id)
        opened.erasure.scrub()
    shutil.copytree(copy / "log", written / "log", dirs_exist_ok=True)
    assert tampered(written) == []
    project(written)
    assert tampered(written) == []
    path = next(path for path in segment_files(written) if b"message 0" in path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b"message 0", b"message 9"))
    assert len(tampered(written)) == 1


def test_an_erasure_of_repeated_lines_by_another_copy_is_no_loss(tmp_path: Path) -> None:
    """One redaction erases every line of its id."""
    store, copy = tmp_path / "store", tmp_path / "copy"
    with Store(store) as opened:
        opened.append([message("x:1", "said three times") | {"id": "said"}] * 3)
    project(store)
    shutil.copytree(store, copy)
    with Store(copy) as opened:
        opened.erasure.forget("said")
        assert opened.erasure.scrub().lines == 3
    shutil.copytree(copy / "log", store / "log", dirs_exist_ok=True)
    assert tampered(store) == []


@pytest.mark.parametrize("then", ["", "project", "scrub"])
def test_a_version_from_before_an_erasure_is_no_loss(written: Path, tmp_path: Path, then: str) -> None:
    """A file sync brings the writer's longer version of a segment in which this copy has erased a line."""
    copy = tmp_path / "copy"
    shutil.copytree(written, copy)
    project(copy)
    with Store(copy) as opened:
        opened.erasure.forget(opened.conversations.window(("x", "1")).messages[1].id)
        opened.erasure.scrub()
    say(written, "x:1", "message 3")
    shutil.copytree(written / "log", copy / "log", dirs_exist_ok=True)
    if then == "project":
        assert [note for note in project(copy) if "read before" in note] == []
    if then == "scrub":
        with Store(copy) as opened:
            assert opened.erasure.scrub().lines == 1
    assert tampered(copy) == []
    path = next(path for path in segment_files(copy) if b"message 0" in path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b"message 0", b"message 9"))
    assert len(tampered(copy)) == 1


def segment_files(store: Path) -> list[Path]:
    return [segment.path for segment in list_segments(store / "log")[0]]


def test_a_writer_whose_segment_is_shorter_than_was_read_takes_another_name(written: Path) -> None:
    path = segment(written)
    whole = path.read_bytes()
    shorter(path)
    say(written, "x:1", "after")
    names = {path.name for path in segment_files(written)}
    assert len(names) == 2
    assert b"after" not in path.read_bytes()
    assert len(tampered(written)) == 1
    path.write_bytes(whole)
    assert tampered(written) == []
    assert set(texts(written, "x:1")) == {"message 0", "message 1", "message 2", "after"}


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("lose", [gone, shorter, folder])
def test_a_sealed_segment_of_another_writer_that_was_read_is_lost_and_not_arriving(
    written: Path, lose: Callable[[Path], None]
) -> None:
    seal_unsealed_segments(written)
    copy = written.with_name("copy")
    shutil.copytree(written / "log", copy / "log")
    say(copy, "x:2", "elsewhere")
    project(copy)
    lose(segment(copy))
    for _ in range(2):
        assert len(tampered(copy)) == 1
        project(copy)
    assert texts(copy, "x:2") == ["elsewhere"]


def test_a_store_that_was_copied_with_its_read_model_sees_losses_of_what_it_had_read(written: Path) -> None:
    copy = written.with_name("copy")
    shutil.copytree(written, copy)
    say(copy, "x:2", "elsewhere")
    project(copy)
    shorter(segment(copy))
    project(copy)
    assert len(tampered(copy)) == 1


def test_a_folder_in_the_place_of_a_segment_is_a_loss_and_stops_no_read(written: Path) -> None:
    say(written, "x:2", "elsewhere")
    project(written)
    folder(segment(written))
    assert texts(written, "x:2") == ["elsewhere"]
    assert len(tampered(written)) == 1
    accept_losses(written)
    project(written)
    assert tampered(written) == []


@pytest.mark.drawn
def test_a_loss_at_any_place_is_reported_and_hides_nothing(tmp_path: Path) -> None:
    lose_at_random_places(tmp_path / "store", examples(10), Random(16))


def lose_at_random_places(store: Path, places: int, random: Random) -> None:
    """Each time one segment, sealed or not, loses something; what is not touched is found."""
    with Store(store) as opened:
        for chat in CHATS:
            opened.append([message(chat, f"message {number} of {chat}") for number in range(MESSAGES)])
    seal_unsealed_segments(store)
    for chat in CHATS[1:]:
        say(store, chat, "after the seal")
    project(store)
    kept = {path: path.read_bytes() for path in segment_files(store)}
    with Store(store) as opened:
        for place in range(places):
            path = random.choice(sorted(kept))
            how = lose_something(path, kept[path], random)
            if place % 10 == 0:
                opened.close()
                shutil.rmtree(store / "model")
                shutil.rmtree(store / "cache", ignore_errors=True)
            opened.maintenance.project(embed=False)
            said = opened.maintenance.verify().tampered
            stream = f"{path.parent.parent.name}/{path.parent.name}/{path.name}"
            assert any(line.startswith(stream) for line in said), (how, stream, said)
            untouched = [chat for chat in CHATS if chat.replace(":", "_") != path.parent.name]
            for chat in untouched:
                assert len(opened.conversations.window(chat.split(":")).messages) >= MESSAGES, (how, chat)
            left = path.read_bytes().split(b"\n") if path.exists() else []
            whole = set(kept[path].split(b"\n"))
            messages = (
                opened.conversations.window(("x", path.parent.name[2:])).messages
                if whole & set(left) - {b""}
                else []
            )
            found = {message.id.encode() for message in messages}
            for line in set(left) & whole:
                assert not line or json.loads(line)["id"].encode() in found, (how, line)
            path.write_bytes(kept[path])
            assert opened.maintenance.verify().tampered == [], how


def lose_something(path: Path, data: bytes, random: Random) -> str:
    at = random.randrange(len(data))
    match random.choice(["gone", "cut", "edit", "line"]):
        case "gone":
            path.unlink()
            return "gone"
        case "cut":
            path.write_bytes(data[:at])
            return f"cut at {at}"
        case "edit":
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            return f"edited at {at}"
        case _:
            lines = data.splitlines(keepends=True)
            number = random.randrange(len(lines))
            path.write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
            return f"without line {number}"


# What this copy wrote


def _older_copy(store: Path, older: Path) -> None:
    shutil.copytree(older / "log", store / "log", dirs_exist_ok=True)


def _no_folder(store: Path, older: Path) -> None:
    for stream in ("conversations/x_1", "memory", "facts", "core"):
        shutil.rmtree(store / "log" / stream)


def _no_log(store: Path, older: Path) -> None:
    shutil.rmtree(store / "log")


def _older_log(store: Path, older: Path) -> None:
    shutil.rmtree(store / "log")
    _older_copy(store, older)


@pytest.mark.parametrize("lose", [_older_copy, _no_folder, _no_log, _older_log])
def test_what_was_written_and_is_gone_is_a_loss_whether_it_was_read_or_not(
    memlog, store: Path, tmp_path: Path, lose
) -> None:
    for read in ("", "before", "before and after", "after the loss"):
        place = tmp_path / f"read {read}"

        def say_all(what: str, place: Path = place) -> None:
            with Store(place, lock_timeout=60) as opened:
                opened.append([message("x:1", what), {"type": "memory_saved", "content": what}])
                opened.facts.set("tea", [what])
                opened.core.set("user", "tea", what)

        say_all("one")
        if "before" in read:
            project(place)
        shutil.copytree(place, tmp_path / f"copy {read}")
        say_all("two")
        if "and after" in read:
            project(place)
        lose(place, tmp_path / f"copy {read}")
        if read == "after the loss":
            project(place)
        arguments = ("--store", place)
        for _ in range(2):
            found = memlog(*arguments, "verify")
            assert found.code == 3, read
            named = memlog(*arguments, "doctor").out.decode()
            for stream in ("conversations/x_1/", "memory/", "facts/", "core/"):
                assert stream in found.err.decode(), (read, stream)
                assert stream in named, (read, stream)
            assert memlog(*arguments, "seal").code == 3, read
        assert memlog(*arguments, "seal", "--accept-loss").code == 0
        say_all("three")
        assert memlog(*arguments, "verify").code == 0, read
        assert "three" in texts(place, "x:1"), read


def test_an_accepted_loss_stays_accepted_when_a_process_that_wrote_it_ends(memlog, store: Path) -> None:
    with Store(store) as opened:
        opened.append([message("x:1", "one")])
        older = segment(store).read_bytes()
        opened.append([message("x:1", "two")])
        opened.maintenance.verify()
        opened.append([message("x:1", "three")])
        segment(store).write_bytes(older)
        assert memlog("verify").code == 3
        assert memlog("seal", "--accept-loss").code == 0
    assert memlog("verify").code == 0


def test_what_a_process_wrote_that_closed_nothing_is_known(memlog, store: Path, tmp_path: Path) -> None:
    """Also what it wrote within a second after its last record."""
    script = (
        "import memlog, sys\n"
        "store = memlog.open(sys.argv[1])\n"
        "for text in ('one', 'two', 'three'):\n"
        "    store.append(memlog.Message(channel='x', chat_id='1', role='user', content=text))\n"
    )
    subprocess.run([sys.executable, "-c", script, store], check=True)
    path = segment(store)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    assert memlog("verify").code == 3

"""Text that one copy of a store erased comes back from another: seen, told from a loss, and erased again."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

import memlog
from memlog.eventlog.integrity.seal_close import accept_losses, seal_unsealed_segments
from memlog.eventlog.log.layout import WATERMARKS
from memlog.eventlog.log.writer import Log
from tests.copies.two_copies import texts
from tests.support.forked_memlog import run_memlog

STREAM = "conversations/x_1"
TEXTS = {"p1": "my number is 5551234", "p2": "my street is Elm Street", "p3": "call me tomorrow"}
REMEDY = "erased text has come back: memlog scrub"


class Erased(NamedTuple):
    """e: has written. f: a copy of it that has forgotten p1 and scrubbed; e does not know."""

    e: Path
    f: Path


def say(store: Path, *names: str) -> None:
    with memlog.open(store, durability="os") as opened:
        opened.append(
            [
                memlog.Message(id=name, channel="x", chat_id="1", role="user", content=TEXTS.get(name, name))
                for name in names
            ]
        )


def forget(store: Path, *names: str, scrub: bool = True) -> None:
    with memlog.open(store, durability="os") as opened:
        for name in names:
            opened.erasure.forget(name)
    if scrub:
        scrub_all(store)


def scrub_all(store: Path) -> memlog.ScrubReport:
    with memlog.open(store) as opened:
        return opened.erasure.scrub()


def project(store: Path) -> None:
    with memlog.open(store) as opened:
        opened.maintenance.project(embed=False)


def send(source: Path, target: Path, name: str) -> Path:
    """Copy one segment of the chat, as rsync and file syncs do: the copy has another inode."""
    path = target / "log" / STREAM / name
    shutil.copy2(source / "log" / STREAM / name, path.with_name(f".{name}"))
    return path.with_name(f".{name}").replace(path)


def segment(store: Path) -> Path:
    """The only one of the chat."""
    (path,) = (store / "log" / STREAM).iterdir()
    return path


def came_back(store: Path) -> bool:
    """Whether `memlog verify` says that alone."""
    code, notes = checked(store)
    assert code == 0
    return len(notes) == 1


def checked(store: Path) -> tuple[int, list[str]]:
    """The exit code of `memlog verify`, and what it says that a scrub mends."""
    done = run_memlog("--store", store, "verify")
    lines = (done.stdout + done.stderr).decode().splitlines()
    return done.returncode, [line for line in lines if "memlog scrub" in line]


def hashes(store: Path) -> set[str]:
    """Those of all lines in the file of watermarks."""
    lines = (store / WATERMARKS).read_text().splitlines()
    marks = [json.loads(line) for line in lines[1:]]
    return {mark[name] for mark in marks for name in ("chain", "rest") if mark[name].strip()}


def log_bytes(store: Path) -> bytes:
    return b"".join(path.read_bytes() for path in (store / "log").rglob("*.jsonl"))


@pytest.fixture
def stores(tmp_path: Path) -> Erased:
    """Both have projected what they have; p1 is erased in `f` alone."""
    e, f = tmp_path / "e", tmp_path / "f"
    say(e, "p1", "p2")
    project(e)
    shutil.copytree(e / "log", f / "log", copy_function=shutil.copy2)
    project(f)
    forget(f, "p1")
    return Erased(e, f)


@pytest.fixture
def sealed(tmp_path: Path) -> Erased:
    """As `stores`, and `e` has sealed the segment before `f` had it."""
    e, f = tmp_path / "e", tmp_path / "f"
    say(e, "p1", "p2")
    seal_unsealed_segments(e)
    project(e)
    shutil.copytree(e / "log", f / "log", copy_function=shutil.copy2)
    project(f)
    forget(f, "p1")
    return Erased(e, f)


def test_erased_text_that_comes_back_is_no_loss_and_the_next_scrub_erases_it(stores: Erased) -> None:
    e, f = stores
    name = segment(e).name
    assert checked(f) == (0, [])
    say(e, "p3")
    project(e)
    send(e, f, name)
    of_the_text = hashes(e)
    for read in (False, True):
        if read:
            project(f)
        code, (note,) = checked(f)
        assert code == 0
        assert note.endswith(f"{STREAM}/{name}: {REMEDY}")
        with memlog.open(f) as opened:
            (found,) = [finding for finding in opened.maintenance.examine() if "come back" in finding.finding]
        assert (found.state, found.remedy) == ("warning", "store.erasure.scrub()")
        assert not hashes(f) & of_the_text
    assert scrub_all(f).lines == 1
    assert TEXTS["p1"].encode() not in log_bytes(f)
    assert checked(f) == (0, [])
    assert not hashes(f) & of_the_text
    shutil.rmtree(f / "model")
    assert texts(f) == {TEXTS["p2"], TEXTS["p3"]}


def test_the_watermark_protects_what_came_with_erased_text(stores: Erased) -> None:
    e, f = stores
    say(e, "p3")
    path = send(e, f, segment(e).name)
    project(f)
    for scrubs in (False, True):
        if scrubs:
            scrub_all(f)
        whole = path.read_bytes()
        path.write_bytes(whole.replace(b"call me tomorrow", b"call me tomorroW"))
        assert checked(f)[0] == 3
        path.write_bytes(whole)
        assert checked(f)[0] == 0


def test_a_part_of_what_was_erased_comes_back(stores: Erased) -> None:
    e, f = stores
    forget(f, "p2")
    forget(e, "p2")
    say(e, "p3")
    send(e, f, segment(e).name)
    for read in (False, True):
        if read:
            project(f)
        assert came_back(f)
    assert scrub_all(f).lines == 1
    assert checked(f) == (0, [])


@pytest.mark.parametrize("forgets", ["later here", "before there"])
def test_what_was_forgotten_and_not_erased_makes_no_loss_of_it(stores: Erased, forgets: str) -> None:
    """A redaction says what is due, not what was erased when a projection read the segment."""
    e, f = stores
    if forgets == "later here":
        forget(f, "p2", scrub=False)
    else:
        forget(e, "p2", scrub=False)
    say(e, "p3")
    send(e, f, segment(e).name)
    for read in (False, True):
        if read:
            project(f)
        assert came_back(f)
    assert scrub_all(f).lines == 2
    assert checked(f) == (0, [])


def test_what_comes_back_from_a_copy_that_erased_something_else_is_no_loss(
    stores: Erased, tmp_path: Path
) -> None:
    e, f = stores
    g = tmp_path / "g"
    shutil.copytree(e / "log", g / "log", copy_function=shutil.copy2)
    forget(g, "p2")
    for path in (g / "log" / STREAM).iterdir():
        send(g, f, path.name)
    for read in (False, True):
        if read:
            project(f)
        assert came_back(f)
    assert scrub_all(f).lines == 1
    assert checked(f) == (0, [])


def test_a_change_beside_text_that_has_come_back_stays_a_loss(stores: Erased) -> None:
    e, f = stores
    say(e, "p3")
    path = send(e, f, segment(e).name)
    path.write_bytes(path.read_bytes().replace(b"Elm Street", b"Oak Street"))
    for heartbeat in (lambda: None, lambda: project(f), lambda: scrub_all(f)):
        heartbeat()
        assert checked(f) == (3, [])
    with memlog.open(f) as opened:
        assert any("accept_loss=True" in finding.remedy for finding in opened.maintenance.examine())


def test_an_erasure_by_another_copy_is_no_fault_of_the_read_model(stores: Erased) -> None:
    """The log was rewritten after the last read: the next one replays it."""
    e, f = stores
    for path in (f / "log" / STREAM).iterdir():
        send(f, e, path.name)
    for is_read in (False, True):
        if is_read:
            assert texts(e) == {TEXTS["p2"]}
        with memlog.open(e) as opened:
            found = opened.maintenance.verify()
        assert (found.problems, found.tampered) == ([], [])
        assert [note for note in found.notes if "rewritten" in note and STREAM in note] == found.notes
        assert (found.digest is None, len(found.notes)) == (not is_read, 0 if is_read else 1)


def test_an_erasure_by_another_copy_leaves_no_hash_of_what_was_read(stores: Erased) -> None:
    e, f = stores
    of_the_text = hashes(e)
    for path in (f / "log" / STREAM).iterdir():
        send(f, e, path.name)
    project(e)
    assert checked(e) == (0, [])
    assert not hashes(e) & of_the_text


@pytest.mark.parametrize("sent", ["segment", "seals", "segment and seals"])
def test_of_a_sealed_segment_text_or_hash_that_comes_back_is_noted_and_erased(
    sealed: Erased, sent: str
) -> None:
    e, f = sealed
    (seals,) = (e / "log").glob("seals*")
    of_the_text = json.loads(seals.read_bytes())["sha256"].encode()
    assert checked(f) == (0, [])
    if sent != "seals":
        send(e, f, segment(e).name)
    if sent != "segment":
        shutil.copy2(seals, f / "log" / seals.name)
    assert (TEXTS["p1"].encode() in log_bytes(f), of_the_text in log_bytes(f)) == (
        sent != "seals",
        sent != "segment",
    )
    code, (note,) = checked(f)
    assert (code, f"{STREAM}/{segment(e).name}: " in note, "memlog scrub" in note) == (0, True, True)
    assert not any("sealed" in note for note in scrub_all(f).notes)
    assert TEXTS["p1"].encode() not in log_bytes(f)
    assert of_the_text not in log_bytes(f)
    assert checked(f) == (0, [])


def test_erased_text_that_a_backup_brings_into_an_own_sealed_segment_is_no_tampering(tmp_path: Path) -> None:
    store, backup = tmp_path / "store", tmp_path / "backup"
    say(store, "p1", "p2")
    seal_unsealed_segments(store)
    shutil.copytree(store / "log", backup)
    name = segment(store).name
    forget(store, "p1")
    path = Path(shutil.copy2(backup / STREAM / name, store / "log" / STREAM / name))
    code, (note,) = checked(store)
    assert (code, "memlog scrub" in note) == (0, True)
    assert accept_losses(store) == []
    path.write_bytes(path.read_bytes().replace(b"Elm Street", b"Oak Street"))
    assert checked(store)[0] == 3
    shutil.copy2(backup / STREAM / name, path)
    scrub_all(store)
    assert TEXTS["p1"].encode() not in log_bytes(store)
    assert checked(store) == (0, [])


def test_erased_text_that_comes_back_with_more_lines_and_a_seal_is_noted_and_erased(stores: Erased) -> None:
    e, f = stores
    say(e, "p3")
    seal_unsealed_segments(e)
    name = segment(e).name
    send(e, f, name)
    (seals,) = (e / "log").glob("seals*")
    shutil.copy2(seals, f / "log" / seals.name)
    assert came_back(f)
    project(f)
    assert came_back(f)
    assert scrub_all(f).lines == 1
    assert TEXTS["p1"].encode() not in log_bytes(f)
    assert checked(f) == (0, [])
    # What another copy has not scrubbed comes again.
    send(e, f, name)
    assert came_back(f)


def test_an_erasure_by_another_copy_in_an_own_segment_that_was_sealed_meanwhile_is_no_tampering(
    stores: Erased,
) -> None:
    """The copy that erased it knew of no seal, so that no seal speaks of the erasure."""
    e, f = stores
    seal_unsealed_segments(e)
    for path in (f / "log" / STREAM).iterdir():
        send(f, e, path.name)
    code, (note,) = checked(e)
    assert (code, "an erasure has arrived" in note) == (0, True)
    whole = segment_of(e, f).read_bytes()
    segment_of(e, f).write_bytes(whole.replace(b"Elm Street", b"Oak Street"))
    assert checked(e)[0] == 3
    segment_of(e, f).write_bytes(whole)
    scrub_all(e)
    assert checked(e) == (0, [])
    segment_of(e, f).write_bytes(b" " * len(whole))
    assert checked(e)[0] == 3


def segment_of(e: Path, f: Path) -> Path:
    """The segment that both copies have, in `e`: its writer has sealed it and made no other."""
    own = Log(e).read_own_writer_names()
    (path,) = (path for path in (e / "log" / STREAM).iterdir() if any(name in path.name for name in own))
    assert (f / "log" / STREAM / path.name).exists()
    return path

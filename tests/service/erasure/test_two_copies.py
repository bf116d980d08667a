"""What is forgotten in one copy of a store leaves the files of all writers, and the other copy follows."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import memlog
from memlog.eventlog.integrity.copy_identity import Writer
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments
from memlog.eventlog.integrity.seal_file import measure_segment, read_seals
from memlog.eventlog.log.layout import WATERMARKS, name_of_seals_file
from memlog.eventlog.log.streams import Segment, list_segments

PERSON = "Aino Virtanen"


def said(content: str) -> memlog.Message:
    return memlog.Message(channel="x", chat_id="1", role="user", content=content)


class Copy:
    """A copy of a store, and what its owner does with it."""

    def __init__(self, store: Path) -> None:
        self.store, self.log = store, store / "log"

    def append(self) -> None:
        """Events that name the person, before and behind one that does not."""
        name = self.store.name
        with memlog.open(self.store, durability="os") as opened:
            opened.append(
                [
                    said(f"{PERSON} called {name}"),
                    said(f"tea with {name}"),
                    memlog.MemorySaved(content=f"{PERSON} lives near {name}"),
                    memlog.CoreMemoryUpdated(section="user", key=f"friend of {name}", value=PERSON),
                ]
            )
            opened.maintenance.project(embed=False)

    def forget(self) -> None:
        with memlog.open(self.store) as opened:
            opened.erasure.forget(match=PERSON)

    def scrub(self) -> int:
        """Returns how many lines were overwritten."""
        with memlog.open(self.store) as opened:
            return opened.erasure.scrub().lines

    def verified(self) -> memlog.Verification:
        with memlog.open(self.store) as opened:
            opened.maintenance.project(embed=False)
            return opened.maintenance.verify()

    def found(self) -> list[Any]:
        with memlog.open(self.store) as opened:
            return opened.erasure.prove(PERSON).found

    def digest(self) -> str:
        with memlog.open(self.store) as opened:
            opened.maintenance.project(embed=False)
            return opened.maintenance.digest()

    @property
    def writer(self) -> str:
        return Writer(self.store).read_own_names()[0]

    @property
    def segments(self) -> list[Segment]:
        return list_segments(self.log)[0]

    def foreign(self) -> list[Path]:
        """The segments and seals of the other copy."""
        return [path for path in files_of(self.log) if len(path.name) > 6 and self.writer not in path.name]

    def hashes(self) -> set[bytes]:
        """Of what was read and sealed."""
        seals = (seal.sha256 for last in read_seals(self.log).last.values() for seal in last)
        marks = (self.store / WATERMARKS).read_bytes().split(b'"')
        return {seal.encode() for seal in seals} | {each for each in marks if len(each) == 64}

    def everything(self) -> bytes:
        return b"".join(path.read_bytes() for path in files_of(self.store))


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def send(source: Copy, target: Copy) -> None:
    """As `rsync -a --update` does: what is newer takes the place of what is older."""
    for path in files_of(source.log):
        there = target.log / path.relative_to(source.log)
        if not there.exists() or there.stat().st_mtime_ns < path.stat().st_mtime_ns:
            there.parent.mkdir(exist_ok=True)
            shutil.copy2(path, there)


@pytest.fixture(params=["open", "sealed"])
def copies(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Copy, Copy]:
    """Each has what both have said of the person, in segments of two writers."""
    a, b = Copy(tmp_path / "a"), Copy(tmp_path / "b")
    a.append()
    shutil.copytree(a.store, b.store, copy_function=shutil.copy2)
    b.append()
    if request.param == "sealed":
        for copy in (a, b):
            seal_unsealed_segments(copy.store)
    send(a, b)
    send(b, a)
    for copy in (a, b):
        assert copy.verified().ok
    assert a.digest() == b.digest()
    return a, b


def test_a_scrub_overwrites_what_another_writer_has_written(copies: tuple[Copy, Copy]) -> None:
    _, b = copies
    hashes = b.hashes()
    foreign = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in b.foreign()}
    sealed = read_seals(b.log).valid_seals
    b.forget()
    assert b.found()
    assert b.scrub() == 6
    assert b.found() == []
    assert PERSON.encode() not in b.everything()
    assert b"tea with a" in b.everything()
    for path, (mtime, data) in foreign.items():
        assert path.stat().st_mtime_ns == mtime
        assert len(path.read_bytes()) == len(data)
        assert path.read_bytes() != data
    left = b.hashes()
    own_seals = (b.log / name_of_seals_file(b.writer)).read_bytes() if sealed else b""
    for stream, segment in sealed:
        held = measure_segment(b.log, stream, segment)
        assert read_seals(b.log).valid_seals[stream, segment].is_of(held)
        assert held.sha256.encode() in own_seals
    assert not left & hashes
    verified = b.verified()
    assert (verified.ok, verified.tampered, verified.problems) == (True, [], [])


def test_two_copies_that_both_scrub_end_with_equal_segments(copies: tuple[Copy, Copy]) -> None:
    a, b = copies
    b.forget()
    b.scrub()
    send(b, a)
    assert a.verified().ok
    assert a.scrub() > 0
    assert PERSON.encode() not in a.everything()
    for source, target in ((a, b), (b, a), (a, b)):
        send(source, target)
        assert PERSON.encode() not in b"".join(path.read_bytes() for path in files_of(target.log))
    assert segments(a) == segments(b)
    for copy in copies:
        verified = copy.verified()
        assert (verified.ok, verified.tampered, verified.problems, copy.found()) == (True, [], [], [])
    assert a.digest() == b.digest()


def segments(copy: Copy) -> dict[Path, bytes]:
    return {segment.path.relative_to(copy.log): segment.path.read_bytes() for segment in copy.segments}


def test_what_comes_back_with_a_longer_file_is_erased_by_the_next_scrub(tmp_path: Path) -> None:
    """The other copy goes on before it has heard of the redaction."""
    a, b = Copy(tmp_path / "a"), Copy(tmp_path / "b")
    a.append()
    shutil.copytree(a.store, b.store, copy_function=shutil.copy2)
    b.append()
    b.forget()
    b.scrub()
    with memlog.open(a.store) as opened:
        opened.append([said("the kettle is on"), memlog.MemorySaved(content="a kettle")])
    send(a, b)
    assert PERSON.encode() in b"".join(path.read_bytes() for path in files_of(b.log))
    assert b.verified().tampered == []
    with memlog.open(b.store) as opened:
        assert [message.content for message in opened.conversations.window(("x", "1")).messages] == [
            "tea with a",
            "tea with b",
            "the kettle is on",
        ]
    b.scrub()
    assert PERSON.encode() not in b.everything()
    assert b.verified().tampered == []

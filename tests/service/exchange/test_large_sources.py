"""Large sources: what an import remembers of them is on disk, and a kill or an archive changes nothing."""

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memlog
from memlog.projector.disk_table import DiskTable
from tests.service.exchange.test_agent_sessions import SAMPLE
from tests.service.exchange.test_imports import MADE
from tests.support.agent_samples import opencode
from tests.support.recorded_disk import recording

IMPORTS = (
    "import re, sys, memlog\n"
    "with memlog.open(sys.argv[1], create=True) as store:\n"
    "    report = store.exchange.import_from(sys.argv[3], [sys.argv[2]])\n"
    "status = open('/proc/self/status').read()\n"  # ru_maxrss also counts the process that forked it
    "print(report.appended, int(re.search(r'VmHWM:\\s+(\\d+) kB', status)[1]) // 1024)\n"
)


def line(number: int, content: Any, session: str = "s") -> str:
    told = {
        "type": "user" if number % 2 else "assistant",
        "uuid": f"{number:08x}-1111-4111-8111-111111111111",
        "sessionId": session,
        "timestamp": f"2026-09-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z",
        "message": {"content": content},
    }
    return json.dumps(told) + "\n"


@pytest.mark.deep
def test_lines_of_9_mb_take_bounded_memory(tmp_path: Path) -> None:
    with (tmp_path / "long.jsonl").open("w") as file:
        file.writelines(line(number, f"{number} " + "tea " * 2_250_000) for number in range(8))
    command = [sys.executable, "-c", IMPORTS, tmp_path / "store", tmp_path / "long.jsonl", "claude-code"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    appended, megabytes = map(int, done.stdout.split())
    assert appended == 8
    assert megabytes < 300


@pytest.mark.deep
def test_a_database_of_280_mb_takes_bounded_memory(tmp_path: Path) -> None:
    home = opencode(tmp_path / "home", "v1")
    with closing(sqlite3.connect(home / "opencode.db")) as db:
        for number in range(80):
            told = json.dumps({"type": "text", "text": f"{number} " + "tea " * 875_000})
            message = (f"msg_c{number}", f"ses_{number}", 1782900004000)
            db.execute("INSERT INTO message VALUES (?, ?, ?, 0, ?)", (*message, '{"role":"user"}'))
            db.execute("INSERT INTO part VALUES (?, ?, ?, ?, 0, ?)", (f"prt_c{number}", *message, told))
        db.commit()
    command = [sys.executable, "-c", IMPORTS, tmp_path / "store", home, "opencode"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    appended, megabytes = map(int, done.stdout.split())
    assert appended == 88
    assert megabytes < 300


@pytest.mark.parametrize("count", [10, 60_000])
def test_a_table_on_disk_keeps_the_last_value_of_each_id(count: int) -> None:
    def names() -> Iterator[str]:
        return (f"claude-code/{number}" for number in range(count))

    table = DiskTable()
    assert all(table.add(name) for name in names())
    assert not any(table.add(name) for name in names())
    for name in names():
        table[name] = name
    assert all(table.get(name) == name for name in names())
    assert table.get("claude-code/-1") is None
    assert sorted(map(str, table.values())) == sorted(names())


def test_ten_kills_leave_what_one_run_leaves(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for session in range(20):
        with (source / f"{session}.jsonl").open("w") as file:
            file.writelines(
                line(n, f"cup {n}", f"{session}") for n in range(session * 100, session * 100 + 100)
            )
    for number in range(10):
        command = [sys.executable, "-c", IMPORTS, tmp_path / "killed", source, "claude-code"]
        process = subprocess.Popen(command)
        _wait_for_events(tmp_path / "killed", 180 * number, process)
        process.kill()
        process.wait(60)
    digests = []
    for name in ("killed", "whole"):
        with memlog.open(tmp_path / name, create=True) as store:
            report = store.exchange.import_from("claude-code", [source])
            assert report.appended + report.known == report.events == 2_000
            assert store.maintenance.stats().events_by_type == {"message": 2_000}
            digests.append(store.maintenance.digest(content=True))
    assert digests[0] == digests[1]


def test_what_is_reported_is_synced_once(tmp_path: Path) -> None:
    for session in range(3):
        texts = [line(n, f"cup {n}", f"{session}") for n in range(session * 600, session * 600 + 600)]
        (tmp_path / f"{session}.jsonl").write_text("".join(texts))
    with recording() as recorded, memlog.open(tmp_path / "store", create=True) as store:
        assert store.exchange.import_from("claude-code", [tmp_path]).appended == 1800
        trace = [*recorded.trace]
    segments = {
        each.path for each in trace if each.call == "write" and each.path.match("claude-code_*/*.jsonl")
    }
    assert len(segments) == 3
    for path in segments:
        last = max(n for n, each in enumerate(trace) if each.call == "write" and each.path == path)
        behind = [(each.call, each.path) for each in trace[last:]]
        assert ("sync", path.parent) in behind
        assert [each.path for each in trace if each.call == "sync_data"].count(path) == 1
        assert ("sync_data", path) in behind


def _wait_for_events(store: Path, count: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        lines = sum(path.read_bytes().count(b"\n") for path in store.glob("log/conversations/*/*.jsonl"))
        if lines > count:
            return
        time.sleep(0.01)


def _pack(folder: Path, path: Path) -> Path:
    """Pack a folder into an archive, of the kind that the name says."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.rglob("*"), reverse=True):
                archive.write(file, file.relative_to(folder))
    else:
        with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as tar:
            tar.add(folder, ".")
    return path


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
@pytest.mark.parametrize("format", [*MADE, "claude-code"])
def test_an_archive_is_imported_as_its_folder(tmp_path: Path, format: str, kind: str) -> None:
    made = MADE[format][0](tmp_path / "made") if format in MADE else SAMPLE
    folder = Path(shutil.copytree(made if made.is_dir() else made.parent, tmp_path / "folder"))
    for file in folder.rglob("*"):
        os.utime(file, (1_780_000_000, 1_780_000_000))
    with memlog.open(tmp_path / "store", create=True) as store:
        packed, plain = (
            store.exchange.import_from(format, [source])
            for source in (_pack(folder, tmp_path / f"packed.{kind}"), folder)
        )
    assert packed.appended == plain.known == plain.events > 0
    assert (plain.appended, plain.changed, plain.prefixes) == (0, 0, [])
    assert (plain.found, plain.unreadable) == (packed.found, packed.unreadable)


def test_an_archive_of_a_hidden_folder_is_read_as_that_folder(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "claude.tgz", "w:gz") as tar:
        tar.add(SAMPLE, ".claude")
    with memlog.open(tmp_path / "store", create=True) as store:
        assert store.exchange.import_from("claude-code", [tmp_path / "claude.tgz"]).appended == 20


def test_a_compressed_archive_is_read_in_any_order(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for session in range(12):
        texts = [line(n, f"cup {n} " + "tea " * 100_000, f"{session}") for n in (session, 99 - session)]
        # Forks, so that each file is read three times.
        (folder / f"{session}.jsonl").write_text(line(999, "the first line of all") + "".join(texts))
    with memlog.open(tmp_path / "store", create=True) as store:
        report = store.exchange.import_from("claude-code", [_pack(folder, tmp_path / "packed.tar.gz")])
    assert (report.appended, report.skipped, report.unreadable) == (25, {"duplicate_in_source": 11}, 0)


def _hostile_zip(path: Path, name: str, data: bytes = b"", *, mode: int = 0) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("good.jsonl", line(1, "a good line"))
        member = zipfile.ZipInfo(name)
        member.external_attr = mode << 16
        archive.writestr(member, data, zipfile.ZIP_DEFLATED)


def _hostile_tar(path: Path, name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> None:
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        good = tarfile.TarInfo("good.jsonl")
        good.size = len(line(1, "a good line"))
        archive.addfile(good, io.BytesIO(line(1, "a good line").encode()))
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, "good.jsonl", size
        archive.addfile(member, io.BytesIO(bytes(size)))


def _with_many_members(path: Path) -> None:
    _hostile_tar(path, "b.txt")
    member = tarfile.TarInfo("b")
    member.type = tarfile.DIRTYPE
    path.write_bytes(path.read_bytes()[:1024] + member.tobuf() * 100_000 + bytes(1024))


def _with_negative_size(path: Path) -> None:
    _hostile_tar(path, "b.jsonl")
    header = tarfile.TarInfo("c.jsonl")
    header.size = -1024
    written = path.read_bytes().rstrip(b"\0")
    whole = written.ljust(-len(written) % 512 + len(written), b"\0")
    path.write_bytes(whole + header.tobuf(tarfile.GNU_FORMAT) + bytes(1024))


def _damaged(path: Path) -> None:
    _hostile_tar(path, "more.jsonl", size=70_000)
    path.write_bytes(path.read_bytes()[:5_000])


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "bomb.zip": (lambda path: _hostile_zip(path, "b.jsonl", bytes(8 * 2**20)), "1,000 times"),
    "bomb.tar.gz": (lambda path: _hostile_tar(path, "b.jsonl", size=64 * 2**20), "a bomb"),
    "outside.zip": (lambda path: _hostile_zip(path, "../b.jsonl"), "leads outside"),
    "outside.tar": (lambda path: _hostile_tar(path, "a/../../b.jsonl"), "leads outside"),
    "absolute.zip": (lambda path: _hostile_zip(path, "/etc/b.jsonl"), "leads outside"),
    "drive.zip": (lambda path: _hostile_zip(path, "C:/b.jsonl"), "leads outside"),
    "link.zip": (lambda path: _hostile_zip(path, "b.jsonl", b"/etc/passwd", mode=0o120777), "a link"),
    "link.tar": (lambda path: _hostile_tar(path, "b.jsonl", tarfile.SYMTYPE), "a link"),
    "hard.tar": (lambda path: _hostile_tar(path, "b.jsonl", tarfile.LNKTYPE), "a link"),
    "device.tar": (lambda path: _hostile_tar(path, "b.jsonl", tarfile.CHRTYPE), "a link or device"),
    "nested.zip": (lambda path: _hostile_zip(path, "b.zip"), "import it by itself"),
    "many.tar": (_with_many_members, "100,000 members"),
    "negative.tar": (_with_negative_size, "a negative size"),
    "long.tar": (lambda path: _hostile_tar(path, "b" * 5000 + ".jsonl"), "too long"),
    "cut.tar": (_damaged, "unexpected end"),
    "none.zip": (lambda path: path.write_bytes(b"no archive"), "not a zip file"),
}


SLOW = {"many.tar"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.deep] if name in SLOW else []) for name in HOSTILE]
)
def test_a_hostile_archive_is_named_and_the_rest_is_read(tmp_path: Path, name: str) -> None:
    make, why = HOSTILE[name]
    make(tmp_path / name)
    with memlog.open(tmp_path / "store", create=True) as store:
        report = store.exchange.import_from("claude-code", [tmp_path / name])
    assert why in report.problems[0].why
    assert report.problems[0].where.startswith(name)
    assert report.appended == (name != "none.zip")
    assert report.found == report.used + report.unreadable


def test_each_entry_of_a_repeated_name_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("s.jsonl", line(0, "cup 0"))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("s.jsonl", line(1, "cup 1"))
    with memlog.open(tmp_path / "store", create=True) as store:
        assert store.exchange.import_from("claude-code", [tmp_path / "a.zip"]).appended == 2


@pytest.mark.parametrize("time", ["1e300", "-5", "nan"])
def test_a_time_that_no_file_has_costs_no_note(tmp_path: Path, time: str) -> None:
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("tea.md")
        member.size, member.pax_headers = 5, {"mtime": time}
        archive.addfile(member, io.BytesIO(b"- tea"))
    with memlog.open(tmp_path / "store", create=True) as store:
        assert store.exchange.import_from("memory-folder", [tmp_path / "a.tar"]).appended == 1

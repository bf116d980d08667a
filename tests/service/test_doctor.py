"""Doctor names each thing that is not as it should be, with its remedy; it fixes what is disposable alone."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import memlog
from memlog.eventlog import timestamps
from memlog.eventlog.integrity.copy_identity import Writer
from memlog.eventlog.integrity.seal_close import accept_losses, seal_unsealed_segments
from memlog.eventlog.log.layout import EMBEDDINGS
from memlog.eventlog.log.writer import Log
from memlog.projector.embedding.cache import VectorCache
from memlog.service.upkeep import doctor
from memlog.service.upkeep.doctor import file_system_type, is_network_file_system
from tests.support.forked_memlog import run_memlog

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:45 / /home/anna/my\040share rw,relatime shared:2 - nfs4 server:/share rw
31 22 0:46 / /mnt rw,relatime - ext4 /dev/sdb1 rw
32 22 0:47 / /mnt rw,relatime - fuse.sshfs far:/ rw
nonsense
""".lstrip()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    with memlog.open(folder) as opened:
        opened.append([memlog.MemorySaved(content="green tea")])
        opened.maintenance.project(embed=False)
    return folder


def found(folder: Path, check: str, *, fix: bool = False) -> list[memlog.Finding]:
    with memlog.open(folder) as opened:
        findings = opened.maintenance.examine(fix=fix)
    return [each for each in findings if each.check == check]


def test_all_is_well_in_a_store_that_is(store: Path) -> None:
    with memlog.open(store) as opened:
        findings = opened.maintenance.examine()
    local = [each for each in findings if each.check not in ("file system", "disk")]
    assert {each.state for each in local} == {"ok"}
    assert doctor.has_no_problem(findings)
    assert all(each.remedy for each in findings if each.state != "ok")


def test_a_store_that_does_not_stand_is_examined_and_not_made(tmp_path: Path) -> None:
    (finding,) = found(tmp_path / "store", "read model")
    assert (finding.state, finding.finding) == ("ok", "the log is empty")
    assert not (tmp_path / "store").exists()


def test_a_sqlite_with_the_fault_of_its_wal_is_named(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version, state in (
        ((3, 51, 2), "warning"),
        ((3, 40, 1), "warning"),
        ((3, 51, 3), "ok"),
        ((3, 53, 4), "ok"),
    ):
        module = SimpleNamespace(sqlite_version_info=version, __file__="/usr/lib/sqlite3.py")
        monkeypatch.setattr(doctor, "choose_binding", lambda module=module: module)
        (finding,) = found(store, "sqlite")
        assert finding.state == state, version
        assert "/usr/lib/sqlite3.py" in finding.finding, version


def test_no_vectors_and_no_model_are_warnings(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "why_no_vectors", lambda: "it cannot load extensions")
    (finding,) = found(store, "vectors")
    assert (finding.state, finding.finding) == ("warning", "it cannot load extensions")
    with memlog.open(store, model=store / "nothing") as opened:
        (model,) = [each for each in opened.maintenance.examine() if each.check == "model"]
    assert model.state == "warning"


def test_the_kind_of_a_file_system_is_that_of_the_nearest_and_latest_mount() -> None:
    for folder, kind in (
        ("/var/store", "ext4"),
        ("/home/anna/my share/notes", "nfs4"),
        ("/home/anna/my", "ext4"),
        ("/mnt/x", "fuse.sshfs"),
    ):
        assert file_system_type(Path(folder), MOUNTS) == kind, folder


def test_where_nothing_is_mounted_no_kind_is_told() -> None:
    assert file_system_type(Path("/x"), "") is None


def test_a_file_system_over_a_network_is_known_from_a_disk_of_this_machine() -> None:
    far = ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse", "fuse.sshfs", "ceph"]
    near = ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "apfs", "zfs", "fuseblk"]
    assert [kind for kind in far + near if is_network_file_system(kind)] == far


def test_a_store_over_a_network_is_warned_of(
    store: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(doctor, "MOUNTS", tmp_path / "mounts")
    for mounts, state, says in (
        ("1 0 0:1 / / rw - nfs4 far:/ rw\n", "warning", "nfs4"),
        ("1 0 0:1 / / rw - xfs /dev/sda rw\n", "ok", "xfs"),
        (None, "ok", "of an unknown type"),
    ):
        (tmp_path / "mounts").unlink(missing_ok=True)
        if mounts is not None:
            (tmp_path / "mounts").write_text(mounts)
        (finding,) = found(store, "file system")
        assert finding.state == state, mounts
        assert says in finding.finding, mounts


def test_little_room_is_a_warning(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    (finding,) = found(store, "disk")
    assert finding.state == "warning"
    assert finding.finding.startswith("1,000 bytes are free")


def test_what_is_open_to_others_is_a_problem_and_fixed(store: Path) -> None:
    log, other = store / "log", store / "elsewhere"
    other.write_text("")
    other.chmod(0o644)
    (log / "link").symlink_to(other)
    (log / "memory").chmod(0o755)
    (store / "projector.lock").chmod(0o644)
    (finding,) = found(store, "permissions")
    assert finding.state == "problem"
    assert finding.finding.startswith("2 files or folders")
    (finding,) = found(store, "permissions", fix=True)
    assert finding.state == "fixed"
    assert stat.S_IMODE((log / "memory").stat().st_mode) == 0o700
    assert stat.S_IMODE((store / "projector.lock").stat().st_mode) == 0o600
    assert stat.S_IMODE(other.stat().st_mode) == 0o644
    assert found(store, "permissions")[0].state == "ok"


def behind(folder: Path) -> None:
    Log(folder).append([memlog.MemorySaved(content="later")])


def missing(folder: Path) -> None:
    (folder / "model" / "CURRENT").unlink()


def pipe(folder: Path) -> None:
    missing(folder)
    os.mkfifo(folder / "model" / "CURRENT")


def damaged(folder: Path) -> None:
    (folder / "model" / (folder / "model" / "CURRENT").read_text().strip()).write_bytes(b"")


@pytest.mark.parametrize(
    ("plant", "state"), [(behind, "warning"), (missing, "warning"), (pipe, "warning"), (damaged, "problem")]
)
def test_a_read_model_that_is_not_up_to_the_log_is_named_and_fixed(
    store: Path, plant: Callable[[Path], None], state: str
) -> None:
    plant(store)
    assert [each.state for each in found(store, "read model")] == [state]
    assert [each.state for each in found(store, "read model", fix=True)] == ["fixed"]
    assert [each.state for each in found(store, "read model")] == ["ok"]


def test_bytes_that_wait_for_the_end_of_their_line_leave_the_read_model_up_to_the_log(store: Path) -> None:
    (segment,) = (store / "log/memory").iterdir()
    with segment.open("ab") as file:
        file.write(b'{"type":"memo')
    (finding,) = found(store, "read model")
    assert (finding.state, finding.finding) == (
        "ok",
        "up to the log; 13 bytes wait for the end of their line",
    )


def test_a_read_model_that_cannot_be_made_is_a_problem(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, **options: object) -> None:
        raise memlog.Busy("locked by process 7", hint="wait")

    behind(store)
    monkeypatch.setattr("memlog.projector.lifecycle.Projector.catch_up", fail)
    (finding,) = found(store, "read model", fix=True)
    assert (finding.state, finding.remedy) == ("problem", "wait")


def test_a_damaged_cache_is_a_problem_and_removed(store: Path) -> None:
    VectorCache(store, "model").close()
    assert found(store, "cache")[0].state == "ok"
    (store / EMBEDDINGS).write_bytes(b"no database" * 1000)
    assert found(store, "cache")[0].state == "problem"
    assert found(store, "cache", fix=True)[0].state == "fixed"
    assert found(store, "cache")[0].state == "ok"


def test_a_tail_that_a_writer_left_is_a_warning(store: Path) -> None:
    (segment,) = (store / "log" / "memory").iterdir()
    with segment.open("ab") as file:
        file.write(b'{"type":"mem')
    (finding,) = found(store, "tail", fix=True)
    assert finding.state == "warning"
    assert segment.name in finding.finding
    assert segment.read_bytes().endswith(b'{"type":"mem')


def test_seals_that_are_damaged_and_segments_that_are_lost_are_problems(store: Path) -> None:
    seal_unsealed_segments(store)
    assert found(store, "seals")[0].finding == "1 segment is sealed"
    (segment,) = (store / "log" / "memory").iterdir()
    segment.write_bytes(b"")
    (seals,) = (store / "log").glob("seals.*.jsonl")
    with seals.open("ab") as file:
        file.write(b"{}\n")
    findings = found(store, "seals", fix=True)
    assert [each.state for each in findings] == ["problem", "problem"]
    assert seals.name in findings[0].finding
    assert "store.maintenance.seal(accept_loss=True)" in findings[1].remedy
    assert not doctor.has_no_problem(findings)


def exit_of_verify(folder: Path) -> int:
    return run_memlog("--store", folder, "verify").returncode


@pytest.mark.parametrize("name", [None, "2026-02-24.jsonl"], ids=["own", "plain"])
def test_a_sealed_segment_that_has_grown_is_named_and_sealed_anew(store: Path, name: str | None) -> None:
    (segment,) = (store / "log" / "memory").iterdir()
    if name is not None:
        segment = shutil.copy(segment, segment.with_name(name))
    seal_unsealed_segments(store)
    with segment.open("ab") as file:
        file.write(b'{"type":"memory_saved","content":"late"}\n')
    (finding,) = found(store, "seals")
    assert (finding.state, finding.remedy) == ("problem", "store.maintenance.seal()")
    assert f"memory/{segment.name}: sealed with " in finding.finding
    with memlog.open(store) as opened:
        assert any(
            each.endswith("; store.maintenance.seal()") for each in opened.maintenance.verify().tampered
        )
    assert exit_of_verify(store) == 3
    seal_unsealed_segments(store)
    with memlog.open(store) as opened:
        opened.maintenance.project(embed=False)
    assert (found(store, "seals")[0].state, exit_of_verify(store)) == ("ok", 0)


@pytest.mark.parametrize("change", ["of another writer", "of a retired writer", "and was changed"])
def test_what_a_seal_cannot_mend_of_a_grown_segment_has_another_remedy(store: Path, change: str) -> None:
    (segment,) = (store / "log" / "memory").iterdir()
    seal_unsealed_segments(store)
    data = segment.read_bytes() + b'{"type":"memory_saved","content":"late"}\n'
    if change == "of another writer":
        (store / "writers").rename(store / "away")
    elif change == "of a retired writer":
        writer = Writer(store)
        writer.retire_name(writer.find_or_create_name())
    else:
        data = data.replace(b"green tea", b"black tea")
    segment.write_bytes(data)
    finding = found(store, "seals")[-1]
    assert finding.remedy.endswith("store.maintenance.seal(accept_loss=True)")
    assert finding.remedy.startswith(
        "restore it from a copy" if change == "and was changed" else "store.maintenance.seal() on the copy"
    )
    seal_unsealed_segments(store)
    assert found(store, "seals")[0].state == "problem"
    accept_losses(store)
    assert found(store, "seals")[0].state == "ok"


@pytest.mark.parametrize(
    ("said", "remedy"), [("memlog log format 3\n", "update memlog"), ("", "restore it from a copy")]
)
def test_a_newer_or_damaged_format_of_the_log_is_a_problem(store: Path, said: str, remedy: str) -> None:
    assert [(each.state, each.finding) for each in found(store, "log format")] == [("ok", "format 2")]
    (store / "log/FORMAT").write_text(said)
    (finding,) = found(store, "log format")
    assert (finding.state, remedy in finding.remedy) == ("problem", True)


def test_older_segments_without_a_seal_are_a_warning(store: Path) -> None:
    for day in ("2020-01-01", "2020-01-02"):
        (store / "log" / "memory" / f"{day}.jsonl").write_bytes(b"")
    (finding,) = found(store, "seals")
    assert (finding.state, finding.finding) == ("warning", "1 older segment has no seal")
    assert finding.remedy == "store.maintenance.seal()"
    (store / "log" / "memory" / "2020-01-03.jsonl").write_bytes(b"")
    assert found(store, "seals")[0].finding == "2 older segments have no seal"


def test_a_segment_with_a_later_day_than_its_successor_is_named(store: Path, monkeypatch) -> None:
    """The clock stood at 2099, and came back."""
    for now in ("2099-01-01T08:00:00.000Z", "2026-02-24T08:00:00.000Z", "2026-02-25T08:00:00.000Z"):
        monkeypatch.setattr(timestamps, "now", lambda now=now: now)
        Log(store).append([memlog.MemorySaved(content=f"tea at {now}")])
    odd, successor = (
        next(path.name for path in (store / "log" / "memory").glob(f"{day}*"))
        for day in ("2099-01-01", "2026-02-24")
    )
    (finding,) = found(store, "days")
    assert finding.state == "warning"
    assert f"memory/{odd} has a later day than its successor, {successor}" in finding.finding


def test_days_of_plain_names_and_of_several_writers_go_as_they_like(store: Path) -> None:
    for name in (
        "2099-01-01.aaaaaa",
        "2020-01-01.bbbbbb",
        "2020-01-02.0003",
        "2020-01-03.0001",
        "2020-01-04",
    ):
        (store / "log" / "memory" / f"{name}.jsonl").write_bytes(b"")
    assert [finding.state for finding in found(store, "days")] == ["ok"]


def test_a_segment_of_another_writer_that_has_not_arrived_whole_is_a_warning(store: Path) -> None:
    seal_unsealed_segments(store)
    (segment,) = (store / "log" / "memory").iterdir()
    (store / "writers").rename(store / "away")  # as in a copy: none of the segments is its own
    segment.write_bytes(segment.read_bytes()[:-1])
    assert ("warning", "1 segment of another writer has not arrived whole") in [
        (finding.state, finding.finding) for finding in found(store, "seals")
    ]


def test_a_line_that_is_no_event_is_a_warning(store: Path) -> None:
    (segment,) = (store / "log").rglob("*.jsonl")
    with segment.open("ab") as file:
        file.write(b"oops\n")
    with memlog.open(store) as opened:
        opened.maintenance.project(embed=False)
    (finding,) = found(store, "quarantine")
    assert (finding.state, finding.finding) == ("warning", "1 line is not an event that memlog knows")
    assert "store.maintenance.quarantine()" in finding.remedy

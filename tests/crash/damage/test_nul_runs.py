"""What a power cut leaves on ext4 and xfs: NUL bytes where data was not written yet."""

import json
import os
import zlib
from pathlib import Path

import pytest

import memlog
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments
from memlog.eventlog.log.reader import Line, opening_segment_file, read_lines

NULS = b"\0" * 300
FOREIGN = b'{"role":"user","content":"green tea"}'
CHAT = "conversations/x_1"


def message(event_id: str, content: str = "green tea") -> memlog.Message:
    return memlog.Message(id=event_id, channel="x", chat_id="1", role="user", content=content)


def append(store: Path, *events: memlog.Message) -> Path:
    """Append as another process would; return the segment."""
    with memlog.open(store, durability="os") as here:
        positions = here.append(events)
    return store / "log" / positions[-1].stream / positions[-1].segment


def write(store: Path, data: bytes, stream: str = CHAT, filename: str = "2026-02-24.jsonl") -> Path:
    path = store / "log" / stream / filename
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def project(store: Path) -> tuple[memlog.Store, object]:
    here = memlog.open(store, model=store.parent)
    return here, here.maintenance.project(embed=False)


def runs(found: object) -> list[tuple[int, int]]:
    return [(run.offset, run.bytes) for run in found.nul_runs]


@pytest.mark.parametrize(("before", "behind"), [(NULS, b""), (b"", NULS), (NULS, NULS), (b"\0", b"\0")])
def test_a_line_with_a_crc_lives_among_nuls(store: Path, before: bytes, behind: bytes) -> None:
    """Its neighbours too; where it stands is where its own first byte is, and `show` gives it as written."""
    segment = append(store, message("a"), message("b"), message("c"))
    first, second, third = segment.read_bytes().splitlines()
    segment.write_bytes(b"\n".join([first, before + second + behind, third, b""]))
    here, report = project(store)
    with here:
        assert (report.events, report.quarantined) == (3, 0)
        assert report.nul_runs == bool(before) + bool(behind)
        shown = here.get("b")
        assert shown is not None
        assert shown.raw.encode() == second
        assert shown.position.offset == len(first) + 1 + len(before)
        found = here.maintenance.verify()
        assert found.problems == []
        assert not found.is_spotless
        own = len(first) + 1 + len(before) + len(second)
        assert runs(found) == [
            *([(len(first) + 1, len(before))] if before else []),
            *([(own, len(behind))] if behind else []),
        ]
        assert here.maintenance.status().nul_runs == len(runs(found))


def test_nuls_alone_are_a_blank_line(store: Path) -> None:
    segment = append(store, message("a"))
    segment.write_bytes(NULS + b"\n" + segment.read_bytes() + NULS + b"\n\0\n")
    here, report = project(store)
    with here:
        assert (report.events, report.quarantined, report.nul_runs) == (1, 0, 3)
        assert runs(here.maintenance.verify()) == [
            (0, 300),
            (segment.stat().st_size - 303, 300),
            (segment.stat().st_size - 2, 1),
        ]


def test_a_foreign_line_lives_among_nuls_where_it_is_a_whole_object(store: Path) -> None:
    """No proper part of an object is one: NULs in the place of its beginning or end show."""
    lines = [NULS + FOREIGN + NULS, NULS + FOREIGN[5:], FOREIGN[:-5] + NULS, FOREIGN]
    write(store, b"".join(line + b"\n" for line in lines))
    here, report = project(store)
    with here:
        assert (report.events, report.quarantined, report.nul_runs) == (2, 2, 4)
        assert [line.reason for line in here.maintenance.quarantine()] == ["not_json", "torn"]
        first = here.get("2026-02-24.jsonl:300")
        assert first is not None, "it is known by the place of its first byte"
        assert first.raw.encode() == FOREIGN


def test_every_part_of_a_foreign_line_is_no_line(store: Path) -> None:
    parts = [NULS + FOREIGN[cut:] for cut in range(1, len(FOREIGN))]
    parts += [FOREIGN[:cut] + NULS for cut in range(1, len(FOREIGN))]
    write(store, b"".join(part + b"\n" for part in parts))
    here, report = project(store)
    with here:
        assert (report.events, report.quarantined) == (0, len(parts))


def test_nuls_inside_a_line_quarantine_it_and_no_neighbour(store: Path) -> None:
    segment = append(store, message("a"), message("b"), message("c"))
    first, second, third = segment.read_bytes().splitlines()
    for begin in range(1, len(second) - 1, 7):
        holed = second[:begin] + b"\0" + second[begin + 1 :]
        segment.write_bytes(b"\n".join([first, holed, third, b""]))
        here, _ = project(store)
        with here:
            assert {line.bytes for line in here.maintenance.quarantine()} == {len(second)}
            assert here.maintenance.status().events == 2


def test_an_append_behind_a_tail_of_nuls_begins_a_line_of_its_own(store: Path) -> None:
    """And its `at` is not lower than that of the last line that lives."""
    segment = append(store, message("a"))
    late = b'{"type":"message","id":"b","ts":"2026-02-24T08:00:01.000Z","at":"9998-02-24T08:00:01.250Z","v":1'
    late += b',"channel":"x","chat_id":"1","role":"user","content":"c"'
    late += b',"crc":"%08x"}' % zlib.crc32(late)
    with segment.open("ab") as file:
        file.write(NULS + late + NULS)
    before = segment.read_bytes()
    append(store, message("d"))
    after = segment.read_bytes()
    assert after.startswith(before + b"\n{")
    assert json.loads(after.splitlines()[-1])["at"] == "9998-02-24T08:00:01.250Z"
    here, report = project(store)
    with here:
        assert (report.events, report.quarantined, report.nul_runs) == (3, 0, 2)


@pytest.mark.parametrize("is_newest", [True, False])
def test_a_tail_of_nuls_waits_in_the_newest_segment_alone(store: Path, is_newest: bool) -> None:
    write(store, FOREIGN + b"\n" + NULS)
    if not is_newest:
        write(store, FOREIGN + b"\n", filename="2026-02-25.jsonl")
    here, report = project(store)
    with here:
        assert report.nul_runs == (0 if is_newest else 1)
        assert report.quarantined == 0
        assert here.maintenance.verify().problems == []
    here, again = project(store)
    with here:
        assert (again.events, again.nul_runs, again.notes) == (0, 0, [])


def test_reading_on_counts_nuls_as_a_replay_does(store: Path) -> None:
    """A tail of NULs behind a checkpoint, ended by a later append; then one in a sealed segment."""
    segment = append(store, message("a"))
    for step in range(3):
        with segment.open("ab") as file:
            file.write(NULS * (step + 1))
        here, _ = project(store)
        with here:
            assert here.maintenance.verify().problems == []
        append(store, message(f"b{step}"))
    segment.write_bytes(segment.read_bytes() + NULS)
    seal_unsealed_segments(store)
    write(store, FOREIGN + NULS + b"\n", filename="9998-02-24.jsonl")
    here, _ = project(store)
    with here:
        found = here.maintenance.verify()
        assert (found.digest, found.problems, len(found.nul_runs)) == (found.replayed, [], 5)
        here.maintenance.project(from_scratch=True, embed=False)
        assert here.maintenance.digest() == found.digest


def test_a_store_says_the_same_with_and_without_nuls(store: Path, tmp_path: Path) -> None:
    """The digest of contents leaves out what stands in files and says nothing."""
    line = FOREIGN.replace(b"{", b'{"id":"f",', 1)
    write(store, line + b"\n")
    write(tmp_path / "other", NULS + line + NULS + b"\n" + NULS + b"\n")
    with memlog.open(store) as one, memlog.open(tmp_path / "other") as other:
        assert one.maintenance.digest(content=True) == other.maintenance.digest(content=True)
        assert one.maintenance.digest() != other.maintenance.digest()


def test_nuls_across_the_blocks_of_reading_are_left_out(tmp_path: Path) -> None:
    """Reading goes by blocks of 1 MiB; a run may begin in one and end in another."""
    mib = 1024 * 1024
    data = b"x" * (mib - 5) + b"\0" * (mib + 9) + b"\n" + b"\0" * mib + b"y" + b"\0" * mib + b"\nz\n"
    path = write(tmp_path, data, "memory")
    with opening_segment_file(tmp_path / "log", "memory", path.name) as fd:
        first, second, third = read_lines(fd)
    assert (first.length, first.nuls_before, first.nuls_after) == (mib - 5, 0, mib + 9)
    start = 2 * mib + 5
    assert second == Line(start + mib, 2, 1, start + 2 * mib + 2, b"y", mib, mib)
    assert third == Line(second.end, 3, 1, second.end + 2, b"z")


def test_a_command_tells_where_nuls_stand(store: Path, run) -> None:
    write(store, FOREIGN + NULS + b"\n")
    assert "NUL runs     1" in run("project", "--no-embed").out
    found = run("verify")
    assert found.code == 0
    assert f"{CHAT}/2026-02-24.jsonl (byte {len(FOREIGN)}): 300 NUL bytes" in found.err
    assert run("verify", "--strict").code == 1
    assert run("status", "--json").json["nul_runs"] == 1


def test_a_sparse_hole_is_read_like_written_nuls(store: Path) -> None:
    path = write(store, FOREIGN + b"\n")
    os.truncate(path, 5_000_000)
    with path.open("ab") as file:
        file.write(b"\n" + FOREIGN + b"\n")
    here, report = project(store)
    with here:
        assert (report.events, report.nul_runs) == (2, 1)

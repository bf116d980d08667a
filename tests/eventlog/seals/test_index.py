"""The index of seals.jsonl finds the same seals as decoding every line does."""

import json
import zlib
from pathlib import Path
from typing import Any

from memlog.eventlog.files import disk
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments
from memlog.eventlog.integrity.seal_file import SealFiles, SealIndex, read_seals
from memlog.eventlog.integrity.seal_format import FIRST, Seal, compute_link_hash, encode_seal, parse_seals
from memlog.eventlog.integrity.seal_reader import read_sealed_lengths
from memlog.eventlog.log.writer import Log

NAMES = [
    ("memory", "2026-02-24.jsonl"),
    ('odd "name" \\ ü', "2026-02-24.jsonl"),
    ("core", "2026-02-25.jsonl"),
]


def chained(names: list[tuple[str, str]]) -> list[bytes]:
    lines, prev = [], FIRST
    for size, (stream, segment) in enumerate(names):
        lines.append(encode_seal(Seal(stream, segment, size, 1, FIRST, prev, "2026-02-26T00:00:00.000Z")))
        prev = compute_link_hash(lines[-1][:-1])
    return lines


def respelt(line: bytes) -> bytes:
    """The same seal with escapes and spaces, as another program may write it, with the right checksum."""
    members = json.loads(line)
    del members["crc"]
    body = json.dumps(members).replace('"memory"', '"\\u006demory"').encode()[:-1]
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def assert_same_seals(data: bytes) -> None:
    index, decoded = SealIndex(data), parse_seals(data, "seals.jsonl")
    names = {*NAMES, *decoded.valid_seals}
    assert {name: index.find_valid_seal(*name) for name in names} == {
        name: decoded.valid_seals.get(name) for name in names
    }
    for name in names:
        expected = [
            (line.offset, line.data) for line in decoded.lines if line.seal and line.seal.name == name
        ]
        assert [(place.offset, place.data) for place in index.find_seals(*name)] == expected
    last = index.find_last_seal()
    seals = [line.data for line in decoded.lines if line.seal is not None]
    assert (last and last.data) == (seals[-1] if seals else None)


def test_the_index_finds_the_seals_that_decoding_finds() -> None:
    for data in (
        b"",
        b"".join(chained(NAMES)),
        b"".join(chained(NAMES + NAMES)),
        b"".join(chained(NAMES))[:-1],
        b"\n\n".join(chained(NAMES)),
        b"\0\0".join([b"", *chained(NAMES), b""]),
        b"".join(line.replace(b"\n", b"\0\0\n") for line in chained(NAMES)),
        b"".join(map(respelt, chained(NAMES))),
        b'{"stream":"memory","segment":"2026-02-24.jsonl","bytes":1' + b"\n" + chained(NAMES)[0],
        b'{"stream":"memory\n' + chained(NAMES)[0],
        b"\xff\n" + b'{"type":"message"}\n' + b"".join(chained(NAMES)),
    ):
        assert_same_seals(data)


def test_every_flipped_bit_and_every_cut_gives_the_same_seals() -> None:
    whole = b"".join(chained(NAMES[:2]))
    for offset in range(len(whole)):
        assert_same_seals(whole[:offset])
        for bit in range(8):
            changed = bytearray(whole)
            changed[offset] ^= 1 << bit
            assert_same_seals(bytes(changed))


def test_lengths_of_sealed_segments_ignore_nul_bytes_around_a_line(log: Any, clock: Any) -> None:
    log.append("green")
    seal_unsealed_segments(log.store, lock_timeout=0.3)
    path = log.seals
    path.write_bytes(b"\0\0" + path.read_bytes().replace(b"\n", b"\0\n"))
    standing = read_seals(log.store / "log").valid_seals
    assert read_sealed_lengths(log.store / "log") == {name: said.bytes for name, said in standing.items()}
    assert len(standing) == 1


def test_sealing_many_streams_reads_no_seal_twice(tmp_path: Path, faulty_disk: Any) -> None:
    log = Log(tmp_path / "store", durability="os")
    log.append(
        {"type": "message", "channel": "c", "chat_id": str(number), "role": "user", "content": "green"}
        for number in range(50)
    )
    read, real_open, real_read, seals = 0, disk.open, disk.read, set()

    def opened(path: Any, flags: int, **options: Any) -> int:
        fd = real_open(path, flags, **options)
        (seals.add if Path(path).name.startswith("seals.") else seals.discard)(fd)
        return fd

    def count(fd: int, length: int, offset: int) -> bytes:
        nonlocal read
        data = real_read(fd, length, offset)
        read += len(data) if fd in seals else 0
        return data

    faulty_disk.open, faulty_disk.read = opened, count
    assert len(seal_unsealed_segments(log.store)) == 50
    # Two bytes a seal: whether a line ends before what is written, before and after writing.
    assert read <= 2 * 50
    assert read_seals(log.path).damaged_lines == []


def test_seals_of_another_process_are_seen_and_chained_to(log: Any, clock: Any) -> None:
    for name in ("2026-02-20.jsonl", "2026-02-21.jsonl", "2026-02-22.jsonl"):
        log.write_segment(name, b"{}\n")
    folder = log.store / "log"
    ours = SealFiles(folder)
    ours.seal_segments("memory", ["2026-02-20.jsonl"])
    SealFiles(folder).seal_segments("memory", ["2026-02-21.jsonl"])
    assert ours.seal_segments("memory", ["2026-02-21.jsonl"]) == []
    ours.seal_segments("memory", ["2026-02-22.jsonl"])
    assert read_seals(folder).damaged_lines == []
    assert len(read_seals(folder).lines) == 3


def test_seals_that_were_removed_are_made_again(log: Any, clock: Any) -> None:
    log.write_segment("2026-02-20.jsonl", b"{}\n")
    folder = log.store / "log"
    ours = SealFiles(folder)
    (first,) = ours.seal_segments("memory", ["2026-02-20.jsonl"])
    (folder / "seals.jsonl").unlink()
    assert ours.seal_segments("memory", ["2026-02-20.jsonl"]) == [first]
    assert read_seals(folder).damaged_lines == []

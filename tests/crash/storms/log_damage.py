"""Damage to the bytes of a segment that memlog wrote: every flipped bit is found, and no neighbour is lost.

A line is its bytes between two newlines, so only the line that a bit stands in has to be decoded again: its
neighbours are untouched where the newlines are. What a flip does to a newline is decoded whole.
"""

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import memlog
from memlog.eventlog.codec.decode import decode_line, is_blank_line
from memlog.eventlog.codec.upcast import Place
from memlog.eventlog.events import Event
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.reader import opening_segment_file, read_lines
from memlog.eventlog.log.streams import SegmentName

SEGMENT = 64 * 1024
CHAT = "conversations/x_1"
_NEWLINE = 10


class Written(NamedTuple):
    """A segment and what its lines say, by their bytes."""

    store: Path
    path: Path
    data: bytes

    @property
    def lines(self) -> list[bytes]:
        return self.data.splitlines()


def written(store: Path, seed: int, size: int = SEGMENT) -> Written:
    """A segment of memlog's own lines: short, long, with text of four scripts and with meta."""
    rng = random.Random(seed)
    words = ["tea", "harbour", "чай", "satama", "喝茶", '\\ "quoted"', "}{", "\u2028", "a" * 300]
    with memlog.open(store, durability="os") as log:
        while True:
            content = " ".join(rng.choices(words, k=rng.randint(0, 12)))
            meta = rng.choice([None, {"model": "one", "tokens_in": rng.randint(0, 999)}])
            (position,) = log.append(
                [memlog.Message(channel="x", chat_id="1", role="user", content=content, meta=meta)]
            )
            path = store / "log" / position.stream / position.segment
            if path.stat().st_size > size:
                break
    data = path.read_bytes()[:size]
    data = data[: data.rfind(b"\n") + 1]
    path.write_bytes(data)
    return Written(store, path, data)


def flips(segment: Written, offsets: Iterator[int] | range) -> tuple[int, list[str]]:
    """Flip each bit of the bytes at `offsets`, one at a time; return how many, and what was not found."""
    bounds = _bounds(segment.data)
    problems: list[str] = []
    flipped = 0
    line_no = 0
    for offset in offsets:
        while bounds[line_no][1] < offset:
            line_no += 1
        start, end = bounds[line_no]
        for bit in range(8):
            flipped += 1
            changed = segment.data[offset] ^ (1 << bit)
            if changed == _NEWLINE or offset == end:
                problems += _redrawn(segment, bounds, line_no, offset, changed)
                continue
            line = bytearray(segment.data[start:end])
            line[offset - start] = changed
            if not is_found(bytes(line), place_in(segment, start)):
                problems.append(f"bit {bit} of byte {offset} is not found")
    return flipped, problems


def place_in(segment: Written, offset: int) -> Place:
    """Of a line that begins at `offset`."""
    name = SegmentName.parse(segment.path.name)
    assert name is not None
    return Place(CHAT, name, offset)


def is_found(line: bytes, place: Place) -> bool:
    """Whether a changed line is no event, nor blank."""
    line = line.strip(b"\0")
    if is_blank_line(line):
        return False
    try:
        decode_line(line, place)
    except BadLine:
        return True
    return False


def _redrawn(
    segment: Written,
    bounds: list[tuple[int, int]],
    line_no: int,
    offset: int,
    changed: int,
) -> list[str]:
    """A newline that is gone welds two lines, one that has come parts one: neither half is an event."""
    start = bounds[line_no][0]
    end = bounds[min(line_no + 1, len(bounds) - 1)][1] if offset == bounds[line_no][1] else bounds[line_no][1]
    parts = segment.data[start:offset] + bytes([changed]) + segment.data[offset + 1 : end]
    # The segment's last newline: without it the line waits, and is neither lost nor changed.
    if offset == len(segment.data) - 1:
        return []
    events = sum(
        not is_found(part, place_in(segment, start)) for part in parts.split(b"\n") if not is_blank_line(part)
    )
    return [f"byte {offset} as {changed:#x}: {events} events"] if events else []


def _bounds(data: bytes) -> list[tuple[int, int]]:
    """Where each line begins, and where its newline stands."""
    found, start = [], 0
    for line in data.split(b"\n")[:-1]:
        found.append((start, start + len(line)))
        start += len(line) + 1
    return found


def events_of(segment: Written, data: bytes, *, tail_is_a_line: bool = False) -> list[Event | BadLine]:
    """What the lines of `data` say, read as a file in the place of the segment."""
    segment.path.write_bytes(data)
    found: list[Event | BadLine] = []
    with opening_segment_file(segment.store / "log", CHAT, segment.path.name) as fd:
        for line in read_lines(fd, tail_is_a_line=tail_is_a_line):
            assert line.data is not None
            if is_blank_line(line.data):
                continue
            try:
                found.append(decode_line(line.data, place_in(segment, line.offset)))
            except BadLine as bad:
                found.append(bad)
    return found


def projected(segment: Written, data: bytes) -> tuple[set[str], int]:
    """The contents that a replay of `data` has, and how many lines are quarantined."""
    segment.path.write_bytes(data)
    with memlog.open(segment.store, model=segment.store) as store:
        store.maintenance.project(embed=False)
        found = store.maintenance.verify()
        told = [problem for problem in found.problems if "not as memlog wrote" not in problem]
        assert told == [], told
        ids = {message.id for message in store.conversations.window(("x", "1"), last=10_000).messages}
    return ids, sum(found.quarantined.values())


def run(seconds: float, seed: int) -> dict[str, int]:
    """Segments without end, each with every bit flipped; some flips are projected end to end."""
    end, done, segments, replayed = time.monotonic() + seconds, 0, 0, 0
    rng = random.Random(seed)
    while time.monotonic() < end:
        folder = Path(tempfile.mkdtemp(prefix="memlog-log-damage-"))
        segment = written(folder / "store", rng.randrange(2**32))
        # In parts, so that the time is kept to.
        for start in range(0, len(segment.data), 4096):
            if time.monotonic() > end:
                break
            flipped, problems = flips(segment, range(start, min(start + 4096, len(segment.data))))
            assert problems == [], f"seed {seed}, kept in {folder}: {problems[:5]}"
            done += flipped
            replayed += _replay_one(segment, rng, f"seed {seed}, kept in {folder}")
        shutil.rmtree(folder)
        segments += 1
    return {"segments": segments, "bits flipped": done, "flips projected": replayed}


def _replay_one(segment: Written, rng: random.Random, where: str) -> int:
    data = bytearray(segment.data)
    offset = rng.randrange(len(data) - 1)
    data[offset] ^= 1 << rng.randrange(8)
    whole = {event.id for event in events_of(segment, segment.data) if not isinstance(event, BadLine)}
    touched = 2 if segment.data[offset] == _NEWLINE else 1
    ids, bad = projected(segment, bytes(data))
    assert len(whole - ids) <= touched, f"{where}: byte {offset}"
    assert bad >= 1, f"{where}: byte {offset}"
    return 1

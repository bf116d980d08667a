"""Every flipped bit and every cut of a segment of memlog's lines is found, and no neighbour is lost.

Lines that are swapped or removed whole are found where the segment is sealed.
"""

import random

import pytest

import memlog
from memlog.eventlog.integrity.seal_close import seal_unsealed_segments
from memlog.eventlog.integrity.seal_losses import find_altered_segments
from memlog.eventlog.log.quarantine import BadLine
from tests.crash.storms.log_damage import (
    CHAT,
    SEGMENT,
    Written,
    events_of,
    flips,
    is_found,
    place_in,
    projected,
    written,
)

SEED = 20260224


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A segment of 64 KiB."""
    return written(tmp_path_factory.mktemp("segment") / "store", SEED)


@pytest.fixture
def segment(whole: Written) -> Written:
    whole.path.write_bytes(whole.data)
    return whole


def ids(found: list[object]) -> list[str]:
    return [event.id for event in found if not isinstance(event, BadLine)]


def test_every_flipped_bit_of_a_segment_is_found(segment):
    """By the decoder: the line with the bit is no event, and its neighbours' bytes are untouched."""
    flipped, problems = flips(segment, range(len(segment.data)))
    assert problems == []
    assert flipped == 8 * len(segment.data) > 8 * (SEGMENT - 2000)


def test_flipped_bits_that_are_projected_cost_their_line_alone(segment):
    """End to end, 500 flips in groups of lines that do not touch, so that one replay shows many."""
    rng = random.Random(SEED)
    all_ids = ids(events_of(segment, segment.data))
    flipped = 0
    while flipped < 500:
        data, hit = bytearray(), set()
        for number, line in enumerate(segment.lines):
            data += line + b"\n"
            if number % 2:
                data[-2 - rng.randrange(len(line))] ^= 1 << rng.randrange(8)
                hit.add(number)
        lost = {all_ids[number] for number in hit}
        found, quarantined = projected(segment, bytes(data))
        assert found == set(all_ids) - lost
        assert quarantined >= len(lost)
        flipped += len(hit)


def test_a_segment_that_is_cut_anywhere_loses_the_cut_line_alone(segment):
    """At every byte: what stands before the cut is read as it was; the rest is none unless it is whole."""
    all_events = events_of(segment, segment.data)
    ends = [offset + 1 for offset, byte in enumerate(segment.data) if byte == 10]
    size = len(segment.data)
    kept = len(ends)
    events = [event.id for event in all_events]
    # Backwards; near each line's ends exactly, with the line before it; between them in steps, with all.
    for cut in range(size, -1, -1):
        while kept and ends[kept - 1] > cut:
            kept -= 1
        start = ends[kept - 1] if kept else 0
        if cut % 397 and cut - start > 2 and ends[min(kept, len(ends) - 1)] - cut > 2:
            assert is_found(segment.data[start:cut], place_in(segment, start)), cut
            continue
        first = max(0, kept - 1) if cut % 397 else 0
        begin = ends[first - 1] if first else 0
        found = events_of(segment, segment.data[begin:cut], tail_is_a_line=True)
        assert ids(found[: kept - first]) == events[first:kept], cut
        is_whole = cut > start and kept < len(ends) and cut == ends[kept] - 1
        assert len(found) == kept - first + (cut > start), cut
        assert len(ids(found)) == kept - first + is_whole, cut


def test_nuls_in_the_place_of_any_tail_cost_the_lines_they_are_in(segment):
    """The same length, zero-filled from some byte on, as ext4 leaves it."""
    all_ids = ids(events_of(segment, segment.data))
    ends = [offset + 1 for offset, byte in enumerate(segment.data) if byte == 10]
    for cut in range(0, len(segment.data), 211):
        data = segment.data[:cut] + bytes(len(segment.data) - cut)
        found = events_of(segment, data, tail_is_a_line=True)
        kept = sum(end <= cut for end in ends)
        assert ids(found) == all_ids[: kept + (cut in {end - 1 for end in ends})], cut


def test_nuls_in_the_place_of_any_page_cost_the_lines_they_are_in(segment):
    all_ids = ids(events_of(segment, segment.data))
    bounds = [0, *(offset + 1 for offset, byte in enumerate(segment.data) if byte == 10)]
    for page in range(0, len(segment.data), 4096):
        data = (
            segment.data[:page] + bytes(len(segment.data[page : page + 4096])) + segment.data[page + 4096 :]
        )
        outside = [
            event_id
            for event_id, start, end in zip(all_ids, bounds, bounds[1:], strict=False)
            if end - 1 <= page or start >= page + 4096 or (start < page and end <= page)
        ]
        found = ids(events_of(segment, data, tail_is_a_line=True))
        missing = [event_id for event_id in outside if event_id not in found]
        # Welded to the hole's beginning, the line whose first bytes stand right behind it may be lost.
        assert len(missing) <= 1, page
        assert set(found) <= set(all_ids)


def test_repeated_lines_are_counted_and_change_nothing(segment):
    everyone = set(ids(events_of(segment, segment.data)))
    lines = segment.lines
    again = lines + lines[::-1] + lines[:3]
    segment.path.write_bytes(b"\n".join(again) + b"\n")
    with memlog.open(segment.store, model=segment.store) as store:
        store.maintenance.project(embed=False)
        status = store.maintenance.status()
        assert {
            message.id for message in store.conversations.window(("x", "1"), last=10_000).messages
        } == everyone
        assert (status.events, status.duplicates, status.conflicts) == (len(lines), len(lines) + 3, 0)


def test_swapped_lines_say_the_same_in_an_unsealed_segment(segment):
    """Order comes from `ts`, not from the place of a line."""
    with memlog.open(segment.store, model=segment.store) as store:
        before = [message.id for message in store.conversations.window(("x", "1"), last=10_000).messages]
        lines = segment.lines
        random.Random(SEED).shuffle(lines)
        segment.path.write_bytes(b"\n".join(lines) + b"\n")
        after = [message.id for message in store.conversations.window(("x", "1"), last=10_000).messages]
        assert sorted(after) == sorted(before)
        assert store.maintenance.verify().problems == []


def test_lines_of_a_sealed_segment_that_are_swapped_removed_or_repeated_are_found(tmp_path):
    """Each line is whole, so that its crc says nothing: the seal does, whichever line it is."""
    segment = written(tmp_path / "store", SEED, size=16 * 1024)
    seal_unsealed_segments(segment.store)
    log, lines = segment.store / "log", segment.lines
    assert find_altered_segments(log) == []
    for number in range(len(lines)):
        swapped = [*lines[:number], *lines[number : number + 2][::-1], *lines[number + 2 :]]
        removed = lines[:number] + lines[number + 1 :]
        repeated = lines[: number + 1] + lines[number:]
        for changed in (swapped, removed, repeated):
            if changed == lines:  # the last line has none to be swapped with
                continue
            segment.path.write_bytes(b"\n".join(changed) + b"\n")
            (found,) = find_altered_segments(log)
            assert (found.seal.stream, found.seal.segment) == (CHAT, segment.path.name)
    segment.path.write_bytes(segment.data)
    assert find_altered_segments(log) == []


def test_flipped_bits_of_foreign_lines_in_a_sealed_segment_are_found(tmp_path):
    """A foreign line has no crc: three flips in five give another line that is whole."""
    store = tmp_path / "store"
    path = store / "log" / CHAT / "2026-02-24.jsonl"
    path.parent.mkdir(parents=True)
    data = b"".join(b'{"role":"user","content":"green tea %d"}\n' % number for number in range(20))
    path.write_bytes(data)
    seal_unsealed_segments(store)
    for bit in range(0, 8 * len(data), 3):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        assert len(find_altered_segments(store / "log")) == 1, bit

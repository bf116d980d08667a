"""Mutated lines for the decoder and for appending, mutated questions for the full text: none crashes either.

Inputs are made from the fixture logs by a seed, so that a run can be had again.
"""

import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import memlog
from memlog.eventlog.codec.decode import decode_line, encode_canonical
from memlog.eventlog.codec.encode import draft_event
from memlog.eventlog.codec.upcast import Place
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import Event
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.streams import SegmentName
from tests.support.month import make as make_month
from tests.support.places import FIXTURES

SECONDS = 0.25
"""Of processor time that one input may take. The slowest, 32 KB of brackets, takes 0.01, and 0.05 where
coverage is measured; what is quadratic takes seconds."""
MEGABYTES = 64
"""That one input may need."""

_TOKENS = (
    *(b"\0", b"\r", b"\n", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\\u0000", b"\\ud800"),
    *(b"\\", b'"', b"{", b"}", b"[", b"]", b",", b":", b"null", b"true", b"NaN", b"1e999", b"-0", b"1" * 400),
    *(b"9223372036854775808", b"-9223372036854775809", b'"at":"9999"', b',"crc":"00000000"}', b"[" * 200),
    *(b'{"":' * 70, b'"v":99', b'"type":null', b'"ts":"0000-00-00"', b'"id":""', b'"meta":{"a":1,"a":2}'),
)
_SYNTAX = (
    *('"', "'", "*", "^", "+", "-", ":", "(", ")", "{", "}", "NEAR(", "NEAR/", " AND ", " OR ", " NOT "),
    *("content:", "rowid:", ";--", "%", "_", "\\", "\0", "\n", "\u2028", "\u202e", "\ufeff", "\ud800", "😀"),
    *("喝茶", "чай", "a" * 3000, '""', "''", "x" * 70, "é", "e\u0301", "\x1b[31m", "(" * 300, '"' * 301),
)


def lines(seed: int) -> Iterator[bytes]:
    """Mutations of the lines of all fixture logs, without end."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as month:
        make_month(Path(month))
        paths = [*sorted(FIXTURES.rglob("*.jsonl")), *sorted(Path(month).rglob("*.jsonl"))]
        corpus = [line for path in paths for line in path.read_bytes().split(b"\n")]
    while True:
        line = rng.choice(corpus)
        for _ in range(rng.choice((1, 1, 2, 3, 8))):
            line = _mutated(rng, line, corpus)
        yield line.replace(b"\n", b" ")


def questions(seed: int) -> Iterator[str]:
    """What people type, and what nobody does, without end."""
    rng = random.Random(seed)
    words = ["backup", "harbour", "nightly", "the", "is", "E1234", "чай", "喝茶", "tea", ""]
    while True:
        parts = rng.choices(words, k=rng.randint(0, 6)) + rng.choices(_SYNTAX, k=rng.randint(0, 6))
        rng.shuffle(parts)
        yield rng.choice(("", " ")).join(parts)


def try_lines(inputs: Iterator[bytes], count: int) -> list[str]:
    """Decode `count` lines as they would stand in a log, and give them to an append; what went wrong."""
    place = Place("conversations/telegram_7", SegmentName("2026-02-24"), 17)
    return _watched(inputs, count, lambda line: _line_problem(line, place))


def _line_problem(line: bytes, place: Place) -> str | None:
    try:
        event: Event | None = decode_line(line, place)
        encode_canonical(event)
    except BadLine:
        pass
    try:
        drafted = draft_event(line)
    except BadInput:
        return None
    # What is accepted is read again as an event of the stream that it was written to.
    written = drafted.build_line("2026-02-24T10:15:00.000Z").removesuffix(b"\n")
    again = decode_line(written, Place(drafted.stream, SegmentName("2026-02-24"), 17))
    return None if again.id == drafted.id and b"\n" not in written else "it is another event once written"


def try_questions(store: memlog.Store, inputs: Iterator[str], count: int) -> list[str]:
    """Search for `count` questions, every fourth as FTS5's own syntax; what went wrong."""
    number = 0

    def problem(question: str) -> str | None:
        nonlocal number
        number += 1
        is_raw = number % 4 == 0
        try:
            store.search(question, mode="text", sync=False, is_raw=is_raw)
        except BadInput as error:
            return (
                None
                if is_raw or not question.strip() or "\ud800" in question
                else f"refused: {error.message}"
            )
        return None

    return _watched(inputs, count, problem)


def _measured(given: Any, problem: Callable[[Any], str | None]) -> tuple[str | None, float, float]:
    """What went wrong, in seconds of processor time, and by how many megabytes the peak of memory grew."""
    memory, started = _peak_megabytes(), time.thread_time()
    try:
        said = problem(given)
    except Exception as error:
        said = repr(error)
    return said, time.thread_time() - started, _peak_megabytes() - memory


def _watched(inputs: Iterator[Any], count: int, problem: Callable[[Any], str | None]) -> list[str]:
    problems = []
    for _ in range(count):
        given = next(inputs)
        said, taken, grown = _measured(given, problem)
        if taken > SECONDS:
            # An input that is slow is slow twice; a machine that was busy is not.
            taken = min(taken, _measured(given, problem)[1])
        if said is None and (taken > SECONDS or grown > MEGABYTES):
            said = f"{taken * 1000:.0f} ms, {grown:.0f} MB"
        if said is not None:
            problems.append(f"{given!r:.300}: {said}")
    return problems


def _peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def _mutated(rng: random.Random, line: bytes, corpus: list[bytes]) -> bytes:
    begin = rng.randint(0, len(line))
    end = min(len(line), begin + rng.choice((1, 1, 2, 8, 64)))
    match rng.randrange(7):
        case 0 if line:
            data = bytearray(line)
            data[begin % len(data)] ^= 1 << rng.randrange(8)
            return bytes(data)
        case 1:
            return line[:begin] + rng.choice(_TOKENS) + line[begin:]
        case 2:
            return line[:begin] + line[end:]
        case 3:
            return line[:begin] + line[begin:end] * rng.choice((2, 3, 500)) + line[end:]
        case 4:
            return line[:begin]
        case 5:
            other = rng.choice(corpus)
            return line[:begin] + other[rng.randint(0, len(other)) :]
    return line[:begin] + rng.randbytes(end - begin) + line[end:]


def searched_store(path: Path) -> memlog.Store:
    """A store with a fixture log, whose full text is asked."""
    shutil.copytree(FIXTURES / "week" / "log", path / "log")
    store = memlog.open(path, model=path)
    store.maintenance.project(embed=False)
    return store


def run(seconds: float, seed: int) -> dict[str, int]:
    """Fuzz for so long, half the time each."""
    end = time.monotonic() + seconds
    tried = {"lines": 0, "questions": 0}
    made, asked = lines(seed), questions(seed)
    folder = Path(tempfile.mkdtemp(prefix="memlog-fuzz-"))
    with searched_store(folder / "store") as store:
        while time.monotonic() < end:
            problems = try_lines(made, 2000) + try_questions(store, asked, 300)
            assert problems == [], f"seed {seed}: {problems[:5]}"
            tried["lines"] += 2000
            tried["questions"] += 300
    shutil.rmtree(folder)
    return tried

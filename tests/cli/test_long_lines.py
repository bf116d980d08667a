"""A line of 100 MB, which no reader and no writer takes into its memory."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.refusals import not_stored

MEMLOG = Path(sys.executable).parent / "memlog"
LENGTH = 100_000_000
PEAK = 200_000_000
GOOD = b'{"type":"memory_saved","content":"a neighbour"}\n'

# A process of its own: a child's peak begins with that of who forked it.
_MEASURE = """
import json, resource, subprocess, sys
with open(sys.argv[1], "rb") as given:
    done = subprocess.run(sys.argv[2:], stdin=given, capture_output=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps([done.returncode, done.stdout.decode(), done.stderr.decode(), peak]))
"""


class Measured(NamedTuple):
    """How a process ended, what it said, and the most memory that it had, in bytes."""

    code: int
    out: str
    err: str
    peak: int


@pytest.fixture
def measured(environment: dict[str, str]) -> Callable[..., Measured]:
    """Runs `memlog` with arguments, and a file as its input."""

    def run(*args: str, given: Path = Path("/dev/null")) -> Measured:
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, given, MEMLOG, *args],
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
            timeout=60,
        )
        return Measured(*json.loads(done.stdout))

    return run


LINES = {
    "empty objects": (b'{"type":"memory_saved","content":"a","x":[', b"{}," * 333_333),
    "no JSON": (b"", b"\x00" * 1_000_000),
    "one text": (b'{"type":"memory_saved","content":"', b"x" * 1_000_000),
}


@pytest.fixture
def long_lines(tmp_path: Path) -> Path:
    """A file that has each long line between two short ones."""
    path = tmp_path / "long"
    with path.open("wb") as file:
        file.write(GOOD)
        for begin, block in LINES.values():
            file.write(begin)
            for _ in range(LENGTH // len(block) + 1):
                file.write(block)
            file.write(b"\n" + GOOD)
    return path


def cut(path: Path) -> None:
    """Leave the last of the long lines without an end."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - len(GOOD) - 1)


@pytest.mark.parametrize("is_ended", [True, False], ids=["ended", "not ended"])
def test_a_line_of_100_mb_in_a_pipe_is_refused_in_little_memory(
    measured: Callable[..., Measured], long_lines: Path, store: Path, is_ended: bool
) -> None:
    if not is_ended:
        cut(long_lines)
    done = measured("append", given=long_lines)
    assert (done.code, done.err) == (65, not_stored(3).decode())
    first, *answers = [json.loads(line) for line in done.out.splitlines()]
    refusals = [(each["line"], each["error"]["code"]) for each in answers if "error" in each]
    assert refusals == [(2, "too_long"), (4, "too_long"), (6, "too_long")]
    assert len(answers) == 5 + is_ended
    assert (store / "log/memory" / first["segment"]).stat().st_size < 1000
    assert done.peak < PEAK


@pytest.mark.parametrize("is_ended", [True, False], ids=["ended", "not ended"])
def test_a_line_of_100_mb_in_a_segment_is_passed_over_in_little_memory(
    measured: Callable[..., Measured], long_lines: Path, store: Path, is_ended: bool
) -> None:
    """Without an end it is pending: a writer may still be at it."""
    if not is_ended:
        cut(long_lines)
    (store / "log/memory").mkdir(parents=True)
    segment = store / "log/memory/2026-02-24.jsonl"
    long_lines.rename(segment)
    done = measured("project", "--no-embed", "--json")
    assert (done.code, done.err) == (0, "")
    report = json.loads(done.out)
    # The others say the same: without an id of their own they are events of one memory.
    assert (report["rows"], report["quarantined"]) == ((4, 3) if is_ended else (3, 2))
    verified = measured("verify", "--json")
    assert verified.code == 0
    assert json.loads(verified.out)["quarantined"] == {"too_long": 2 + is_ended}
    listed = measured("quarantine")
    assert [measured.peak < PEAK for measured in (done, verified, listed)] == [True] * 3
    assert listed.out.count("too_long") == 2 + is_ended

"""How far long work is stands on a terminal, on stderr, and is gone at the end."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlog.cli.output.output import describe_progress

Run = Callable[..., Any]
PASSAGES = 40


@pytest.fixture
def long_log(segment: Run) -> Path:
    """A log whose projection takes more than one step."""
    said = '{"role":"user","content":"passage %d: %s"}\n'
    text = "".join(said % (each, "green tea and trains " * 10) for each in range(PASSAGES))
    path: Path = segment("conversations/x_1", text.encode())
    segment("conversations/x_2", b'{"role":"user","content":"tea"}\n')
    return path


def _left_on_the_line(shown: bytes) -> bytes:
    """What is to be read on the last line when all has been drawn over."""
    line = bytearray()
    for part in shown.replace(b"\r\n", b"\n").rpartition(b"\n")[2].split(b"\r"):
        line[: len(part)] = part
    return bytes(line).strip()


def _drawn(shown: bytes) -> list[tuple[str, int, int]]:
    """What was said, how much was done, of how much."""
    found = re.findall(rb"([a-z ]+): ([\d,]+) of ([\d,]+)", shown)
    return [(what.decode(), *(int(number.replace(b",", b"")) for number in rest)) for what, *rest in found]


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (("project",), "vectors"),
        (("embed", "--batch", "4"), "vectors"),
        (("verify",), "bytes read"),
        (("project", "--no-embed"), "bytes read"),
    ],
    ids=" ".join,
)
def test_progress_is_shown_on_a_terminal_and_gone_at_the_end(
    memlog: Run, with_terminal_errors: Run, long_log: Path, args: tuple[str, ...], what: str
) -> None:
    if args == ("verify",):  # a log alone needs no replay
        assert memlog("project", "--no-embed").code == 0
    done = with_terminal_errors(*args).end()
    assert done.code == 0
    drawn = [each for each in _drawn(done.err) if each[0] == what]
    assert drawn
    assert all(0 <= number < total for _, number, total in drawn)
    assert len({total for *_, total in drawn}) == 1
    assert _left_on_the_line(done.err) == b""
    assert b" of " not in done.out.replace(b"from the cache", b"")


def test_the_line_tells_speed_and_what_is_left(with_terminal_errors: Run, long_log: Path) -> None:
    done = with_terminal_errors("embed", "--batch", "2").end()
    assert re.search(rb"vectors: \d+ of 41, \d+ a second, 0:\d\d left", done.err)


def test_nothing_is_shown_without_a_terminal(memlog: Run, long_log: Path) -> None:
    memlog("status")
    assert memlog("embed").err == b""
    assert memlog("verify").err == b""
    assert memlog("project", "--from-scratch").err == b""
    assert memlog("append", input=b'{"type":"memory_saved","content":"tea"}\n').err == b""


def test_a_file_that_is_appended_shows_how_far_it_is(with_terminal_errors: Run, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"type":"memory_saved","content":"tea"}\n' * 40_000)
    with path.open("rb") as events:
        done = with_terminal_errors("append", "--durability", "os", stdin=events).end()
    assert (done.code, done.out.count(b"\n")) == (0, 40_000)
    assert ("bytes appended", path.stat().st_size) in [(what, total) for what, _, total in _drawn(done.err)]
    assert _left_on_the_line(done.err) == b""


def test_ctrl_c_clears_the_line_and_keeps_what_was_done(
    with_terminal_errors: Run, memlog: Run, long_log: Path
) -> None:
    memlog("project", "--no-embed")
    terminal = with_terminal_errors("embed", "--batch", "1")
    terminal.see(b"a second")
    terminal.process.send_signal(signal.SIGINT)
    done = terminal.end()
    assert (done.code, done.out) == (130, b"")
    *_, last, hint = done.err.splitlines()
    assert _left_on_the_line(last) == b"memlog: interrupted"
    assert hint.strip() == b"hint: what was done is kept"
    assert 0 < memlog("embed", "--json").json["computed"] < PASSAGES + 1


def test_stderr_that_is_closed_stops_no_work(memlog: Run, long_log: Path) -> None:
    assert (
        memlog("project", "--no-embed", "--json", preexec_fn=lambda: os.close(2)).json["rows"] == PASSAGES + 1
    )


def test_speed_counts_only_what_was_done_while_looking() -> None:
    assert describe_progress("vectors", 0, 5882, 0, 0.0) == "vectors: 0 of 5,882"
    assert (
        describe_progress("vectors", 1024, 5882, 24, 2.0) == "vectors: 1,024 of 5,882, 12 a second, 6:45 left"
    )


def test_quiet_shows_no_progress(with_terminal_errors: Run, long_log: Path) -> None:
    done = with_terminal_errors("--quiet", "project").end()
    assert (done.code, done.err) == (0, b"")

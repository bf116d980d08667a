"""Malformed invocations: each is refused with one line and a hint, and nothing is written."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from tests.cli.malformed import NO_NUMBERS, Malformed, malformed
from tests.support.command_tree import COMMANDS, called

Run = Callable[..., Any]

SEED, COUNT = 2026, 300
REFUSED = (2, 65)

invocations = malformed(SEED, COUNT)


@pytest.fixture
def log_hash(store: Path, segment: Run) -> Callable[[], str]:
    """A hash over the log of a store in which two messages stand."""
    said = {"type": "message", "id": "m1", "channel": "x", "chat_id": "1", "role": "user", "content": "tea"}
    segment("conversations/x_1", json.dumps(said).encode() + b"\n")

    def compute() -> str:
        found = hashlib.sha256()
        for path in sorted((store / "log").rglob("*")):
            found.update(str(path).encode() + (path.read_bytes() if path.is_file() else b""))
        return found.hexdigest()

    return compute


def check_refusal(invocation: Malformed, code: object, out: bytes, err: bytes) -> None:
    """One line and a hint, or one JSON object, and nothing else."""
    assert code in REFUSED, invocation
    assert out == b"", invocation
    lines = err.decode().split("\n")
    assert lines.pop() == "", invocation
    if err.startswith(b"{"):
        assert any("json" in arg for arg in invocation.args), invocation
        (line,) = lines
        error = json.loads(line)["error"]
        assert list(error) == ["code", "message", "hint", "retryable"], invocation
        assert error["message"], invocation
        assert error["hint"], invocation
    else:
        assert len(lines) == 2, invocation
        for line, beginning in zip(lines, ("memlog: ", "hint: "), strict=True):
            assert line.startswith(beginning), invocation
            assert len(line) > len(beginning), invocation
    assert "Traceback" not in err.decode(), invocation


def test_a_malformed_invocation_is_refused_with_one_line_and_a_hint(
    memlog_here: Run, log_hash: Callable[[], str], tmp_path: Path
) -> None:
    before = log_hash()
    for invocation in invocations:
        if invocation.args[:1] == ["hook"]:  # it exits with 0 in any case
            continue
        check_refusal(invocation, *memlog_here(*invocation.args, input=invocation.stdin, cwd=tmp_path))
        assert log_hash() == before, invocation


def test_a_malformed_invocation_is_refused_as_a_process_too(
    memlog: Run, log_hash: Callable[[], str], tmp_path: Path
) -> None:
    before = log_hash()
    for invocation in [each for each in invocations if each.args[:1] != ["hook"]][::20]:
        args = [os.fsencode(arg) for arg in invocation.args]
        check_refusal(invocation, *memlog(*args, input=invocation.stdin, cwd=tmp_path))
        assert log_hash() == before, invocation


def test_what_is_no_number_of_a_range_is_refused() -> None:
    """Also what is neither below nor above any bound, and what no database holds."""
    options = {
        f"{called(path)} {option.opts[-1]}": option
        for path, command in COMMANDS.items()
        for option in command.params
        if isinstance(option.type, click.types._NumberRangeBase)
    }
    assert options
    for name, option in options.items():
        for text in NO_NUMBERS:
            try:
                option.type.convert(text, option, None)
            except click.BadParameter:
                continue
            pytest.fail(f"{name} {text[:20]}")

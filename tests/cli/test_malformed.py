"""Malformed invocations: each is refused with one line and a hint, and nothing is written."""

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from memlog.cli import main as main_module
from tests.cli.malformed import FAULTS, NO_NUMBERS, Malformed, malformed
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


def check_refusal(args: list[str], code: int, out: bytes, err: bytes) -> None:
    """One line and a hint, or one JSON object, and nothing else."""
    assert code in REFUSED
    assert out == b""
    lines = err.decode().split("\n")
    assert lines.pop() == ""
    if err.startswith(b"{"):
        assert any("json" in arg for arg in args)
        (line,) = lines
        error = json.loads(line)["error"]
        assert list(error) == ["code", "message", "hint", "retryable"]
        assert error["message"]
        assert error["hint"]
    else:
        message, hint = lines
        assert message.startswith("memlog: ")
        assert hint.startswith("hint: ")
        assert len(message) > len("memlog: ")
        assert len(hint) > len("hint: ")
    assert "Traceback" not in err.decode()


@pytest.mark.parametrize("number", range(COUNT))
def test_a_malformed_invocation_is_refused_with_one_line_and_a_hint(
    number: int,
    store: Path,
    log_hash: Callable[[], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    invocation = invocations[number]
    before = log_hash()
    stdin = tmp_path / "stdin"
    stdin.write_bytes(invocation.stdin)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMLOG_STORE", str(store))
    monkeypatch.setattr(sys, "argv", ["memlog", *invocation.args])
    with stdin.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        with pytest.raises(SystemExit) as left:
            main_module.main()
    out, err = capfdbinary.readouterr()
    assert isinstance(left.value.code, int)
    check_refusal(invocation.args, left.value.code, out, err)
    assert log_hash() == before


@pytest.mark.parametrize("number", range(0, COUNT, 20))
def test_a_malformed_invocation_is_refused_as_a_process_too(
    number: int, memlog: Run, log_hash: Callable[[], str], tmp_path: Path
) -> None:
    invocation = invocations[number]
    before = log_hash()
    args = [os.fsencode(arg) for arg in invocation.args]
    code, out, err = memlog(*args, input=invocation.stdin, cwd=tmp_path)
    check_refusal(invocation.args, code, out, err)
    assert log_hash() == before


def _number_options() -> Iterator[Any]:
    for path, command in COMMANDS.items():
        for option in command.params:
            if isinstance(option.type, click.types._NumberRangeBase):
                yield pytest.param(option, id=f"{called(path)} {option.opts[-1]}")


@pytest.mark.parametrize("option", list(_number_options()))
def test_what_is_no_number_of_a_range_is_refused(option: click.Option) -> None:
    """Also what is neither below nor above any bound, and what no database holds."""
    for text in NO_NUMBERS:
        with pytest.raises(click.BadParameter):
            option.type.convert(text, option, None)


def test_every_kind_of_fault_is_among_them() -> None:
    counts = Counter(invocation.fault for invocation in invocations)
    assert len(counts) >= len(FAULTS)
    assert min(counts.values()) >= 2


def test_the_same_seed_gives_the_same_invocations() -> None:
    assert malformed(SEED, 20) == invocations[:20]
    assert all(isinstance(invocation, Malformed) for invocation in invocations)

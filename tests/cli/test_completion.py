"""Shell completion: the printed script, and the protocol by which it asks."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_tree import MEMLOG

Run = Callable[..., Any]


@pytest.fixture
def completed(memlog: Run) -> Callable[[str], list[str]]:
    """What the script of bash would be answered for a command line that ends at its last word."""

    def ask(line: str) -> list[str]:
        words = line.split(" ")
        env = {"_MEMLOG_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        done = memlog(env=env)
        assert (done.code, done.err) == (0, b"")
        return [answer.partition(",")[2] for answer in done.out.decode().splitlines()]

    return ask


COMPLETED = {
    "memlog co": ["completion", "config", "context", "core"],
    "memlog core se": ["set"],
    "memlog append session": ["session_break"],
    "memlog query tea --mode ": ["hybrid", "text", "vector"],
    "memlog query tea --format j": ["json", "jsonl"],
    "memlog core get a": ["agent"],
    "memlog log tail --fo": ["--follow"],
    "memlog completion ": ["bash", "zsh", "fish"],
}


def test_commands_options_and_choices_are_completed(completed: Callable[[str], list[str]]) -> None:
    assert {line: completed(line) for line in COMPLETED} == COMPLETED


def test_completing_writes_nothing(completed: Callable[[str], list[str]], store: Path) -> None:
    completed("memlog --store elsewhere query ")
    assert not store.exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_its_shell_reads(memlog: Run, shell: str) -> None:
    done = memlog("completion", shell)
    assert b"_MEMLOG_COMPLETE" in done.out
    assert memlog("completion", shell, "--json").json == {
        "shell": shell,
        "script": done.out.decode().removesuffix("\n"),
    }
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    read = subprocess.run([shell, "-n"], input=done.out, capture_output=True, check=False)
    assert (read.returncode, read.stderr) == (0, b"")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_with_the_script(memlog: Run, environment: dict[str, str], tmp_path: Path) -> None:
    script = memlog("completion", "bash").out.decode()
    asked = "COMP_WORDS=(memlog core g); COMP_CWORD=2; _memlog_completion memlog; echo ${COMPREPLY[@]}"
    path = {"PATH": f"{MEMLOG.parent}:{environment['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{asked}"], env=environment | path, capture_output=True, check=False
    )
    assert (done.stdout, done.stderr) == (b"get\n", b"")


def test_another_shell_is_refused(memlog: Run) -> None:
    assert memlog("completion", "tcsh", "--json").error["code"] == "usage"

"""Ctrl-C and SIGTERM end every command within a second, and leave no process and nothing half done."""

import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog as memlog_package
from tests.support.command_tree import MEMLOG
from tests.support.hostile_files import SLOW_NAME, SLOW_RULES, html_of_many_attributes
from tests.support.watched import until

Run = Callable[..., Any]

_MESSAGES = 12_000
_WORDS = "tea water kettle train river stone market winter summer light paper garden window".split()
_WITHIN = 1.0
"""Seconds, as promised; a busy machine may need ten times as long."""

LONG = {
    "project": ["project", "--from-scratch"],
    "verify": ["verify"],
    "embed": ["embed"],
    "an append that waits": ["append"],
    "a page that takes long": ["docs", "add", "slow"],
    "rules that take for ever": ["docs", "add", "rules"],
    "a watch that reads a page": ["watch"],
    "a query that builds the read model": ["query", "--mode", "text", "tea"],
}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store that keeps a command busy, and documents that keep it busy for ever."""
    folder = tmp_path_factory.mktemp("large")
    chat = folder / "store/log/conversations/telegram_7"
    chat.mkdir(parents=True)
    chance = random.Random(7)
    with (chat / "2026-02-24.jsonl").open("w") as segment:
        for number in range(_MESSAGES):
            content = " ".join(chance.choices(_WORDS, k=20))
            line = {"id": f"m{number}", "role": "user", "content": content, "type": None}
            meta = {"channel": "telegram", "chat_id": "7"}
            segment.write(json.dumps(line | {"ts": "2026-02-24T10:15:00.000Z", "meta": meta}) + "\n")
    for name, file, data in (
        ("slow", "slow.html", html_of_many_attributes(150_000)),
        ("rules", ".gitignore", SLOW_RULES.encode()),
        ("rules", SLOW_NAME, b"x"),
    ):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / file).write_bytes(data)
    with memlog_package.open(folder / "store") as store:
        store.append([memlog_package.SourceRegistered(source_id="page", root=str(folder / "slow"))])
        store.search("tea", mode="text")
    return folder


def processes_of(session: int) -> list[str]:
    """The commands of the processes of a session that have not ended."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = each.read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                found.append((each.parent / "cmdline").read_text())
        except OSError:
            continue
    return found


def begun(folder: Path, environment: dict[str, str], args: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [MEMLOG, "--store", folder / "store", *args],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.deep
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("what", LONG)
def test_a_signal_ends_a_long_command_within_a_second(
    large: Path, environment: dict[str, str], what: str, number: signal.Signals
) -> None:
    if "page" in what:
        pytest.importorskip("lxml")
    if LONG[what][0] == "query":
        shutil.rmtree(large / "store/model", ignore_errors=True)
    process = begun(large, environment, LONG[what])
    until(lambda: len(list(Path(f"/proc/{process.pid}/task").iterdir())) > 1)  # a thread waits for signals
    time.sleep(random.uniform(0, 0.4))
    assert process.poll() is None, process.communicate()
    process.send_signal(number)
    sent = time.monotonic()
    _, errors = process.communicate(timeout=60)
    took = time.monotonic() - sent
    assert took < 10 * _WITHIN
    stopped = 0 if LONG[what] == ["watch"] else -signal.SIGTERM
    assert process.returncode == (130 if number == signal.SIGINT else stopped)
    assert b"Traceback" not in errors, errors.decode()
    until(lambda: processes_of(process.pid) == [])


@pytest.mark.deep
def test_after_all_of_them_the_store_is_whole(memlog: Run, large: Path) -> None:
    """Which runs behind the others, or of a store that nobody has touched."""
    found = memlog("--store", large / "store", "query", "--mode", "text", "--json", "tea", cwd=large)
    assert (found.code, len(found.json["hits"])) == (0, 10)
    assert memlog("--store", large / "store", "quarantine", "--json", cwd=large).json["lines"] == []

"""Large sources: what an import remembers of them is on disk, and a kill or an archive changes nothing."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memlog
from memlog.service.exchange.disk_table import DiskTable

IMPORTS = (
    "import re, sys, memlog\n"
    "with memlog.open(sys.argv[1], create=True) as store:\n"
    "    report = store.exchange.import_from('claude-code', [sys.argv[2]])\n"
    "status = open('/proc/self/status').read()\n"  # ru_maxrss also counts the process that forked it
    "print(report.appended, int(re.search(r'VmHWM:\\s+(\\d+) kB', status)[1]) // 1024)\n"
)


def line(number: int, content: Any, session: str = "s") -> str:
    told = {
        "type": "user" if number % 2 else "assistant",
        "uuid": f"{number:08x}-1111-4111-8111-111111111111",
        "sessionId": session,
        "timestamp": f"2026-09-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z",
        "message": {"content": content},
    }
    return json.dumps(told) + "\n"


def test_lines_of_9_mb_take_bounded_memory(tmp_path: Path) -> None:
    with (tmp_path / "long.jsonl").open("w") as file:
        file.writelines(line(number, f"{number} " + "tea " * 2_250_000) for number in range(8))
    command = [sys.executable, "-c", IMPORTS, tmp_path / "store", tmp_path / "long.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    appended, megabytes = map(int, done.stdout.split())
    assert appended == 8
    assert megabytes < 300


@pytest.mark.parametrize("count", [10, 120_000])
def test_a_table_on_disk_keeps_the_last_value_of_each_id(count: int) -> None:
    def names() -> Iterator[str]:
        return (f"claude-code/{number}" for number in range(count))

    table = DiskTable()
    assert all(table.add(name) for name in names())
    assert not any(table.add(name) for name in names())
    for name in names():
        table[name] = name
    assert all(table.get(name) == name for name in names())
    assert table.get("claude-code/-1") is None
    assert sorted(map(str, table.values())) == sorted(names())


def test_ten_kills_leave_what_one_run_leaves(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for session in range(20):
        with (source / f"{session}.jsonl").open("w") as file:
            file.writelines(
                line(n, f"cup {n}", f"{session}") for n in range(session * 500, session * 500 + 500)
            )
    for number in range(10):
        process = subprocess.Popen([sys.executable, "-c", IMPORTS, tmp_path / "killed", source])
        _wait_for_events(tmp_path / "killed", 900 * number, process)
        process.kill()
        process.wait(60)
    digests = []
    for name in ("killed", "whole"):
        with memlog.open(tmp_path / name, create=True) as store:
            report = store.exchange.import_from("claude-code", [source])
            assert report.appended + report.known == report.events == 10_000
            assert store.maintenance.stats().events_by_type == {"chat_described": 20, "message": 10_000}
            digests.append(store.maintenance.digest(content=True))
    assert digests[0] == digests[1]


def _wait_for_events(store: Path, count: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        lines = sum(path.read_bytes().count(b"\n") for path in store.glob("log/conversations/*/*.jsonl"))
        if lines > count:
            return
        time.sleep(0.01)

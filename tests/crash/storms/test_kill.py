"""kill -9, 200 times: what was acknowledged stays, once, and whoever comes next goes on."""

import json
import os
import subprocess
import sys
from typing import Any

from tests.support.in_memory import memory
from tests.support.places import ROOT

KILLS = 200
SEED = os.environ.get("MEMLOG_STORM_SEED", "20260224")


def test_no_kill_loses_or_doubles_an_acknowledged_event_or_stops_the_next_run():
    """After 200 kills every check of the store is well; the report names the seed and the kept folder.

    One test and no fixture: where tests are shared out, each process would make a storm of its own.
    """
    report = storm()
    assert report["problems"] == [], f"MEMLOG_STORM_SEED={SEED}; the store is kept in {report['folder']}"
    assert sum(report["kills"].values()) >= KILLS
    assert report["checks"] >= KILLS // 50
    check_that_it_hit_processes_at_work(report)
    check_that_installed_commands_were_killed_too(report["kills"])


def storm() -> dict[str, Any]:
    """In a process of its own, since this one may have threads and must not fork."""
    arguments = ["--seconds", "240", "--seed", SEED, "--kills", str(KILLS), "--json"]
    where = {"TMPDIR": str(folder)} if (folder := memory()) else {}
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.storms.kill", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        timeout=400,
        check=False,
        env=os.environ | where,
    )
    assert done.stdout, f"the storm itself failed with {done.returncode}; MEMLOG_STORM_SEED={SEED}"
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def check_that_it_hit_processes_at_work(report: dict[str, Any]) -> None:
    """Kills leave events that were not acknowledged, lines that are cut short, and lines to be repeated."""
    assert report["acknowledged"] > 1000
    assert report["unanswered"] > 20
    assert report["torn"] + report["doubled_lines"] > 0
    assert report["projections"] > 5
    assert report["queries"] > 10


def check_that_installed_commands_were_killed_too(kills: dict[str, int]) -> None:
    """At least every tenth writer, and every tenth projector, is the installed command."""
    projectors = {kind: number for kind, number in kills.items() if "project" in kind}
    writers = sum(kills.values()) - sum(projectors.values())
    assert kills["memlog append"] >= writers / 10
    assert kills["memlog project"] >= sum(projectors.values()) / 10

"""kill -9, 200 times: what was acknowledged stays, once, and whoever comes next goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = 200
SEED = os.environ.get("MEMLOG_STORM_SEED", "20260224")


@pytest.fixture(scope="module")
def report():
    """A storm in a process of its own, since this one may have threads and must not fork."""
    script = Path(__file__).parent / "kill.py"
    arguments = ["--seconds", "240", "--seed", SEED, "--kills", str(KILLS), "--json"]
    done = subprocess.run(
        [sys.executable, script, *arguments], stdout=subprocess.PIPE, timeout=400, check=False
    )
    assert done.stdout, f"the storm itself failed with {done.returncode}; MEMLOG_STORM_SEED={SEED}"
    return json.loads(done.stdout)


def test_no_kill_loses_or_doubles_an_acknowledged_event_or_stops_the_next_run(report):
    """After 200 kills every check of the store is well; the report names the seed and the kept folder."""
    assert report["problems"] == [], f"MEMLOG_STORM_SEED={SEED}; the store is kept in {report['folder']}"
    assert sum(report["kills"].values()) >= KILLS
    assert report["checks"] >= KILLS // 25


def test_the_storm_hits_processes_at_work(report):
    """Kills leave events that were not acknowledged, lines that are cut short, and lines to be repeated."""
    assert report["acknowledged"] > 1000
    assert report["unanswered"] > 20
    assert report["torn"] + report["doubled_lines"] > 0
    assert report["projections"] > 5
    assert report["queries"] > 10


def test_real_commands_are_killed_too(report):
    """At least every tenth writer, and every tenth projector, is the installed command."""
    kills = report["kills"]
    writers = sum(number for kind, number in kills.items() if "writer" in kind) + kills["memlog append"]
    projectors = kills["forked projector"] + kills["memlog project"]
    assert kills["memlog append"] >= writers / 10
    assert kills["memlog project"] >= projectors / 10

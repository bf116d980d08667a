"""Ctrl-C is not kept from ending a command by the code that it meets."""

import os
import signal
import subprocess
import sys
import time

import pytest

_PROGRAM = """
import sys
sys.argv = ["memlog", "status"]
from memlog.cli import main, maintenance

def work():
{work}

def said(*args, **kwargs):
    print("begun", flush=True)
    work()
    print("went on", flush=True)

maintenance.status.callback = said
main.main()
"""
_C_CODE = "    import sqlite3; sqlite3.connect(':memory:').execute({sql!r}).fetchall()"
_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
WORK = {
    "a statement": _C_CODE.format(sql=_ENDLESS),
    "what catches all": """
    import time
    try:
        time.sleep(5)
    except BaseException:
        pass
""",
    "what turns it into another error": """
    import time
    try:
        time.sleep(5)
    except BaseException:
        raise RuntimeError("a callback failed")
""",
    "a loop that never ends": """
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
""",
    "an import": """
    import pathlib
    pathlib.Path("slow.py").write_text("import time\\ntime.sleep(5)")
    import slow
""",
}


@pytest.mark.deep
@pytest.mark.parametrize("what", WORK)
def test_ctrl_c_ends_what_keeps_it_to_itself(
    environment: dict[str, str], tmp_path: os.PathLike[str], what: str
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM.format(work=WORK[what])],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    _, errors = process.communicate(timeout=20)
    assert time.monotonic() - sent < 2
    assert (process.returncode, errors.splitlines()[0].strip()) in [(130, b"memlog: interrupted"), (130, b"")]
    assert b"Traceback" not in errors
    assert b"a fault of memlog" not in errors
    assert b"memlog: interrupted" in errors

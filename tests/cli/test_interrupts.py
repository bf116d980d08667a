"""Ctrl-C is not kept from ending a command by the code that it meets."""

import signal
import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import sys
sys.argv = ["memlog", "status"]
from memlog.cli.commands import maintenance
from memlog.cli.process import main

def work():
{work}

def begun():
    print("begun", flush=True)

def said(*args, **kwargs):
    work()
    print("went on", flush=True)

maintenance.status.callback = said
main.main()
"""
_C_CODE = "    import sqlite3; db = sqlite3.connect(':memory:'); begun(); db.execute({sql!r}).fetchall()"
_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
WORK = {
    "a statement": _C_CODE.format(sql=_ENDLESS),
    "what catches all": """
    import time
    try:
        begun()
        time.sleep(1000)
    except BaseException:
        pass
""",
    "what turns it into another error": """
    import time
    try:
        begun()
        time.sleep(1000)
    except BaseException:
        raise RuntimeError("a callback failed")
""",
    "a loop that never ends": """
    begun()
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
""",
    "an import": """
    import pathlib
    pathlib.Path("slow.py").write_text("import time\\nprint('begun', flush=True)\\ntime.sleep(1000)")
    import slow
""",
}


def test_ctrl_c_ends_what_keeps_it_to_itself(environment: dict[str, str], tmp_path: Path) -> None:
    processes = {what: begun(code, environment, tmp_path) for what, code in WORK.items()}
    for process in processes.values():
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGINT)
    for what, process in processes.items():
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130, what
        assert errors.splitlines()[0].strip() in (b"memlog: interrupted", b""), (what, errors)
        assert b"Traceback" not in errors, (what, errors)
        assert b"a bug in memlog" not in errors, (what, errors)
        assert b"memlog: interrupted" in errors, (what, errors)


def begun(code: str, environment: dict[str, str], folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM.format(work=code)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )

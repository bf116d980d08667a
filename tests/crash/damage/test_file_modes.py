"""Every file and folder of a store is for its owner alone, and usable, whatever the umask is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Every stage of a store's life by the commands themselves, each with what stands after it, while another
# reader has the read model open, so that SQLite's side files stand.
LIFE = """
import json, os, stat, sys
from pathlib import Path
import click, memlog
from memlog.cli.process.main import memlog_command as command

os.umask(int(sys.argv[1], 8))
store, notes = Path(sys.argv[2]), Path(sys.argv[3])
seen = {}

def look(stage):
    for path in [store, *store.rglob("*")]:
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode != (0o700 if path.is_dir() else 0o600):
            seen.setdefault(f"{stage}: {path.relative_to(store.parent)}", oct(mode))

def memlog_command(*args):
    try:
        code = command.main(["--store", str(store), *args], standalone_mode=False)
    except BaseException as error:
        sys.exit(f"{args}: {error!r}")
    if code:
        sys.exit(f"{args}: exit {code}")
    look(args[0])

memlog_command("init")
memlog_command("append", "message", "--chat", "x:1", "--role", "user", "--content", "green tea")
reader = memlog.open(store)
memlog_command("project")
reader.search("tea")
memlog_command("query", "tea")
memlog_command("memory", "save", "--content", "Anna likes tea")
memlog_command("embed")
memlog_command("core", "set", "user", "name", "Anna")
memlog_command("docs", "add", str(notes))
memlog_command("project", "--from-scratch")
reader.search("tea")
memlog_command("verify")
memlog_command("status")
for path in (store / "model").glob("*.db-*"):
    seen.setdefault("side files", []).append(path.suffix)
os.umask(0o077)
sys.stderr.write(json.dumps(seen) + "\\n")
"""

FIRST = """
import os, sys
os.umask(int(sys.argv[1], 8))
import memlog
with memlog.open(sys.argv[2]) as store:
    store.append([{"type": "message", "id": sys.argv[3], "channel": "x", "chat_id": "1", "role": "user",
                   "content": "tea"}])
    assert len(store.search("tea", mode="text").hits) == int(sys.argv[3])
"""


@pytest.mark.parametrize("umask", ["0", "377", "777"])
def test_every_file_is_private_and_usable_at_every_stage(
    tmp_path: Path, bound_by_modes: dict[str, object], umask: str
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "tea.md").write_text("# Tea\n\nGreen.\n")
    done = subprocess.run(
        [sys.executable, "-c", LIFE, umask, tmp_path / "below" / "store", notes],
        capture_output=True,
        timeout=120,
        check=False,
        **bound_by_modes,
    )
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stderr.splitlines()[-1])
    assert set(seen.pop("side files")) >= {".db-wal", ".db-shm"}
    assert seen == {}


def test_another_process_goes_on_with_what_was_made_under_any_umask(
    tmp_path: Path, bound_by_modes: dict[str, object]
) -> None:
    for number, umask in enumerate(("777", "0", "377"), start=1):
        arguments = [sys.executable, "-c", FIRST, umask, tmp_path / "store", str(number)]
        subprocess.run(arguments, check=True, timeout=60, **bound_by_modes)

"""Nothing gets past the one place where memlog touches the files of the log and of the generations."""

import ast
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from memlog.eventlog.files import disk, file_io
from tests.support.places import ROOT

BEHIND_THE_DISK = sorted(
    {*ROOT.glob("eventlog/**/*.py")} - {ROOT / "eventlog/files/disk.py"}
    | {ROOT / "projector" / name for name in ("core_view.py", "embedding/cache.py", "lifecycle.py")}
)
HARMLESS = {
    *("os.DirEntry", "os.register_at_fork", "os.stat_result", "os.strerror", "os.urandom"),
    # Who this process is, and what it may do.
    *("os.R_OK", "os.W_OK", "os.X_OK", "os.access", "os.geteuid", "os.initgroups", "os.setgroups"),
    *("os.setegid", "os.seteuid", "os.setgid", "os.setuid", "os.__file__", "os.fsencode"),
}
TOUCHING = {
    *("chmod", "exists", "glob", "hardlink_to", "is_dir", "is_symlink", "iterdir", "lstat", "mkdir"),
    *("read_bytes", "read_text", "rglob", "rmdir", "symlink_to", "touch", "write_bytes", "write_text"),
}
"""Methods of Path; `replace`, `open`, `stat` and `unlink` are looked for by themselves."""


ELSEWHERE = {"locks.py": ["read_text"], "copy_identity.py": ["os.uname"], "sections.py": ["read_text"]}
"""/proc, the host's name and the file of a key are no files of the log."""


def touched(tree: ast.AST) -> Iterator[str]:
    """What the code calls by itself to touch a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in ("shutil", "fcntl", "io"))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            yield "open"
        if isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if owner == "os" and f"os.{node.attr}" not in HARMLESS:
                yield f"os.{node.attr}"
            if owner == "entry":  # of a listing, which came through the disk
                continue
            if node.attr in TOUCHING or (node.attr in ("open", "unlink", "stat") and owner != "disk"):
                yield node.attr


def test_files_are_touched_through_the_disk_alone() -> None:
    for path in BEHIND_THE_DISK:
        assert list(touched(ast.parse(path.read_text()))) == ELSEWHERE.get(path.name, []), path


def test_every_call_can_be_stood_in_for() -> None:
    functions = {
        name
        for name, value in vars(disk).items()
        if not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == disk.__name__
    }
    assert functions == set(disk.CALLS)


def test_what_is_made_is_for_its_owner_alone_from_the_first_byte(tmp_path: Path) -> None:
    disk.make_folder(tmp_path / "folder")
    disk.close(disk.open(tmp_path / "folder" / "file", disk.APPEND | disk.NEW))
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "folder" / "file").stat().st_mode) == 0o600


@pytest.mark.parametrize("umask", [0o000, 0o377, 0o777], ids=oct)
def test_what_is_made_can_be_used_by_its_owner_whatever_the_umask_takes(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        file_io.make_folder(tmp_path / "folder")
        disk.close(file_io.open_file(tmp_path / "folder" / "file", disk.APPEND | disk.NEW))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "folder" / "file").stat().st_mode) == 0o600

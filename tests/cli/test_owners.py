"""Another user's files: root leaves none in a user's store, and what cannot be read stops nothing else."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memlog as package
from tests.cli.conftest import Finished

Run = Callable[..., Finished]
SOMEBODY = 12345
PROGRAM = "import sys; sys.path[:0] = {path}; from memlog.cli.process.main import main; main()"


def append(memlog: Run, store: Path, chat: int, **options: Any) -> Finished:
    content = f"the kettle of chat {chat}"
    given = ("--chat", f"cli:{chat}", "--role", "user", "--content", content)
    return memlog("--store", store, "append", "message", *given, **options)


@pytest.fixture
def kettles(memlog: Run, store: Path) -> Path:
    for chat in (1, 2):
        append(memlog, store, chat)
    memlog("--store", store, "context", "kettle")
    memlog("--store", store, "seal")
    return store


def refuse(store: Path, pattern: str) -> None:
    """Let files and folders be as another user's: root gives up what lets it read them all the same."""
    found = list(store.glob(pattern))
    assert found
    for path in found:
        path.chmod(0)


def bring_back(store: Path) -> None:
    for path in store.glob("*.unreadable-*"):
        path.chmod(0o700)


def test_another_users_stream_is_left_out_and_told(
    memlog: Run, kettles: Path, bound_by_modes: dict[str, Any]
) -> None:
    for pattern in ("log/conversations/cli_2", "log/conversations/cli_2/*", "log/conversations"):
        (kettles / "model/CURRENT").unlink(missing_ok=True)
        refuse(kettles, pattern)
        if pattern != "log/conversations":
            append(memlog, kettles, 1, **bound_by_modes)
        found = memlog("--store", kettles, "query", "kettle", **bound_by_modes)
        verified = memlog("--store", kettles, "verify", **bound_by_modes)
        assert (found.code, b"Permission denied" in found.err) == (0, True), pattern
        assert b"chat 2" not in found.out
        assert (b"chat 1" in found.out) == (pattern != "log/conversations")
        assert verified.code != 0
        for path in (kettles / "log/conversations", *kettles.glob("log/conversations/**/*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
        found = memlog("--store", kettles, "query", "kettle", **bound_by_modes)
        assert (found.err, b"chat 1" in found.out, b"chat 2" in found.out) == (b"", True, True)


@pytest.mark.parametrize("pattern", ["model", "model/CURRENT", "model/*.db", "model/*", "cache", "cache/*"])
def test_another_users_read_model_is_left_out_and_made_anew(
    memlog: Run, kettles: Path, bound_by_modes: dict[str, Any], pattern: str
) -> None:
    refuse(kettles, pattern)
    append(memlog, kettles, 3, **bound_by_modes)
    found = memlog("--store", kettles, "query", "kettle", **bound_by_modes)
    assert (found.code, found.out.count(b"the kettle of chat")) == (0, 3)
    assert b"unable to open" in found.err or b"Permission denied" in found.err
    bring_back(kettles)


@pytest.mark.parametrize(
    "pattern", ["model", "cache", "writers", "watermarks.jsonl", "store.key", "*.lock", "*/*.lock"]
)
def test_doctor_removes_what_another_user_has_made_unreadable(
    memlog: Run, kettles: Path, bound_by_modes: dict[str, Any], pattern: str
) -> None:
    refuse(kettles, pattern)
    assert memlog("--store", kettles, "doctor", **bound_by_modes).code == 1
    fixed = memlog("--store", kettles, "doctor", "--fix", **bound_by_modes)
    assert (fixed.code, b"Permission denied" in fixed.out) == (0, True)
    assert append(memlog, kettles, 3, **bound_by_modes).code == 0
    found = memlog("--store", kettles, "query", "kettle", **bound_by_modes)
    assert (found.code, found.out.count(b"the kettle of chat")) == (0, 3)
    bring_back(kettles)


def of_root(*arguments: str | Path, user: int | None = None) -> "subprocess.CompletedProcess[bytes]":
    """Run `memlog` as root, or as a user, with a Python that every user may read."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    readable = [path for path in sys.path if "site-packages" in path or path.endswith(".pkg")]
    command = [python, "-c", PROGRAM.format(path=readable), *arguments]
    try:
        tried = subprocess.run([python, "-c", PROGRAM.format(path=readable), "--version"], user=SOMEBODY)
    except OSError:
        pytest.skip("no Python of this version that every user may read")
    if tried.returncode:
        pytest.skip("this memlog is not one that every user may read")
    return subprocess.run(command, capture_output=True, user=user, timeout=120)


@pytest.fixture
def home() -> Iterator[Path]:
    """A user's folder, which that user can reach: pytest's own are below one of root's."""
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() == 0:
            os.chown(folder, SOMEBODY, SOMEBODY)
        yield Path(folder)


def test_root_works_in_a_users_store_as_that_user(home: Path) -> None:
    store = home / "store"
    message = ("append", "message", "--chat", "cli:1", "--role", "user", "--content", "the kettle")
    for arguments in (message, ("query", "kettle"), ("doctor", "--fix"), ("project", "--from-scratch")):
        assert of_root("--store", store, *arguments).returncode == 0
    assert {path.stat().st_uid for path in home.rglob("*")} == {SOMEBODY}
    found = of_root("--store", store, "query", "kettle", user=SOMEBODY)
    assert (found.returncode, found.stderr, b"the kettle" in found.stdout) == (0, b"", True)
    with pytest.raises(package.LogError, match="belongs to user 12345") as told:
        package.open(store)
    assert "sudo -u '#12345'" in str(told.value.hint)
    assert {path.stat().st_uid for path in home.rglob("*")} == {SOMEBODY}

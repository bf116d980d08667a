"""Stores that are copied with the tools that people use."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.copies.two_copies import Copies, append_some

Run = Callable[..., None]


@pytest.fixture(scope="session")
def rsync() -> Run:
    """Runs rsync, which `make test` fetches where the machine has none."""
    fetched = Path(sys.prefix) / "rsync/rsync"
    program = str(fetched) if fetched.exists() else shutil.which("rsync")
    if program is None:
        pytest.fail("rsync is missing: `make test` fetches it, or apt-get install rsync")

    def run(*args: str | Path) -> None:
        subprocess.run([program, *args], check=True, timeout=60)

    return run


@pytest.fixture
def git() -> Run:
    """Runs git in a folder, with no settings but its own."""

    def run(folder: Path, *args: str | Path) -> None:
        settings = ["user.name=x", "user.email=x@x.invalid", "init.defaultBranch=main", "core.autocrlf=true"]
        given = [part for setting in settings for part in ("-c", setting)]
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(
            ["git", *given, *args], cwd=folder, check=True, env=env, timeout=60, capture_output=True
        )

    return run


@pytest.fixture(params=["open", "sealed"])
def copies(request: pytest.FixtureRequest, tmp_path: Path) -> Copies:
    """Two copies of one store, of which each has gone on; all that they have is sealed, or nothing is."""
    a, b = tmp_path / "a", tmp_path / "b"
    append_some(a, "both")
    shutil.copytree(a, b, copy_function=shutil.copy2)
    for side in (a, b):
        append_some(side, side.name, seal=request.param == "sealed")
    return Copies(a, b)

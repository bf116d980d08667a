"""The samples of coding agents' conversations, as their programs keep them."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.places import FIXTURES

SAMPLES = FIXTURES / "importers"


def opencode(folder: Path, *scripts: str) -> Path:
    """Make a database of OpenCode 1 and 2 in a folder, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "opencode.db")) as db:
        for name in scripts or ("v1", "v2"):
            db.executescript((SAMPLES / f"opencode/{name}.sql").read_text(encoding="utf-8"))
    return folder


def sample(format: str, folder: Path) -> Path:
    """Copy the sample of a format to a folder that does not exist, and return the folder."""
    return opencode(folder) if format == "opencode" else Path(shutil.copytree(SAMPLES / format, folder))

"""What lies around a store: a home folder and a folder for temporary files, both empty to begin with."""

import os
from collections.abc import Iterable
from pathlib import Path

_XDG = ("CACHE_HOME", "CONFIG_HOME", "DATA_HOME", "STATE_HOME", "RUNTIME_DIR")


class Surroundings:
    """Folders below `folder` that no command should leave anything in."""

    def __init__(self, folder: Path) -> None:
        self._home, self._temporary = folder / "home", folder / "tmp"
        places = {f"XDG_{name}": self._home / name.lower() for name in _XDG}
        for path in (self._home, self._temporary, *places.values()):
            path.mkdir(parents=True)
        self._before = set(self._paths())
        folders = {"HOME": self._home, "TMPDIR": self._temporary, "SQLITE_TMPDIR": self._temporary, **places}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMLOG_", "XDG_"))}
        kept.pop("ORT_DISABLE_TELEMETRY", None)
        # Where SHELL is not set, a bash that a command starts asks the name service for it, over a socket.
        self.environment = kept | {name: str(path) for name, path in folders.items()} | {"SHELL": "/bin/sh"}

    def holds(self, path: str) -> bool:
        """Whether a path that a process named lies here."""
        return Path(path).is_relative_to(self._home) or Path(path).is_relative_to(self._temporary)

    def left(self) -> list[str]:
        """What was left here."""
        return sorted(str(path) for path in set(self._paths()) - self._before)

    def _paths(self) -> Iterable[Path]:
        return [*self._home.rglob("*"), *self._temporary.rglob("*")]

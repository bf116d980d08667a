"""A folder in memory for stores that only kills threaten: a kill loses nothing that was written."""

import shutil
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ENOUGH = 512 * 1024 * 1024


def memory(room: int = _ENOUGH) -> Path | None:
    """A folder in memory, where there is a file system for that, with `room` bytes free; else None."""
    return _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > room else None

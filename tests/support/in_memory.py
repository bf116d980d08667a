"""Where stores of tests stand that only kills threaten: what a kill leaves does not hang on the disk."""

import shutil
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ENOUGH = 512 * 1024 * 1024


def memory() -> Path | None:
    """A folder in memory, where there is a file system for that, and room; None is the usual place."""
    return _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH else None

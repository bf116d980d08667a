"""Small files that are replaced as a whole, so that neither a kill nor a power cut leaves half of one."""

import os
from pathlib import Path


def replace(path: Path, data: bytes) -> None:
    """Make `path` say `data`, for its owner alone. What is done after it is so after a power cut, too."""
    fresh = path.with_name(f"{path.name}.new")
    write(fresh, data)
    fresh.replace(path)
    sync(path.parent)


def write(path: Path, data: bytes) -> None:
    """A new file in the place of `path`, synced, for its owner alone."""
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)


def read(path: Path) -> bytes | None:
    """What `path` says; None where nothing stands there. A link is not followed, a pipe not waited for."""
    try:
        with open(path, "rb", opener=_opened) as file:
            return file.read()
    except FileNotFoundError:
        return None


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)

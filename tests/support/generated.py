"""Fixtures that a program generates: once for all processes of a test run, and pinned to the byte."""

import fcntl
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path


def generate_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """Have `make` fill `folder`, unless another process has; return it. Callers only read what is there."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            make(partial)
            partial.rename(folder)
    return folder


def sha256_of(folder: Path) -> str:
    """One hash over the paths and bytes of all files in a folder."""
    paths = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    files = ((path.encode(), (folder / path).read_bytes()) for path in paths)
    return sha256(b"".join(b"%s\0%d\0%s" % (path, len(data), data) for path, data in files)).hexdigest()

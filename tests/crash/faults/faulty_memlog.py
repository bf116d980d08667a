"""memlog with a planted fault: `python faulty_memlog.py FAULT …`, the rest as for memlog."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memlog.cli.process.main import main
from memlog.eventlog.files import disk, file_io
from memlog.projector import checkpoints

Fault = Callable[[], None]


def checkpoint_outside_the_transaction() -> None:
    """Rows are committed, and then the checkpoint is."""
    save: Callable[..., None] = checkpoints.save_checkpoint

    def apart(db: Any, *what: Any) -> None:
        db.execute("COMMIT")
        save(db, *what)
        db.execute("BEGIN IMMEDIATE")

    checkpoints.save_checkpoint = apart


def rename_before_sync() -> None:
    """CURRENT is replaced by a file whose bytes are synced only then."""

    def replace(path: Path, data: bytes) -> None:
        fresh = path.with_name(f"{path.name}.new")
        fd = disk.open(fresh, disk.WRITE | disk.NEW)
        disk.write(fd, data)
        disk.rename(fresh, path)
        disk.sync(fd)
        disk.close(fd)
        file_io.sync_path(path.parent)

    file_io.replace_file = replace


def unsynced_generation() -> None:
    """A generation becomes the live one before its bytes are synced."""
    sync = file_io.sync_path
    file_io.sync_path = lambda path: None if path.suffix == ".db" else sync(path)


FAULTS = {
    fault.__name__: fault
    for fault in (checkpoint_outside_the_transaction, rename_before_sync, unsynced_generation)
}

if __name__ == "__main__":
    FAULTS[sys.argv.pop(1)]()
    main()

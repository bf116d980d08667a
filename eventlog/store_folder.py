"""Checks that a folder is a store. Only writes create one: for reads, a mistyped path is an error."""

from pathlib import Path

from memlog.eventlog import disk
from memlog.eventlog.errors import NotFound
from memlog.eventlog.layout import LOG, SETTINGS


def check_store(folder: Path) -> None:
    """Raises NotFound if `folder` has neither a log nor a settings file."""
    if not any(_exists(folder / name) for name in (LOG, SETTINGS)):
        # Imported here: most folders are stores, and the settings import this module.
        from memlog.eventlog.streams import shown

        raise NotFound(
            f"there is no store at {shown(folder)}",
            hint="check --store and --project; the first append makes a store, and so does memlog init",
            code="store_not_found",
        )


def _exists(path: Path) -> bool:
    try:
        disk.look(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        # Something is there; reading it reports the error.
        return True
    return True

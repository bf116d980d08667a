"""Whether notes wait to be imported: an empty store beside the notes of an agent."""

from pathlib import Path

from memlog.eventlog.layout import LOG

_NOTES = "MEMORY.md"


def notes_beside(store: Path) -> Path | None:
    """The folder with a MEMORY.md in which an empty store lies; None without one."""
    folder = store.absolute().parent
    is_empty = next((store / LOG).rglob("*.jsonl"), None) is None
    return folder if is_empty and (folder / _NOTES).is_file() else None

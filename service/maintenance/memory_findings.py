"""What waits for a person: contradictions, and notes that could be imported."""

from pathlib import Path

from memlog.eventlog.streams import shown
from memlog.projector.sqlite import Connection
from memlog.query.conflicts import open_conflicts
from memlog.service.exchange.notes_beside import notes_beside
from memlog.service.maintenance.findings import Finding


def notes(store: Path) -> list[Finding]:
    """The notes beside an empty store; [] without any."""
    folder = notes_beside(store)
    if folder is None:
        return []
    text = f"{shown(folder)} has notes, and the store beside them is empty"
    return [Finding("notes", "ok", f"{text}: the format memory-folder imports them")]


def contradictions(db: Connection) -> list[Finding]:
    """Memories of which a person is to say which hold; [] without any."""
    count = open_conflicts(db)
    text = f"{count} conflicts of memories wait for a person"
    remedy = "say which hold: store.memories.conflicts() lists them"
    return [Finding("contradictions", "warning", text, remedy)] if count else []

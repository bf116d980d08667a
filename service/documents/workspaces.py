"""Workspaces: folders of agents. Their notes are searched as memories, their USER.md is core memory."""

from pathlib import Path
from typing import Literal

from memlog.eventlog.writer import Position
from memlog.projector.catchup import Progress
from memlog.query.documents import Source
from memlog.service.documents.facade import Documents
from memlog.service.documents.sources import USER_FILE, Added

FILES = ("MEMORY.md", "memory/*.md", USER_FILE)
"""What of a workspace is read."""


class Workspaces:
    """The workspaces of a store: `store.workspaces`.

    Each is a source of kind `memory`, brought up to its files by `store.documents.refresh` with the others.
    """

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def add(self, path: str | Path, *, source: str | None = None, progress: Progress | None = None) -> Added:
        """Make a folder a workspace, and read what is new or changed in it.

        MEMORY.md and memory/*.md are searched as memories. What USER.md says is set in the core memory, where
        no value stands yet; what it said once and was deleted since is not set again.

        source: its name; else that of the folder.

        Raises as `Documents.add`.
        """
        return self._documents.add(path, source=source, include=FILES, kind="memory", progress=progress)

    def list(self) -> list[Source]:
        """The workspaces, by name."""
        return [each for each in self._documents.list() if each.kind == "memory"]

    def remove(self, name: str) -> Position | Literal[False]:
        """Remove a workspace with its memories; False where there is none. The core memory stays."""
        if not any(each.source_id == name for each in self.list()):
            return False
        return self._documents.remove(name)

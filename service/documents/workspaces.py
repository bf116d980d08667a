"""Workspaces: folders of agents. Their notes are searched as memories, their USER.md is core memory."""

from pathlib import Path
from typing import Literal

from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.events import Position
from memlog.query.documents import Source
from memlog.service.documents.documents import Documents
from memlog.service.documents.requests import AddWorkspace, ListWorkspaces, RemoveWorkspace
from memlog.service.documents.sources import USER_FILE, IndexingReport
from memlog.service.engine.engine import Engine, OperationGroup
from memlog.service.engine.operation import operation

FILES = ("MEMORY.md", "memory/*.md", USER_FILE)
"""What of a workspace is read."""


class Workspaces(OperationGroup):
    """The workspaces of a store: `store.workspaces`.

    Each is a source of kind `memory`, brought up to its files by `store.documents.refresh` with the others.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._documents = Documents(engine)

    @operation(AddWorkspace, effect="append", reads_paths=True)
    def add(self, request: AddWorkspace) -> IndexingReport:
        name = Path(request.path).absolute().name if request.source is None else request.source
        if name in self._sources_of_documents():
            raise BadInput(
                f"not a workspace, but a source of documents: {name!r}",
                hint=f"remove it first (store.documents.remove({name!r})), or give the workspace another"
                " name",
            )
        return self._documents.add(
            request.path, source=request.source, include=FILES, kind="memory", progress=request.progress
        )

    def _sources_of_documents(self) -> set[str]:
        try:
            return {each.source_id for each in self._documents.list() if each.kind == "docs"}
        except NotFound:  # there is no store yet
            return set()

    @operation(ListWorkspaces, effect="read")
    def list(self, _: ListWorkspaces) -> list[Source]:
        return [each for each in self._documents.list() if each.kind == "memory"]

    @operation(RemoveWorkspace, effect="append", missing="source_not_found")
    def remove(self, request: RemoveWorkspace) -> Position | Literal[False]:
        """Remove a workspace; return False if none has this name."""
        if not any(each.source_id == request.name for each in self.list()):
            return False
        return self._documents.remove(request.name)

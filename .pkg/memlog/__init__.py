"""memlog: a memory for AI agents that is a folder of JSONL files.

The log is the only truth; the read model and the vectors are caches of it. Start with `open`:

    import memlog

    with memlog.open("notes") as store:
        store.append([memlog.Message(channel="cli", chat_id="1", role="user", content="I like green tea")])
        for hit in store.search("tea").hits:
            print(hit.content, hit.position)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memlog.eventlog.chat import Chat
    from memlog.eventlog.errors import (
        BadInput,
        Busy,
        DatabaseError,
        EmbeddingError,
        LogError,
        MemlogError,
        NotFound,
    )
    from memlog.eventlog.events import (
        CoreMemoryDeleted,
        CoreMemoryUpdated,
        DailyEventRecorded,
        DailyEventsCompressed,
        DocumentIndexed,
        DocumentRemoved,
        Event,
        ExtractionCompleted,
        FactRemoved,
        FactStored,
        MemoryAccessed,
        MemoryArchived,
        MemoryDeleted,
        MemorySaved,
        MemoryUpdated,
        Message,
        Redacted,
        SalienceDecayed,
        SessionBreak,
        SourceRegistered,
        SourceRemoved,
        SummaryWritten,
    )
    from memlog.eventlog.acknowledgements import AppendWarning, IdHolder, Position
    from memlog.projector.passages.chunking import ChunkSizes
    from memlog.projector.verify import NulRun, Verification
    from memlog.query.context.compose import Context, LeftOut
    from memlog.query.context.entries import Entry
    from memlog.query.core_memory import CoreMemory
    from memlog.query.daily_events import DailyEvent
    from memlog.query.document_tree import DocumentFile, DocumentFolder
    from memlog.query.documents import Document, DocumentText, Source
    from memlog.query.facts.answers import FactAnswer, Route
    from memlog.query.facts.current import Fact
    from memlog.query.filters import Filters
    from memlog.query.gate.rules import Gate, should_retrieve
    from memlog.query.memories import Memory
    from memlog.query.provenance import QuarantinedLine, Stored
    from memlog.query.search.expansion import Around
    from memlog.query.search.hits import Evidence, Hit, LinePosition
    from memlog.query.search.ranking import Ranking
    from memlog.query.search.hybrid import SearchResult
    from memlog.query.sessions import Session, SessionContent
    from memlog.query.summaries import Summary
    from memlog.query.window import Window, WindowMessage
    from memlog.service.async_store import (
        AsyncCore,
        AsyncDailyEvents,
        AsyncDocuments,
        AsyncFacts,
        AsyncMemories,
        AsyncStore,
        AsyncWorkspaces,
        open_async,
    )
    from memlog.service.core.facade import Core, CoreValue, Imported
    from memlog.service.daily_events import DailyEvents
    from memlog.service.maintenance.findings import Finding
    from memlog.service.documents.facade import Documents
    from memlog.service.documents.folder import Skipped
    from memlog.service.documents.sources import Added, FileWarning
    from memlog.service.documents.records import IndexingJob
    from memlog.service.documents.status import SourceStatus
    from memlog.service.documents.workspaces import Workspaces
    from memlog.service.erasure.forget import DoomedLine, Forgotten
    from memlog.service.erasure.byte_search import Proof, Standing
    from memlog.service.erasure.scrub import Scrubbed
    from memlog.service.erasure.find_secrets import SecretPlace
    from memlog.service.facts.facade import Facts, FactsExtracted, FactsSet
    from memlog.service.memories.fading import Decayed, Pruned
    from memlog.service.memories.facade import Memories
    from memlog.service.maintenance.project import EmbedReport, ProjectReport
    from memlog.service.projects import Project, ProjectRemoval, Projects
    from memlog.service.memories.save import Saved
    from memlog.service.maintenance.stats import Stats
    from memlog.service.maintenance.status import Status
    from memlog.service.store import Store, open
    from memlog.service.watching.worker import WatchStep

__version__ = "0.1.0"

# Imported on first use (PEP 562), so that `memlog append` does not pay for the search it does not run.
_HOME = {
    "Chat": "memlog.eventlog.chat",
    "Store": "memlog.service.store",
    "AsyncCore": "memlog.service.async_store",
    "AsyncDailyEvents": "memlog.service.async_store",
    "AsyncDocuments": "memlog.service.async_store",
    "AsyncFacts": "memlog.service.async_store",
    "AsyncMemories": "memlog.service.async_store",
    "AsyncStore": "memlog.service.async_store",
    "AsyncWorkspaces": "memlog.service.async_store",
    "open_async": "memlog.service.async_store",
    "Stats": "memlog.service.maintenance.stats",
    "Status": "memlog.service.maintenance.status",
    "ProjectReport": "memlog.service.maintenance.project",
    "EmbedReport": "memlog.service.maintenance.project",
    "ChunkSizes": "memlog.projector.passages.chunking",
    "NulRun": "memlog.projector.verify",
    "Verification": "memlog.projector.verify",
    "Core": "memlog.service.core.facade",
    "Context": "memlog.query.context.compose",
    "LeftOut": "memlog.query.context.compose",
    "Entry": "memlog.query.context.entries",
    "CoreMemory": "memlog.query.core_memory",
    "DailyEvent": "memlog.query.daily_events",
    "DailyEvents": "memlog.service.daily_events",
    "Document": "memlog.query.documents",
    "DocumentText": "memlog.query.documents",
    "DocumentFile": "memlog.query.document_tree",
    "DocumentFolder": "memlog.query.document_tree",
    "IndexingJob": "memlog.service.documents.records",
    "SourceStatus": "memlog.service.documents.status",
    "Source": "memlog.query.documents",
    "Added": "memlog.service.documents.sources",
    "FileWarning": "memlog.service.documents.sources",
    "Finding": "memlog.service.maintenance.findings",
    "Documents": "memlog.service.documents.facade",
    "Skipped": "memlog.service.documents.folder",
    "Around": "memlog.query.search.expansion",
    "Fact": "memlog.query.facts.current",
    "FactAnswer": "memlog.query.facts.answers",
    "Route": "memlog.query.facts.answers",
    "Facts": "memlog.service.facts.facade",
    "FactsExtracted": "memlog.service.facts.facade",
    "FactsSet": "memlog.service.facts.facade",
    "Filters": "memlog.query.filters",
    "Gate": "memlog.query.gate.rules",
    "should_retrieve": "memlog.query.gate.rules",
    "Ranking": "memlog.query.search.ranking",
    "DoomedLine": "memlog.service.erasure.forget",
    "Forgotten": "memlog.service.erasure.forget",
    "Project": "memlog.service.projects",
    "ProjectRemoval": "memlog.service.projects",
    "Projects": "memlog.service.projects",
    "Proof": "memlog.service.erasure.byte_search",
    "Scrubbed": "memlog.service.erasure.scrub",
    "SecretPlace": "memlog.service.erasure.find_secrets",
    "Standing": "memlog.service.erasure.byte_search",
    "Memory": "memlog.query.memories",
    "Memories": "memlog.service.memories.facade",
    "Saved": "memlog.service.memories.save",
    "Decayed": "memlog.service.memories.fading",
    "Pruned": "memlog.service.memories.fading",
    "CoreValue": "memlog.service.core.facade",
    "Imported": "memlog.service.core.facade",
    "QuarantinedLine": "memlog.query.provenance",
    "Stored": "memlog.query.provenance",
    "open": "memlog.service.store",
    "Workspaces": "memlog.service.documents.workspaces",
    "Hit": "memlog.query.search.hits",
    "SearchResult": "memlog.query.search.hybrid",
    "Session": "memlog.query.sessions",
    "SessionContent": "memlog.query.sessions",
    "Summary": "memlog.query.summaries",
    "WatchStep": "memlog.service.watching.worker",
    "Window": "memlog.query.window",
    "AppendWarning": "memlog.eventlog.acknowledgements",
    "IdHolder": "memlog.eventlog.acknowledgements",
    "Position": "memlog.eventlog.acknowledgements",
    "Event": "memlog.eventlog.events",
    "Message": "memlog.eventlog.events",
    "SessionBreak": "memlog.eventlog.events",
    "MemorySaved": "memlog.eventlog.events",
    "CoreMemoryUpdated": "memlog.eventlog.events",
    "CoreMemoryDeleted": "memlog.eventlog.events",
    "DailyEventRecorded": "memlog.eventlog.events",
    "DailyEventsCompressed": "memlog.eventlog.events",
    "DocumentIndexed": "memlog.eventlog.events",
    "DocumentRemoved": "memlog.eventlog.events",
    "ExtractionCompleted": "memlog.eventlog.events",
    "FactRemoved": "memlog.eventlog.events",
    "FactStored": "memlog.eventlog.events",
    "MemoryAccessed": "memlog.eventlog.events",
    "MemoryArchived": "memlog.eventlog.events",
    "MemoryDeleted": "memlog.eventlog.events",
    "MemoryUpdated": "memlog.eventlog.events",
    "Redacted": "memlog.eventlog.events",
    "SalienceDecayed": "memlog.eventlog.events",
    "SourceRegistered": "memlog.eventlog.events",
    "SourceRemoved": "memlog.eventlog.events",
    "SummaryWritten": "memlog.eventlog.events",
    "Evidence": "memlog.query.search.hits",
    "LinePosition": "memlog.query.search.hits",
    "WindowMessage": "memlog.query.window",
    "MemlogError": "memlog.eventlog.errors",
    "LogError": "memlog.eventlog.errors",
    "DatabaseError": "memlog.eventlog.errors",
    "EmbeddingError": "memlog.eventlog.errors",
    "NotFound": "memlog.eventlog.errors",
    "BadInput": "memlog.eventlog.errors",
    "Busy": "memlog.eventlog.errors",
}

__all__ = [
    "Added",
    "AppendWarning",
    "Around",
    "AsyncCore",
    "AsyncDailyEvents",
    "AsyncDocuments",
    "AsyncFacts",
    "AsyncMemories",
    "AsyncStore",
    "AsyncWorkspaces",
    "BadInput",
    "Busy",
    "Chat",
    "ChunkSizes",
    "Context",
    "Core",
    "CoreMemory",
    "CoreMemoryDeleted",
    "CoreMemoryUpdated",
    "DailyEvent",
    "DailyEventRecorded",
    "DailyEvents",
    "DailyEventsCompressed",
    "CoreValue",
    "DatabaseError",
    "Decayed",
    "Document",
    "DocumentFile",
    "DocumentFolder",
    "Documents",
    "DocumentIndexed",
    "DocumentRemoved",
    "DoomedLine",
    "EmbedReport",
    "EmbeddingError",
    "Entry",
    "Event",
    "Evidence",
    "ExtractionCompleted",
    "Fact",
    "FactAnswer",
    "FactRemoved",
    "FactStored",
    "Facts",
    "FactsExtracted",
    "FactsSet",
    "FileWarning",
    "Filters",
    "Forgotten",
    "Finding",
    "Gate",
    "Hit",
    "IdHolder",
    "LeftOut",
    "LinePosition",
    "Imported",
    "LogError",
    "MemlogError",
    "MemoryAccessed",
    "MemoryArchived",
    "MemoryDeleted",
    "Memories",
    "Memory",
    "MemorySaved",
    "MemoryUpdated",
    "Message",
    "NotFound",
    "NulRun",
    "Position",
    "Project",
    "ProjectRemoval",
    "ProjectReport",
    "Projects",
    "Proof",
    "Pruned",
    "QuarantinedLine",
    "Ranking",
    "Redacted",
    "Route",
    "SalienceDecayed",
    "Saved",
    "Scrubbed",
    "SearchResult",
    "SecretPlace",
    "Session",
    "SessionBreak",
    "SessionContent",
    "Skipped",
    "Source",
    "SourceRegistered",
    "SourceRemoved",
    "Standing",
    "Stats",
    "Status",
    "Store",
    "Stored",
    "SummaryWritten",
    "Summary",
    "Verification",
    "WatchStep",
    "Window",
    "WindowMessage",
    "Workspaces",
    "DocumentText",
    "IndexingJob",
    "SourceStatus",
    "__version__",
    "open",
    "open_async",
    "should_retrieve",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'memlog' has no attribute {name!r}")

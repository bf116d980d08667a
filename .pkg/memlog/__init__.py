"""memlog: a memory for AI agents that is a folder of JSONL files.

The log is the only truth; the read model and the vectors are caches of it. Start with `open`:

    import memlog

    with memlog.open("notes") as store:
        store.append([memlog.Message(channel="cli", chat_id="1", role="user", content="I like green tea")])
        for hit in store.search("tea").hits:
            print(hit.content, hit.position)
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# The public names by the module that defines them, which is imported on first use (PEP 562): `memlog append`
# does not pay for the search that it does not run. Type checkers read them in __init__.pyi; a test compares
# the two.
_NAMES = {
    "eventlog.acknowledgements": "AppendWarning IdHolder Position RefusedLine",
    "eventlog.chat": "Chat",
    "eventlog.errors": (
        "BadInput Busy DatabaseError EmbeddingError LogError MemlogError NotFound ProviderError"
    ),
    "eventlog.envelope": "Event",
    "eventlog.events": (
        "ChangeUndone ContextGiven CoreMemoryDeleted CoreMemoryUpdated DailyEventRecorded "
        "DailyEventsCompressed DocumentIndexed DocumentRemoved ExtractionCompleted FactRemoved FactStored "
        "MemoryAccessed JobCompleted MemoriesExtracted MemoriesMerged MemoryArchived MemoryDeleted "
        "MemorySaved MemoryUpdated Message ProfileRefreshed Redacted ModelFailed SalienceDecayed "
        "SessionBreak SourceRegistered SourceRemoved SummaryWritten"
    ),
    "eventlog.extraction": "Extraction JobStep MergeDecision",
    "eventlog.given": "GivenEntry",
    "eventlog.seals.format": "Seal",
    "projector.passages.chunking": "ChunkSizes",
    "projector.verify": "NulRun Verification",
    "query.context.compose": "Context",
    "query.context.entries": "ContextEntry",
    "query.context.filling": "OmittedEntry",
    "query.context.people": "People",
    "query.context.scores": "EntryScore",
    "query.core_memory": "CoreMemory",
    "query.daily_events": "DailyEvent",
    "query.documents": "Document DocumentFile DocumentFolder DocumentText Source",
    "query.event_index": "LinePosition",
    "query.facts.answers": "FactAnswer Route",
    "query.facts.current": "Fact",
    "query.filters": "Filters",
    "query.gate.rules": "Gate should_retrieve",
    "query.conflicts": "ConflictingMemory MemoryConflict",
    "query.jobs": "JobRun",
    "query.memories": "Memory",
    "query.provenance": "QuarantinedLine StoredEvent",
    "query.search.hits": "Evidence Hit",
    "query.search.hybrid": "SearchResult",
    "query.search.ranking": "Ranking",
    "query.set_aside": "SetAside",
    "query.sessions": "Session SessionContent",
    "query.summaries": "Summary",
    "query.surroundings": "Surroundings",
    "query.time_words": "NamedTime",
    "query.window": "Window WindowMessage",
    "service.adapters.async_operations": (
        "AsyncConversations AsyncCore AsyncDailyEvents AsyncDataExchange AsyncDocuments AsyncErasure "
        "AsyncExtractions AsyncFacts AsyncJobs AsyncMaintenance AsyncMemories AsyncTools AsyncWorkspaces"
    ),
    "service.adapters.aio": "AsyncStore open_async",
    "service.memory.conversations": "Conversations",
    "service.memory.core": "Core CoreImportReport CoreValue",
    "service.memory.daily": "DailyEvents",
    "service.documents.documents": "Documents",
    "service.documents.scan": "SkippedFile",
    "service.documents.indexing": "IndexingJob SourceStatus",
    "service.documents.sources": "FileWarning IndexingReport",
    "service.documents.workspaces": "Workspaces",
    "service.upkeep.erasure": "Occurrence Proof SecretPlace Erasure",
    "service.upkeep.forgetting": "DoomedLine ForgetReport ScrubReport",
    "query.buffer": "Buffer BufferedMessage",
    "service.llm.extraction": "DistilRequest Extractions",
    "service.exchange.importing": "ImportProblem ImportReport",
    "service.exchange.exchange": "DataExchange ExportReport",
    "service.upkeep.jobs": "Job Jobs JobReport",
    "service.engine.schedule": "JobRules",
    "service.engine.prompts": "Prompt",
    "service.llm.tasks.extract": "ExtractionReport",
    "service.memory.facts": "FactExtraction Facts FactUpdate",
    "service.upkeep.maintenance": "Maintenance SealReport SegmentLoss",
    "service.upkeep.findings": "Finding",
    "service.upkeep.project": "EmbedReport ProjectReport",
    "service.upkeep.status": "Stats Status",
    "service.memory.memories": "Memories",
    "service.memory.fading": "DecayReport PruneReport",
    "service.memory.save": "SaveReport",
    "service.retrieval.search": "PreRoute",
    "service.engine.http_client": "ProviderState",
    "service.engine.settings": "EmbeddingProvider ExtractionRules LanguageModelProvider RerankProvider",
    "service.projects": "Project ProjectRemoval Projects",
    "service.adapters.remote_store": "connect RemoteStore",
    "service.adapters.seed_client": "MemoryServiceClient",
    "service.store": "open Store",
    "service.retrieval.tools": (
        "CoreChange ToolForgotten ToolItem ToolItems ToolResult ToolResults ToolSaved Tools"
    ),
    "service.upkeep.worker": "WatchStep",
}

_HOME = {name: f"memlog.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *_HOME]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'memlog' has no attribute {name!r}")

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
    "service.async_operations": (
        "AsyncConversations AsyncCore AsyncDailyEvents AsyncDataExchange AsyncDocuments AsyncErasure "
        "AsyncExtractions AsyncFacts AsyncJobs AsyncMaintenance AsyncMemories AsyncTools AsyncWorkspaces"
    ),
    "service.async_store": "AsyncStore open_async",
    "service.conversations": "Conversations",
    "service.core.facade": "Core CoreImportReport CoreValue",
    "service.daily_events": "DailyEvents",
    "service.documents.facade": "Documents",
    "service.documents.folder": "SkippedFile",
    "service.documents.records": "IndexingJob SourceStatus",
    "service.documents.sources": "FileWarning IndexingReport",
    "service.documents.workspaces": "Workspaces",
    "service.erasure.byte_search": "Occurrence Proof",
    "service.erasure.find_secrets": "SecretPlace",
    "service.erasure.facade": "Erasure",
    "service.erasure.reports": "DoomedLine ForgetReport ScrubReport",
    "query.buffer": "Buffer BufferedMessage",
    "service.extraction.facade": "DistilRequest Extractions",
    "service.exchange.engine": "ImportProblem ImportReport",
    "service.exchange.facade": "DataExchange",
    "service.exchange.plain_tables": "ExportReport",
    "service.jobs.facade": "Job Jobs",
    "service.jobs.runner": "JobReport",
    "service.jobs.schedule": "JobRules",
    "service.extraction.prompts": "Prompt",
    "service.extraction.reports": "ExtractionReport",
    "service.facts.facade": "FactExtraction Facts FactUpdate",
    "service.maintenance.facade": "Maintenance",
    "service.maintenance.findings": "Finding",
    "service.maintenance.project": "EmbedReport ProjectReport",
    "service.maintenance.seal": "SealReport SegmentLoss",
    "service.maintenance.stats": "Stats",
    "service.maintenance.status": "Status",
    "service.memories.facade": "Memories",
    "service.memories.fading": "DecayReport PruneReport",
    "service.memories.save": "SaveReport",
    "service.pre_route": "PreRoute",
    "service.providers.breaker": "ProviderState",
    "service.providers.settings": "EmbeddingProvider ExtractionRules LanguageModelProvider RerankProvider",
    "service.projects": "Project ProjectRemoval Projects",
    "service.remote_store": "connect RemoteStore",
    "service.seed_client": "MemoryServiceClient",
    "service.store": "open Store",
    "service.tools": "CoreChange ToolForgotten ToolItem ToolItems ToolResult ToolResults ToolSaved Tools",
    "service.watching.worker": "WatchStep",
}

_HOME = {name: f"memlog.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *_HOME]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute can be anything
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'memlog' has no attribute {name!r}")

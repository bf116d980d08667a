"""memlog: a memory for AI agents that is a folder of JSONL files.

The log is the only truth; the read model and the vectors are caches of it. Start with `open`:

    import memlog

    with memlog.open("notes") as store:
        store.append([memlog.Message(channel="cli", chat_id="1", role="user", content="I like green tea")])
        for hit in store.search("tea").hits:
            print(hit.content, hit.position)
"""

__version__ = "0.1.0"

# The public names by the module that defines them, which is imported on first use (PEP 562): `memlog append`
# does not pay for the search that it does not run. Type checkers read them in __init__.pyi; a test compares
# the two.
_NAMES = {
    "eventlog.events": "Event Extraction JobStep MergeDecision",
    "eventlog.positions": "AppendWarning IdHolder Position RefusedLine",
    "eventlog.fields": "Chat GivenEntry",
    "eventlog.errors": (
        "BadInput Busy DatabaseError EmbeddingError LogError MemlogError NotFound ProviderError"
    ),
    "eventlog.sections": (
        "DecayRules EmbeddingProvider ExtractionRules JobRules LanguageModelProvider People RerankProvider"
        " SearchRules"
    ),
    "eventlog.integrity.seal_format": "Seal",
    "projector.passages.chunking": "ChunkSizes",
    "projector.verify": "NulRun Verification",
    "query.context.compose": "Context",
    "query.context.entries": "ContextEntry",
    "query.context.filling": "OmittedEntry",
    "query.context.scores": "EntryScore",
    "query.records": "CoreMemory DailyEvent JobRun",
    "query.documents": "Document DocumentFile DocumentFolder DocumentText Source",
    "query.event_index": "LinePosition",
    "query.facts.answers": "FactAnswer Route Fact",
    "query.filters": "Filters",
    "query.gate": "Gate should_retrieve",
    "query.conflicts": "ConflictingMemory MemoryConflict",
    "query.memories": "Memory",
    "query.provenance": "QuarantinedLine StoredEvent",
    "query.search.hits": "Evidence Hit",
    "query.search.hybrid": "SearchResult",
    "query.search.request": "Ranking",
    "query.buffer": "SetAside Buffer BufferedMessage",
    "query.sessions": "Session SessionContent Summary",
    "query.conversations": "Surroundings Window WindowMessage",
    "query.time_words": "NamedTime",
    "service.adapters.async_operations": (
        "AsyncConversations AsyncCore AsyncDailyEvents AsyncDataExchange AsyncDocuments AsyncErasure "
        "AsyncExtractions AsyncFacts AsyncJobs AsyncMaintenance AsyncMemories AsyncTools AsyncWorkspaces"
    ),
    "service.adapters.aio": "AsyncStore open_async",
    "service.memory.conversations": "Conversations",
    "service.memory.core": "Core CoreImportReport CoreValue",
    "service.memory.daily": "DailyEvents",
    "service.documents.documents": "Documents Workspaces",
    "service.documents.scan": "SkippedFile",
    "service.documents.indexing": "IndexingJob SourceStatus",
    "service.documents.sources": "FileWarning IndexingReport",
    "service.upkeep.erasure": "Occurrence Proof SecretPlace Erasure",
    "service.upkeep.forgetting": "DoomedLine ForgetReport ScrubReport",
    "service.llm.extraction": "DistilRequest Extractions",
    "service.exchange.histories": "FoundHistory",
    "service.exchange.importing": "ImportProblem ImportReport",
    "service.upkeep.undoing": "ImportUndo",
    "query.imports": "ImportRun",
    "service.exchange.exchange": "DataExchange ExportReport",
    "service.upkeep.jobs": "Job Jobs JobReport",
    "service.engine.embedding_models": "StoreEmbedder",
    "service.engine.prompts": "Prompt",
    "service.llm.tasks.extract": "ExtractionReport",
    "service.memory.facts": "FactExtraction Facts FactUpdate",
    "service.upkeep.maintenance": "Maintenance SealReport SegmentLoss",
    "service.upkeep.doctor": "Finding",
    "service.upkeep.project": "EmbedReport ProjectReport",
    "service.upkeep.status": "Stats Status",
    "service.memory.memories": "Memories",
    "service.memory.fading": "DecayReport PruneReport",
    "service.memory.save": "SaveReport",
    "service.retrieval.search": "PreRoute",
    "service.engine.http_client": "ProviderState",
    "service.projects": "Project ProjectRemoval Projects",
    "service.by_project": "ProjectImportRun ProjectImportUndo ProjectHit ProjectImports"
    " ProjectsSearchResult StayingSessions",
    "service.project_links": "ProjectLink",
    "service.adapters.remote_store": "connect RemoteStore",
    "service.adapters.seed_client": "MemoryServiceClient",
    "service.store": "open Store",
    "service.retrieval.tools": (
        "CoreChange ToolForgotten ToolItem ToolItems ToolResult ToolResults ToolSaved Tools"
    ),
    "service.upkeep.worker": "WatchStep",
}


# No imports above: a command that a server runs needs no other module of Python's.
_found: dict[str, str] = {}


def _modules() -> dict[str, str]:
    """Return the module of each public name, including all event types."""
    if not _found:
        from memlog.eventlog.events import TYPES

        _found.update((kind.__name__, "memlog.eventlog.events") for kind in TYPES.values())
        _found.update(
            (each, f"memlog.{module}") for module, names in _NAMES.items() for each in names.split()
        )
    return _found


def __dir__() -> list[str]:
    return sorted(["__all__", "__version__", *_modules()])


def __getattr__(name: str) -> object:
    if name == "__all__":
        return ["__version__", *_modules()]
    if not name.startswith("_") and name in _modules():
        from importlib import import_module

        return getattr(import_module(_modules()[name]), name)
    raise AttributeError(f"module 'memlog' has no attribute {name!r}")

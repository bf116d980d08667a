"""The public names of memlog, for type checkers and editors: written by `make snapshots`."""

from memlog.eventlog.acknowledgements import (
    AppendWarning as AppendWarning,
    IdHolder as IdHolder,
    Position as Position,
    RefusedLine as RefusedLine,
)
from memlog.eventlog.chat import Chat as Chat
from memlog.eventlog.envelope import Event as Event
from memlog.eventlog.errors import (
    BadInput as BadInput,
    Busy as Busy,
    DatabaseError as DatabaseError,
    EmbeddingError as EmbeddingError,
    LogError as LogError,
    MemlogError as MemlogError,
    NotFound as NotFound,
    ProviderError as ProviderError,
)
from memlog.eventlog.events import (
    ChangeUndone as ChangeUndone,
    ContextGiven as ContextGiven,
    CoreMemoryDeleted as CoreMemoryDeleted,
    CoreMemoryUpdated as CoreMemoryUpdated,
    DailyEventRecorded as DailyEventRecorded,
    DailyEventsCompressed as DailyEventsCompressed,
    DocumentIndexed as DocumentIndexed,
    DocumentRemoved as DocumentRemoved,
    ExtractionCompleted as ExtractionCompleted,
    FactRemoved as FactRemoved,
    FactStored as FactStored,
    JobCompleted as JobCompleted,
    MemoriesExtracted as MemoriesExtracted,
    MemoriesMerged as MemoriesMerged,
    MemoryAccessed as MemoryAccessed,
    MemoryArchived as MemoryArchived,
    MemoryDeleted as MemoryDeleted,
    MemorySaved as MemorySaved,
    MemoryUpdated as MemoryUpdated,
    Message as Message,
    ModelFailed as ModelFailed,
    ProfileRefreshed as ProfileRefreshed,
    Redacted as Redacted,
    SalienceDecayed as SalienceDecayed,
    SessionBreak as SessionBreak,
    SourceRegistered as SourceRegistered,
    SourceRemoved as SourceRemoved,
    SummaryWritten as SummaryWritten,
)
from memlog.eventlog.extraction import (
    Extraction as Extraction,
    JobStep as JobStep,
    MergeDecision as MergeDecision,
)
from memlog.eventlog.given import GivenEntry as GivenEntry
from memlog.eventlog.seals.format import Seal as Seal
from memlog.projector.passages.chunking import ChunkSizes as ChunkSizes
from memlog.projector.verify import NulRun as NulRun, Verification as Verification
from memlog.query.buffer import Buffer as Buffer, BufferedMessage as BufferedMessage
from memlog.query.conflicts import ConflictingMemory as ConflictingMemory, MemoryConflict as MemoryConflict
from memlog.query.context.compose import Context as Context
from memlog.query.context.entries import ContextEntry as ContextEntry
from memlog.query.context.filling import OmittedEntry as OmittedEntry
from memlog.query.context.people import People as People
from memlog.query.context.scores import EntryScore as EntryScore
from memlog.query.core_memory import CoreMemory as CoreMemory
from memlog.query.daily_events import DailyEvent as DailyEvent
from memlog.query.documents import (
    Document as Document,
    DocumentFile as DocumentFile,
    DocumentFolder as DocumentFolder,
    DocumentText as DocumentText,
    Source as Source,
)
from memlog.query.event_index import LinePosition as LinePosition
from memlog.query.facts.answers import FactAnswer as FactAnswer, Route as Route
from memlog.query.facts.current import Fact as Fact
from memlog.query.filters import Filters as Filters
from memlog.query.gate.rules import Gate as Gate, should_retrieve as should_retrieve
from memlog.query.jobs import JobRun as JobRun
from memlog.query.memories import Memory as Memory
from memlog.query.provenance import QuarantinedLine as QuarantinedLine, StoredEvent as StoredEvent
from memlog.query.search.hits import Evidence as Evidence, Hit as Hit
from memlog.query.search.hybrid import SearchResult as SearchResult
from memlog.query.search.ranking import Ranking as Ranking
from memlog.query.sessions import Session as Session, SessionContent as SessionContent
from memlog.query.set_aside import SetAside as SetAside
from memlog.query.summaries import Summary as Summary
from memlog.query.surroundings import Surroundings as Surroundings
from memlog.query.time_words import NamedTime as NamedTime
from memlog.query.window import Window as Window, WindowMessage as WindowMessage
from memlog.service.async_operations import (
    AsyncConversations as AsyncConversations,
    AsyncCore as AsyncCore,
    AsyncDailyEvents as AsyncDailyEvents,
    AsyncDataExchange as AsyncDataExchange,
    AsyncDocuments as AsyncDocuments,
    AsyncErasure as AsyncErasure,
    AsyncExtractions as AsyncExtractions,
    AsyncFacts as AsyncFacts,
    AsyncJobs as AsyncJobs,
    AsyncMaintenance as AsyncMaintenance,
    AsyncMemories as AsyncMemories,
    AsyncTools as AsyncTools,
    AsyncWorkspaces as AsyncWorkspaces,
)
from memlog.service.async_store import AsyncStore as AsyncStore, open_async as open_async
from memlog.service.conversations import Conversations as Conversations
from memlog.service.core.facade import (
    Core as Core,
    CoreImportReport as CoreImportReport,
    CoreValue as CoreValue,
)
from memlog.service.daily_events import DailyEvents as DailyEvents
from memlog.service.documents.facade import Documents as Documents
from memlog.service.documents.folder import SkippedFile as SkippedFile
from memlog.service.documents.records import IndexingJob as IndexingJob, SourceStatus as SourceStatus
from memlog.service.documents.sources import FileWarning as FileWarning, IndexingReport as IndexingReport
from memlog.service.documents.workspaces import Workspaces as Workspaces
from memlog.service.erasure.byte_search import Occurrence as Occurrence, Proof as Proof
from memlog.service.erasure.facade import Erasure as Erasure
from memlog.service.erasure.find_secrets import SecretPlace as SecretPlace
from memlog.service.erasure.reports import (
    DoomedLine as DoomedLine,
    ForgetReport as ForgetReport,
    ScrubReport as ScrubReport,
)
from memlog.service.exchange.engine import ImportProblem as ImportProblem, ImportReport as ImportReport
from memlog.service.exchange.facade import DataExchange as DataExchange
from memlog.service.exchange.plain_tables import ExportReport as ExportReport
from memlog.service.extraction.facade import DistilRequest as DistilRequest, Extractions as Extractions
from memlog.service.extraction.prompts import Prompt as Prompt
from memlog.service.extraction.reports import ExtractionReport as ExtractionReport
from memlog.service.facts.facade import (
    FactExtraction as FactExtraction,
    Facts as Facts,
    FactUpdate as FactUpdate,
)
from memlog.service.jobs.facade import Job as Job, Jobs as Jobs
from memlog.service.jobs.runner import JobReport as JobReport
from memlog.service.jobs.schedule import JobRules as JobRules
from memlog.service.maintenance.facade import Maintenance as Maintenance
from memlog.service.maintenance.findings import Finding as Finding
from memlog.service.maintenance.project import EmbedReport as EmbedReport, ProjectReport as ProjectReport
from memlog.service.maintenance.seal import SealReport as SealReport, SegmentLoss as SegmentLoss
from memlog.service.maintenance.stats import Stats as Stats
from memlog.service.maintenance.status import Status as Status
from memlog.service.memories.facade import Memories as Memories
from memlog.service.memories.fading import DecayReport as DecayReport, PruneReport as PruneReport
from memlog.service.memories.save import SaveReport as SaveReport
from memlog.service.pre_route import PreRoute as PreRoute
from memlog.service.projects import Project as Project, ProjectRemoval as ProjectRemoval, Projects as Projects
from memlog.service.providers.breaker import ProviderState as ProviderState
from memlog.service.providers.settings import (
    EmbeddingProvider as EmbeddingProvider,
    ExtractionRules as ExtractionRules,
    LanguageModelProvider as LanguageModelProvider,
    RerankProvider as RerankProvider,
)
from memlog.service.remote_store import RemoteStore as RemoteStore, connect as connect
from memlog.service.seed_client import MemoryServiceClient as MemoryServiceClient
from memlog.service.store import Store as Store, open as open
from memlog.service.tools import (
    CoreChange as CoreChange,
    ToolForgotten as ToolForgotten,
    ToolItem as ToolItem,
    ToolItems as ToolItems,
    ToolResult as ToolResult,
    ToolResults as ToolResults,
    Tools as Tools,
    ToolSaved as ToolSaved,
)
from memlog.service.watching.worker import WatchStep as WatchStep

__version__: str

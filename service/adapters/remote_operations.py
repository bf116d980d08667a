"""The operations of a store that a server does: made from its catalogue by `make snapshots`."""

from memlog.service.adapters.remote import Remote, remote
from memlog.service.documents.documents import Documents, Workspaces
from memlog.service.exchange.exchange import DataExchange
from memlog.service.llm.extraction import Extractions
from memlog.service.memory.conversations import Conversations
from memlog.service.memory.core import Core
from memlog.service.memory.daily import DailyEvents
from memlog.service.memory.facts import Facts
from memlog.service.memory.memories import Memories
from memlog.service.retrieval.tools import Tools
from memlog.service.store import Store
from memlog.service.upkeep.erasure import Erasure
from memlog.service.upkeep.jobs import Jobs
from memlog.service.upkeep.maintenance import Maintenance


class RemoteConversations(Remote):
    """The operations of `Conversations`."""

    window = remote(Conversations.window)
    session_content = remote(Conversations.session_content)
    sessions = remote(Conversations.sessions)
    summaries = remote(Conversations.summaries)


class RemoteMemories(Remote):
    """The operations of `Memories`."""

    save = remote(Memories.save)
    get = remote(Memories.get)
    history = remote(Memories.history)
    conflicts = remote(Memories.conflicts)
    resolve = remote(Memories.resolve)
    unmerge = remote(Memories.unmerge)
    update = remote(Memories.update)
    archive = remote(Memories.archive)
    archive_all = remote(Memories.archive_all)
    delete = remote(Memories.delete)
    touch = remote(Memories.touch)
    list = remote(Memories.list)
    decay = remote(Memories.decay)
    prune = remote(Memories.prune)


class RemoteCore(Remote):
    """The operations of `Core`."""

    get = remote(Core.get)
    set = remote(Core.set)
    delete = remote(Core.delete)
    import_file = remote(Core.import_file)


class RemoteFacts(Remote):
    """The operations of `Facts`."""

    set = remote(Facts.set)
    get = remote(Facts.get)
    ask = remote(Facts.ask)
    extract = remote(Facts.extract)
    remove = remote(Facts.remove)
    list = remote(Facts.list)


class RemoteDailyEvents(Remote):
    """The operations of `DailyEvents`."""

    record = remote(DailyEvents.record)
    list = remote(DailyEvents.list)
    compress = remote(DailyEvents.compress)


class RemoteDocuments(Remote):
    """The operations of `Documents`."""

    add = remote(Documents.add)
    add_all = remote(Documents.add_all)
    refresh = remote(Documents.refresh)
    list = remote(Documents.list)
    get = remote(Documents.get)
    tree = remote(Documents.tree)
    status = remote(Documents.status)
    jobs = remote(Documents.jobs)
    remove = remote(Documents.remove)


class RemoteWorkspaces(Remote):
    """The operations of `Workspaces`."""

    add = remote(Workspaces.add)
    list = remote(Workspaces.list)
    remove = remote(Workspaces.remove)


class RemoteExtractions(Remote):
    """The operations of `Extractions`."""

    run = remote(Extractions.run)
    days = remote(Extractions.days)
    extract = remote(Extractions.extract)
    buffer = remote(Extractions.buffer)
    prompt = remote(Extractions.prompt)


class RemoteJobs(Remote):
    """The operations of `Jobs`."""

    list = remote(Jobs.list)
    run = remote(Jobs.run)
    log = remote(Jobs.log)


class RemoteDataExchange(Remote):
    """The operations of `DataExchange`."""

    import_from = remote(DataExchange.import_from)
    export_sqlite = remote(DataExchange.export_sqlite)


class RemoteErasure(Remote):
    """The operations of `Erasure`."""

    forget = remote(Erasure.forget)
    scrub = remote(Erasure.scrub)
    prove = remote(Erasure.prove)
    secrets = remote(Erasure.secrets)


class RemoteMaintenance(Remote):
    """The operations of `Maintenance`."""

    project = remote(Maintenance.project)
    embed = remote(Maintenance.embed)
    verify = remote(Maintenance.verify)
    examine = remote(Maintenance.examine)
    seal = remote(Maintenance.seal)
    digest = remote(Maintenance.digest)
    status = remote(Maintenance.status)
    stats = remote(Maintenance.stats)
    quarantine = remote(Maintenance.quarantine)


class RemoteTools(Remote):
    """The operations of `Tools`."""

    memory_search = remote(Tools.memory_search)
    memory_get = remote(Tools.memory_get)
    memory_save = remote(Tools.memory_save)
    memory_core_get = remote(Tools.memory_core_get)
    memory_core_update = remote(Tools.memory_core_update)
    memory_core_delete = remote(Tools.memory_core_delete)
    memory_forget = remote(Tools.memory_forget)


class RemoteOperations(Remote):
    """The operations of `Store`."""

    conversations: RemoteConversations
    memories: RemoteMemories
    core: RemoteCore
    facts: RemoteFacts
    daily: RemoteDailyEvents
    documents: RemoteDocuments
    workspaces: RemoteWorkspaces
    extraction: RemoteExtractions
    jobs: RemoteJobs
    exchange: RemoteDataExchange
    erasure: RemoteErasure
    maintenance: RemoteMaintenance
    tools: RemoteTools
    append = remote(Store.append)
    search = remote(Store.search)
    context = remote(Store.context)
    pre_route = remote(Store.pre_route)
    get = remote(Store.get)

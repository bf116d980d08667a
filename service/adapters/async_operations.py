"""The operations of a store as coroutines: made from its catalogue by `make snapshots`."""

from memlog.service.adapters.awaiting import Awaitable, Watching, awaited, awaited_method
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


class AsyncConversations(Awaitable):
    """The methods of `Conversations` as coroutines."""

    window = awaited(Conversations.window)
    session_content = awaited(Conversations.session_content)
    sessions = awaited(Conversations.sessions)
    summaries = awaited(Conversations.summaries)


class AsyncMemories(Awaitable):
    """The methods of `Memories` as coroutines."""

    save = awaited(Memories.save)
    get = awaited(Memories.get)
    history = awaited(Memories.history)
    conflicts = awaited(Memories.conflicts)
    resolve = awaited(Memories.resolve)
    unmerge = awaited(Memories.unmerge)
    update = awaited(Memories.update)
    archive = awaited(Memories.archive)
    archive_all = awaited(Memories.archive_all)
    delete = awaited(Memories.delete)
    touch = awaited(Memories.touch)
    list = awaited(Memories.list)
    decay = awaited(Memories.decay)
    prune = awaited(Memories.prune)


class AsyncCore(Awaitable):
    """The methods of `Core` as coroutines."""

    get = awaited(Core.get)
    set = awaited(Core.set)
    delete = awaited(Core.delete)
    import_file = awaited(Core.import_file)
    take_over = awaited_method(Core.take_over)


class AsyncFacts(Awaitable):
    """The methods of `Facts` as coroutines."""

    set = awaited(Facts.set)
    get = awaited(Facts.get)
    ask = awaited(Facts.ask)
    extract = awaited(Facts.extract)
    remove = awaited(Facts.remove)
    list = awaited(Facts.list)


class AsyncDailyEvents(Awaitable):
    """The methods of `DailyEvents` as coroutines."""

    record = awaited(DailyEvents.record)
    list = awaited(DailyEvents.list)
    compress = awaited(DailyEvents.compress)


class AsyncDocuments(Awaitable):
    """The methods of `Documents` as coroutines."""

    add = awaited(Documents.add)
    add_all = awaited(Documents.add_all)
    refresh = awaited(Documents.refresh)
    list = awaited(Documents.list)
    get = awaited(Documents.get)
    tree = awaited(Documents.tree)
    status = awaited(Documents.status)
    jobs = awaited(Documents.jobs)
    remove = awaited(Documents.remove)


class AsyncWorkspaces(Awaitable):
    """The methods of `Workspaces` as coroutines."""

    add = awaited(Workspaces.add)
    list = awaited(Workspaces.list)
    remove = awaited(Workspaces.remove)


class AsyncExtractions(Awaitable):
    """The methods of `Extractions` as coroutines."""

    run = awaited(Extractions.run)
    days = awaited(Extractions.days)
    extract = awaited(Extractions.extract)
    buffer = awaited(Extractions.buffer)
    prompt = awaited(Extractions.prompt)


class AsyncJobs(Awaitable):
    """The methods of `Jobs` as coroutines."""

    list = awaited(Jobs.list)
    run = awaited(Jobs.run)
    log = awaited(Jobs.log)


class AsyncDataExchange(Awaitable):
    """The methods of `DataExchange` as coroutines."""

    import_from = awaited(DataExchange.import_from)
    export_sqlite = awaited(DataExchange.export_sqlite)


class AsyncErasure(Awaitable):
    """The methods of `Erasure` as coroutines."""

    forget = awaited(Erasure.forget)
    scrub = awaited(Erasure.scrub)
    prove = awaited(Erasure.prove)
    secrets = awaited(Erasure.secrets)


class AsyncMaintenance(Watching):
    """The methods of `Maintenance` as coroutines."""

    project = awaited(Maintenance.project)
    embed = awaited(Maintenance.embed)
    verify = awaited(Maintenance.verify)
    examine = awaited(Maintenance.examine)
    seal = awaited(Maintenance.seal)
    digest = awaited(Maintenance.digest)
    status = awaited(Maintenance.status)
    stats = awaited(Maintenance.stats)
    quarantine = awaited(Maintenance.quarantine)
    explain = awaited_method(Maintenance.explain)


class AsyncTools(Awaitable):
    """The methods of `Tools` as coroutines."""

    memory_search = awaited(Tools.memory_search)
    memory_get = awaited(Tools.memory_get)
    memory_save = awaited(Tools.memory_save)
    memory_core_get = awaited(Tools.memory_core_get)
    memory_core_update = awaited(Tools.memory_core_update)
    memory_core_delete = awaited(Tools.memory_core_delete)
    memory_forget = awaited(Tools.memory_forget)


class AsyncOperations(Awaitable):
    """The methods of `Store` as coroutines."""

    conversations: AsyncConversations
    memories: AsyncMemories
    core: AsyncCore
    facts: AsyncFacts
    daily: AsyncDailyEvents
    documents: AsyncDocuments
    workspaces: AsyncWorkspaces
    extraction: AsyncExtractions
    jobs: AsyncJobs
    exchange: AsyncDataExchange
    erasure: AsyncErasure
    maintenance: AsyncMaintenance
    tools: AsyncTools
    append = awaited(Store.append)
    append_lines = awaited_method(Store.append_lines)
    search = awaited(Store.search)
    context = awaited(Store.context)
    pre_route = awaited(Store.pre_route)
    get = awaited(Store.get)
    stream_with = awaited_method(Store.stream_with)
    warm = awaited_method(Store.warm)

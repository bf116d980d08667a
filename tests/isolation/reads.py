"""Every public read of the Python API, and whose rows it may answer; every other public method, by its name.

A public method that is in none of these tables fails test_isolation.py: enter it where it belongs. A read
yields an `Answer` for each way in which it is to be asked.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import memlog
from memlog import Filters, MemlogError, Store
from memlog.eventlog.reader import accepted, last_entries, segments_about, todays_members
from memlog.eventlog.streams import conversation_stream
from tests.isolation.worlds import CANARY, OWN_SCOPE, Chat, World, name_of

Whose = Chat | Literal["all"] | None
"""Of a chat; of the whole project; or of what belongs to no chat."""

ALL: Literal["all"] = "all"
WORDS = "drink tea Helsinki favorite color"
"""That many say, and that name a topic of all."""


@dataclass(frozen=True)
class Answer:
    """What a read gave, and whose rows it may hold.

    with_own_scope: also what belongs to no chat.
    """

    read: str
    whose: Whose
    given: Any
    with_own_scope: bool = False


@dataclass(frozen=True)
class Asked:
    """A store that is asked.

    chats: one of its own; in one project also one of another, which this one may not have.
    words: what is asked for: words that many say, and the canaries of every project.
    """

    store: Store
    world: World
    chats: list[Chat]
    words: str
    mode: Literal["text", "vector", "hybrid"] = "text"


Read = Callable[[Asked], Iterator[Answer]]
READS: dict[str, Read] = {}
"""By the names of methods: `search`, `memories.list`."""

SLOW_READS: dict[str, Read] = {}
"""Those that look at all of the store, or know no chats; they are asked in fewer examples."""

WRITES = {
    *("append", "append_lines", "erasure.forget", "erasure.scrub", "warm"),
    *("maintenance.project", "maintenance.embed", "maintenance.watch", "maintenance.seal"),
    *("core.set", "core.delete", "core.import_file", "core.take_over"),
    *(
        "daily.record",
        "daily.compress",
        "extraction.run",
        "extraction.days",
        "extraction.extract",
        "extraction.prompt",
        *(
            "exchange.import_from",
            "exchange.export_sqlite",
            "jobs.list",
            "jobs.run",
            "jobs.log",
            "memories.conflicts",
            "memories.resolve",
            "memories.unmerge",
        ),
    ),
    *("documents.add", "documents.add_all", "documents.refresh", "documents.remove"),
    *("workspaces.add", "workspaces.remove"),
    *("facts.set", "facts.remove", "facts.extract"),
    *("memories.save", "memories.update", "memories.archive", "memories.delete", "memories.touch"),
    *("memories.archive_all", "memories.decay", "memories.prune"),
    "pre_route",  # two reads: facts.ask and context
    *("tools.memory_save", "tools.memory_core_update", "tools.memory_core_delete", "tools.memory_forget"),
}
NO_ROWS = {"close", "documents.close", "documents.is_of_another_copy"}
"""Neither reads rows nor writes any."""


def public_methods(store: Store) -> set[str]:
    """Every public method of a store, and of what it is made of: `memories.list`."""
    parts = {
        name: part
        for name, part in inspect.getmembers(store)
        if not name.startswith("_") and type(part).__module__.startswith("memlog.")
    }
    return {
        f"{prefix}{name}"
        for prefix, owner in [("", store), *((f"{name}.", part) for name, part in parts.items())]
        for name, member in inspect.getmembers(type(owner), callable)
        if not name.startswith("_")
    }


def reads(name: str, table: dict[str, Read] = READS) -> Callable[[Read], Read]:
    """Enters a read in a table."""

    def enter(read: Read) -> Read:
        table[name] = read
        return read

    return enter


def told(read: Callable[[], Any]) -> Any:
    """What a read answers; of one that is refused, what the error says."""
    try:
        return read()
    except MemlogError as error:
        return [error.message, error.hint]


@reads("search")
def _search(asked: Asked) -> Iterator[Answer]:
    def found(**options: Any) -> Any:
        return asked.store.search(asked.words, k=40, mode=asked.mode, expand=2, **options)

    yield Answer("search", ALL, found(explain=True))
    for chat in asked.chats:
        yield Answer("search", chat, found(filters=Filters(chat=chat)))


@reads("tools.memory_search")
def _memory_search(asked: Asked) -> Iterator[Answer]:
    yield Answer("tools.memory_search", ALL, asked.store.tools.memory_search(asked.words, topK=40))
    for chat in asked.chats:
        found = asked.store.tools.memory_search(asked.words, topK=40, chat=name_of(chat))
        yield Answer("tools.memory_search", chat, found)


@reads("tools.memory_get")
def _memory_get(asked: Asked) -> Iterator[Answer]:
    yield Answer("tools.memory_get", ALL, told(lambda: asked.store.tools.memory_get(["k0", "k1"])))


@reads("tools.memory_core_get")
def _memory_core_get(asked: Asked) -> Iterator[Answer]:
    yield Answer("tools.memory_core_get", OWN_SCOPE, asked.store.tools.memory_core_get())


@reads("context")
def _context(asked: Asked) -> Iterator[Answer]:
    def given(text: str, **options: Any) -> Any:
        return told(
            lambda: asked.store.context(
                text, record=False, explain=True, counter="chars4", scope="chat", **options
            )
        )

    chat = asked.chats[0]
    yield Answer("context", chat, given(asked.words, chat=chat), with_own_scope=True)
    if asked.world.number == 0:
        yield Answer("context", ALL, given(asked.words, form="json"))
        # Who asks is in the messages: without a canary. Not every chat has a city.
        question = given("what is my city", form="messages", chat=chat)
        yield Answer("context", chat, question, with_own_scope=True)


@reads("conversations.window")
def _window(asked: Asked) -> Iterator[Answer]:
    yield Answer("window", asked.chats[0], asked.store.conversations.window(asked.chats[0], tokens=20))
    for chat in asked.chats:
        given = told(lambda chat=chat: asked.store.conversations.window(chat, across_sessions=True))
        yield Answer("window", chat, given)


@reads("conversations.session_content")
def _session_content(asked: Asked) -> Iterator[Answer]:
    for chat in asked.chats:
        given = told(lambda chat=chat: asked.store.conversations.session_content(chat, across_sessions=True))
        yield Answer("session_content", chat, given)


@reads("conversations.sessions")
def _sessions(asked: Asked) -> Iterator[Answer]:
    yield Answer("sessions", ALL, asked.store.conversations.sessions(all=True))
    for chat in asked.chats:
        yield Answer(
            "sessions", chat, told(lambda chat=chat: asked.store.conversations.sessions(chat, all=True))
        )


@reads("conversations.summaries")
def _summaries(asked: Asked) -> Iterator[Answer]:
    yield Answer("summaries", ALL, asked.store.conversations.summaries())
    for chat in asked.chats:
        yield Answer("summaries", chat, told(lambda chat=chat: asked.store.conversations.summaries(chat)))


@reads("extraction.buffer")
def _buffer(asked: Asked) -> Iterator[Answer]:
    yield Answer("extraction.buffer", ALL, asked.store.extraction.buffer())
    for chat in asked.chats:
        yield Answer("extraction.buffer", chat, asked.store.extraction.buffer(chat))


@reads("get")
def _get(asked: Asked) -> Iterator[Answer]:
    for name in ("k0", "m1", "docs/tea.md"):
        yield Answer("get", ALL, told(lambda name=name: asked.store.get(name, around=2)))
    yield Answer("get", OWN_SCOPE, told(lambda: asked.store.get("favorite_color/1")))
    for chat in asked.chats:
        stream = conversation_stream(*chat)
        yield Answer("get", chat, told(lambda s=stream: asked.store.get("m2", stream=s, around=2)))
        of_chat = f"favorite_color/1/{name_of(chat)}"
        yield Answer("get", chat, told(lambda name=of_chat: asked.store.get(name)))
    chat = asked.world.chats[-1]
    yield Answer("get", chat, told(lambda: asked.store.get(f"first-{asked.world.canary(chat)}", around=100)))


@reads("stream_with")
def _stream_with(asked: Asked) -> Iterator[Answer]:
    yield Answer("stream_with", ALL, told(lambda: asked.store.stream_with("m1")))


@reads("memories.list")
def _memories(asked: Asked) -> Iterator[Answer]:
    for archived in (False, True):
        yield Answer("memories.list", ALL, asked.store.memories.list(archived=archived))
    for chat in asked.chats:
        yield Answer("memories.list", chat, asked.store.memories.list(chat=name_of(chat)))


@reads("memories.get")
def _memory(asked: Asked) -> Iterator[Answer]:
    for number in (0, 1):
        yield Answer("memories.get", ALL, asked.store.memories.get(f"k{number}"))


@reads("memories.history")
def _history(asked: Asked) -> Iterator[Answer]:
    yield Answer("memories.history", ALL, asked.store.memories.history("k1"))


@reads("facts.list")
def _facts(asked: Asked) -> Iterator[Answer]:
    yield Answer("facts.list", ALL, asked.store.facts.list())
    for chat in asked.chats:
        yield Answer("facts.list", chat, asked.store.facts.list(chat=name_of(chat)))


@reads("facts.get")
def _fact(asked: Asked) -> Iterator[Answer]:
    for scope in (OWN_SCOPE, *asked.chats):
        yield Answer("facts.get", scope, asked.store.facts.get("my favorite colour", chat=name_of(scope)))
    given = asked.store.facts.get("favorite_color", chat="telegram:nobody", any_chat=True)
    yield Answer("facts.get", ALL, given)


@reads("facts.ask")
def _ask(asked: Asked) -> Iterator[Answer]:
    question = "what are my favourite colours"
    for scope in (OWN_SCOPE, *asked.chats):
        yield Answer("facts.ask", scope, asked.store.facts.ask(question, chat=name_of(scope)))
    yield Answer("facts.ask", ALL, asked.store.facts.ask(question, chat="telegram:nobody", any_chat=True))


@reads("daily.list")
def _daily(asked: Asked) -> Iterator[Answer]:
    yield Answer("daily.list", OWN_SCOPE, asked.store.daily.list())


@reads("core.get")
def _core(asked: Asked) -> Iterator[Answer]:
    yield Answer("core.get", OWN_SCOPE, asked.store.core.get())


@reads("documents.list")
def _documents(asked: Asked) -> Iterator[Answer]:
    yield Answer("documents.list", OWN_SCOPE, asked.store.documents.list())


@reads("documents.get")
def _document(asked: Asked) -> Iterator[Answer]:
    yield Answer("documents.get", OWN_SCOPE, asked.store.documents.get("docs/tea.md"))


@reads("documents.tree", SLOW_READS)
def _tree(asked: Asked) -> Iterator[Answer]:
    yield Answer("documents.tree", OWN_SCOPE, asked.store.documents.tree())


@reads("documents.status", SLOW_READS)
def _documents_status(asked: Asked) -> Iterator[Answer]:
    yield Answer("documents.status", OWN_SCOPE, asked.store.documents.status())


@reads("documents.jobs", SLOW_READS)
def _jobs(asked: Asked) -> Iterator[Answer]:
    yield Answer("documents.jobs", OWN_SCOPE, asked.store.documents.jobs())


@reads("workspaces.list", SLOW_READS)
def _workspaces(asked: Asked) -> Iterator[Answer]:
    yield Answer("workspaces.list", OWN_SCOPE, asked.store.workspaces.list())


@reads("maintenance.stats")
def _stats(asked: Asked) -> Iterator[Answer]:
    given = asked.store.maintenance.stats()
    yield Answer("stats", ALL, given)
    assert set(given.messages_by_chat) == {name_of(chat) for chat in asked.world.chats}


@reads("maintenance.quarantine")
def _quarantine(asked: Asked) -> Iterator[Answer]:
    yield Answer("quarantine", ALL, asked.store.maintenance.quarantine())


@reads("maintenance.explain", SLOW_READS)
def _explain(asked: Asked) -> Iterator[Answer]:
    for line in asked.store.maintenance.quarantine():
        yield Answer("explain", ALL, asked.store.maintenance.explain(line))


@reads("maintenance.status", SLOW_READS)
def _status(asked: Asked) -> Iterator[Answer]:
    yield Answer("status", ALL, asked.store.maintenance.status())


@reads("erasure.secrets", SLOW_READS)
def _secrets(asked: Asked) -> Iterator[Answer]:
    yield Answer("secrets", ALL, asked.store.erasure.secrets())


@reads("maintenance.digest", SLOW_READS)
def _digest(asked: Asked) -> Iterator[Answer]:
    yield Answer("digest", ALL, asked.store.maintenance.digest())


@reads("maintenance.verify", SLOW_READS)
def _verify(asked: Asked) -> Iterator[Answer]:
    given = asked.store.maintenance.verify()
    assert given.ok
    yield Answer("verify", ALL, given)


@reads("maintenance.examine", SLOW_READS)
def _examine(asked: Asked) -> Iterator[Answer]:
    yield Answer("examine", ALL, asked.store.maintenance.examine())


@reads("erasure.prove", SLOW_READS)
def _prove(asked: Asked) -> Iterator[Answer]:
    """Not even the bytes of a store hold a word of another."""
    own = asked.world.canaries
    others = [word for word in CANARY.findall(asked.words) if word not in own]
    for word in (*list(own)[:1], *others[:2]):
        given = asked.store.erasure.prove(word)
        assert bool(given.found) == (word in own), word
        yield Answer("prove", ALL, given)


def of_the_log(asked: Asked) -> Iterator[Answer]:
    """What `memlog log cat` and `memlog log tail` read, without a read model."""
    log = asked.store.path / "log"
    for chat in (None, *asked.chats):
        segments = segments_about(log, chat=chat)
        lines = [*accepted(segments, lambda *_: None), *last_entries(segments, 20)]
        yield Answer("log", ALL if chat is None else chat, [todays_members(entry) for entry in lines])


def chats_asked_for(world: World, worlds: list[World]) -> list[Chat]:
    """One of its own; in the first project also one of another, which it has not itself where that can be."""
    others = [chat for other in worlds[1:] for chat in other.chats if world is worlds[0]]
    return [world.chats[0], *sorted(others, key=world.chats.__contains__)[:1]]


def words_asked_for(worlds: list[World]) -> str:
    """What many say, and every canary."""
    return " ".join([WORDS, *(word for world in worlds for word in world.canaries)])


def what_is_public(store: memlog.Store) -> set[str]:
    """Public methods that are in no table, or in the tables and no longer public."""
    return public_methods(store) ^ {*READS, *SLOW_READS, *WRITES, *NO_ROWS}

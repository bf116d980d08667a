"""Every public read of the Python API, and whose rows it may answer.

A read yields an `Answer` for each way in which it is to be asked. An operation with the effect `read` and no
function here is asked by its fields; a public method that is no operation and in no table fails
test_isolation.py.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import memlog
from memlog import BadInput, Filters, NotFound, Store
from memlog.eventlog.fields import list_fields
from memlog.eventlog.log.reader import (
    members_in_current_schema,
    read_accepted_events,
    read_last_entries,
    select_segments,
)
from memlog.eventlog.log.streams import conversation_stream
from memlog.service.catalogue import operations
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

GIVEN: dict[str, dict[str, Any]] = {
    "documents.get": {"name": "docs/tea.md"},
    "exchange.find_histories": {"home": str(Path(__file__).parent)},
    "extraction.prompt": {"name": "extract-1"},
    "memories.get": {"memory_id": "k1"},
    "memories.history": {"memory_id": "k1"},
    "tools.memory_get": {"ids": ["k0", "k1"]},
}
"""What `asked_by_its_fields` gives for the fields that must be given, but for the chat."""

OF_ALL_CHATS = {
    # A chat is asked for where only its rows are wanted.
    *("conversations.summaries", "extraction.buffer", "facts.list"),
    # Who names a memory or an event has its id from a read before.
    *("memories.get", "memories.history", "tools.memory_get"),
    # For the owner of the store, who decides what holds in all of it, and mends its log.
    *("memories.conflicts", "maintenance.quarantine", "exchange.list_imports"),
}
"""Reads that answer of every chat of their project where no chat is named. All others answer of none then."""

SLOW = {
    *("documents.jobs", "documents.status", "documents.tree", "erasure.secrets", "extraction.prompt"),
    *("jobs.list", "maintenance.digest", "maintenance.status", "workspaces.list"),
}
"""Which of the reads that need no function here are slow."""

NO_OPERATIONS = {
    *("append_lines", "close", "core.take_over", "documents.close", "documents.is_of_another_copy", "warm"),
    *("embedder.embed", "embedder.is_available"),
}
"""Public methods that are no operations, and read no rows."""


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
    """What a read answers; of what is missing or in several streams, what the error says."""
    try:
        return read()
    except (BadInput, NotFound) as error:
        return [error.message, error.hint]


def asked_by_its_fields(name: str) -> Read:
    """How an operation is asked that has no function here: for each chat if it takes one, and for none."""
    chat = {each.name: each for each in list_fields(operations()[name].request)}.get("chat")

    def read(asked: Asked) -> Iterator[Answer]:
        group, _, method = name.rpartition(".")
        run = getattr(getattr(asked.store, group) if group else asked.store, method)
        given = GIVEN.get(name, {})
        for each in asked.chats if chat is not None else ():
            yield Answer(name, each, told(lambda each=each: run(**given, chat=name_of(each))))
        if chat is None or chat.default is None:
            yield Answer(name, ALL if name in OF_ALL_CHATS else OWN_SCOPE, told(lambda: run(**given)))

    return read


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


@reads("conversations.sessions")
def _sessions(asked: Asked) -> Iterator[Answer]:
    yield Answer("sessions", ALL, asked.store.conversations.sessions(all=True))
    for chat in asked.chats:
        yield Answer(
            "sessions", chat, told(lambda chat=chat: asked.store.conversations.sessions(chat, all=True))
        )


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


@reads("core.get")
def _core(asked: Asked) -> Iterator[Answer]:
    yield Answer("core.get", OWN_SCOPE, asked.store.core.get())
    for chat in asked.chats:
        yield Answer("core.get", chat, asked.store.core.get(chat=chat), with_own_scope=True)


@reads("exchange.export_sqlite", SLOW_READS)
def _export(asked: Asked) -> Iterator[Answer]:
    path = asked.store.path.with_suffix(".db")
    asked.store.exchange.export_sqlite(path, replace=True)
    yield Answer("exchange.export_sqlite", ALL, path.read_bytes().decode(errors="replace"))


@reads("maintenance.stats")
def _stats(asked: Asked) -> Iterator[Answer]:
    given = asked.store.maintenance.stats()
    yield Answer("stats", ALL, given)
    assert set(given.messages_by_chat) == {name_of(chat) for chat in asked.world.chats}


@reads("maintenance.explain", SLOW_READS)
def _explain(asked: Asked) -> Iterator[Answer]:
    for line in asked.store.maintenance.quarantine():
        yield Answer("explain", ALL, asked.store.maintenance.explain(line))


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
        segments = select_segments(log, chat=chat)
        lines = [*read_accepted_events(segments, lambda *_: None), *read_last_entries(segments, 20)]
        yield Answer(
            "log", ALL if chat is None else chat, [members_in_current_schema(entry) for entry in lines]
        )


def chats_asked_for(world: World, worlds: list[World]) -> list[Chat]:
    """One of its own; in the first project also one of another, which it has not itself where that can be."""
    others = [chat for other in worlds[1:] for chat in other.chats if world is worlds[0]]
    return [world.chats[0], *sorted(others, key=world.chats.__contains__)[:1]]


def words_asked_for(worlds: list[World]) -> str:
    """What many say, and every canary."""
    return " ".join([WORDS, *(word for world in worlds for word in world.canaries)])


for _name, _operation in operations().items():
    if _operation.effect == "read" and _name not in {*READS, *SLOW_READS}:
        reads(_name, SLOW_READS if _name in SLOW else READS)(asked_by_its_fields(_name))


def what_is_unknown(store: memlog.Store) -> set[str]:
    """Public methods that are no operations and in no table, and what tables name that is not there."""
    unknown = (public_methods(store) ^ {*READS, *SLOW_READS, *NO_OPERATIONS}) - operations().keys()
    return unknown | ({*GIVEN, *OF_ALL_CHATS, *SLOW} - operations().keys())

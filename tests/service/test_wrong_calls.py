"""Arguments of the wrong form: memlog accepts those with one meaning, and names the others in an error."""

import copy
import inspect
import pickle
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest

import memlog
from memlog import BadInput, Filters, Ranking, Store
from memlog.eventlog.fields import Chat
from memlog.service.catalogue import operations
from tests.support.refusals import refused

SAID = memlog.Message(
    channel="web", chat_id="1", role="user", content="I like tea", ts="2026-02-24T10:15:00Z"
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with memlog.open(tmp_path / "store") as opened:
        opened.append(SAID)
        yield opened


def found(store: Store, **options: Any) -> list[str | None]:
    return [hit.content for hit in store.search("tea", mode="text", **options).hits]


CHATS = ["web:1", ("web", "1"), ["web", "1"], Chat.of("web:1")]


def test_a_chat_is_taken_in_each_of_its_forms(store: Store) -> None:
    for chat in CHATS:
        assert found(store, chat=chat) == found(store, filters={"chat": chat}) == ["I like tea"], chat
        assert "I like tea" in store.context("tea", chat=chat, record=False).text
        assert [session.chat for session in store.conversations.sessions(chat)] == ["web:1"]
        assert [message.content for message in store.conversations.window(chat).messages] == ["I like tea"]
        assert store.conversations.session_content(chat).chat == "web:1"
        assert store.conversations.summaries(chat) == []
        assert len(store.erasure.forget(chat=chat, dry_run=True).lines) == 1, chat


def test_a_chat_is_still_taken_as_two_texts(store: Store) -> None:
    assert store.conversations.window(("web", "1")) == store.conversations.window("web:1")
    assert store.conversations.session_content(("web", "1")) == store.conversations.session_content("web:1")


def test_one_event_needs_no_list(store: Store) -> None:
    line = b'{"type":"memory_saved","content":"likes oolong tea"}'
    assert len(store.append(SAID)) == len(store.append(line)) == 1
    assert len(store.append({"type": "memory_saved", "content": "likes black tea"})) == 1
    # Two of them say the same.
    assert sorted(found(store)) == ["I like tea", "likes black tea", "likes oolong tea"]


def test_filters_and_a_ranking_may_be_dicts(store: Store) -> None:
    assert found(store, filters={"role": "assistant"}) == []
    assert found(store, filters={"role": "user"}, ranking={"depth": 3}) == ["I like tea"]
    assert Filters.of({"kinds": ["memory"]}) == Filters(kinds=frozenset({"memory"}))


MOMENTS = [
    "2026-02-24",
    "2026-02-24T10:15:00Z",
    datetime(2026, 2, 24, 10, 15, tzinfo=UTC),
    datetime(2026, 2, 24, 10, 15),
    datetime(2026, 2, 24, 12, 15, tzinfo=timezone(timedelta(hours=2))),
]


def test_a_time_is_a_text_or_a_datetime(store: Store) -> None:
    for moment in MOMENTS:
        assert found(store, filters=Filters(since=moment)) == ["I like tea"], moment
        is_day = isinstance(moment, str) and "T" not in moment
        assert found(store, filters=Filters(until=moment)) == (["I like tea"] if is_day else []), moment


WRONG: dict[str, tuple[Callable[[Store], object], str, str]] = {
    "a mode": (
        lambda store: store.search("tea", mode="hybird"),
        "mode is 'hybird'",
        "'hybrid', 'text', 'vector'",
    ),  # type: ignore[arg-type]
    "a keyword": (
        lambda store: store.search("tea", chta="web:1"),  # type: ignore[call-overload]
        "search() does not accept 'chta'",
        "text, k, mode, chat",
    ),
    "a number": (lambda store: store.search("tea", k="5"), "k is '5'", "expected int, got str"),  # type: ignore[arg-type]
    "a bound": (lambda store: store.search("tea", k=0), "k is 0", ">= 1"),
    "a similarity": (lambda store: store.search("tea", min_similarity="x"), "min_similarity is 'x'", "float"),  # type: ignore[arg-type]
    "neighbours": (lambda store: store.search("tea", expand=101), "expand is 101", "<= 100"),
    "too many hits": (lambda store: store.search("tea", k=10**30), "k is 1000", "<= 1000000"),
    "a depth": (lambda store: store.search("tea", ranking={"depth": 10**30}), "depth is 1000", "<= 1000000"),
    "an empty text": (lambda store: store.search(" "), "text must not be empty", "words"),
    "syntax for vectors": (
        lambda store: store.search("tea", is_raw=True, mode="vector"),
        "is_raw",
        "omit one",
    ),
    "half a chat": (
        lambda _: memlog.Chat("cli", ""),
        "channel is 'cli', chat_id is ''",
        "Chat('telegram', 7)",
    ),
    "a chat of a bool": (
        lambda _: memlog.Chat("cli", True),
        "channel is 'cli', chat_id is True",
        "Chat('telegram', 7)",
    ),
    "a chat of a float": (
        lambda store: store.search("tea", chat=("telegram", 7.0)),  # type: ignore[arg-type]
        "chat is ('telegram', 7.0)",
        "telegram:7",
    ),
    "no text": (lambda store: store.search(None), "text is None", "str"),  # type: ignore[arg-type]
    "filters": (
        lambda store: store.search("tea", filters="web:1"),
        "filters: it takes fields by name, not 'web:1'",
        "chat",
    ),  # type: ignore[arg-type]
    "a filter": (
        lambda store: store.search("tea", filters={"chta": 1}),
        "does not accept 'chta'",
        "chat, role",
    ),
    "a role": (lambda _: Filters(role="usr"), "role is 'usr'", "'user', 'assistant', 'system', 'tool'"),  # type: ignore[arg-type]
    "a kind": (lambda _: Filters(kinds=["mail"]), "kinds is ['mail']", "'message', 'memory', 'document'"),  # type: ignore[arg-type]
    "a time": (lambda _: Filters(since="soon"), "invalid timestamp: 'soon'", "2026-02-24"),
    "ids": (lambda _: Filters(exclude="abc"), "not a collection of ids: 'abc'", "list"),  # type: ignore[arg-type]
    "a salience": (lambda _: Filters(min_salience=2), "min_salience is 2", "<= 1"),
    "a weight": (lambda _: Ranking(text_weight=float("nan")), "text_weight is nan", ">= 0"),
    "weights": (lambda _: Ranking(text_weight=0, vector_weight=0), "are both 0", "above 0"),
    "a chat": (lambda store: store.context("tea", chat="web"), "chat is 'web'", "telegram:7"),
    "three parts": (
        lambda store: store.conversations.sessions(("a", "b", "c")),
        "chat is ('a', 'b', 'c')",
        "telegram:7",
    ),  # type: ignore[arg-type]
    "a form": (lambda store: store.context("tea", form="jsn"), "form is 'jsn'", "'text', 'json', 'messages'"),  # type: ignore[arg-type]
    "tokens": (lambda store: store.context("tea", max_tokens="many"), "max_tokens is 'many'", "int"),  # type: ignore[arg-type]
    "an excluded id": (
        lambda store: store.context("tea", exclude="abc"),
        "not a collection of ids: 'abc'",
        "list",
    ),
    "an event": (lambda store: store.append("tea"), "not an event: 'tea'", "memlog.Message"),  # type: ignore[arg-type]
    "nothing": (lambda store: store.append(None), "not an event: None", "memlog.Message"),  # type: ignore[arg-type]
}


GROUPS: dict[str, tuple[Callable[[Any], object], str, str]] = {
    "no keyword of save": (
        lambda store: store.memories.save("tea", chta="web:1"),
        "memories.save() does not accept 'chta'",
        "content",
    ),
    "a memory's content": (lambda store: store.memories.save(7), "content is 7", "str"),
    "a memory's chat": (lambda store: store.memories.save("tea", chat=7), "chat is 7", "telegram:7"),
    "a memory's kind": (lambda store: store.memories.save("tea", kind="x"), "kind is 'x'", "'insight'"),
    "a category that is no text": (
        lambda store: store.memories.save("tea", category=["temp"]),
        "category is ['temp'], not one of",
        "use other",
    ),
    "an importance": (lambda store: store.memories.save("tea", importance=2), "importance is 2", "<= 1"),
    "one tag": (lambda store: store.memories.save("tea", tags="a"), "tags is 'a'", "array"),
    "duplicates not looked for": (
        lambda store: store.memories.save("tea", dedup=False, any_chat=True),
        "any_chat",
        "omit any_chat",
    ),
    "a memory's id": (lambda store: store.memories.get(7), "memory_id is 7", "str"),
    "a list of ids": (lambda store: store.memories.touch(["a"], "b"), "memory_ids is (['a'], 'b')", "str"),
    "a limit": (lambda store: store.memories.list(limit=-1), "limit is -1", ">= 1"),
    "rates": (lambda store: store.memories.decay(0.9), "rates must be a mapping, not 0.9", "by category"),
    "one category": (
        lambda store: store.memories.prune(categories="temp"),
        "categories must be a list, not 'temp'",
        "list",
    ),
    "a threshold": (lambda store: store.memories.prune(threshold=2), "threshold is 2", "<= 1"),
    "no keyword of set": (
        lambda store: store.facts.set("tea", "green", rank=1),
        "does not accept 'rank'",
        "ranks",
    ),
    "a list of values": (
        lambda store: store.facts.set("tea", ["green"], "b"),
        "values is (['green'], 'b')",
        "str",
    ),
    "a rank": (lambda store: store.facts.get("tea", rank=0), "rank is 0", ">= 1"),
    "a fact's chat": (lambda store: store.facts.list(chat=("a",)), "chat is ('a',)", "telegram:7"),
    "a question": (lambda store: store.facts.ask(None), "question is None", "str"),
    "a section": (lambda store: store.core.set("usr", "a", "b"), "section is 'usr'", "'user', 'agent'"),
    "a section that was never set": (
        lambda store: store.core.delete("usr", "a"),
        "section is 'usr'",
        "'user', 'agent'",
    ),
    "a keyword of values given one by one": (
        lambda store: store.facts.set("tea", values=["green"]),
        "facts.set() does not accept 'values'",
        "topic",
    ),
    "a section without a value": (lambda store: store.core.set("user", "a"), "core.set()", "value"),
    "a file": (lambda store: store.core.import_file(7), "not a path: 7", "pathlib.Path"),
    "a day": (lambda store: store.daily.list(date="soon"), "'soon'", "2026-02-24"),
    "a day and a stretch": (
        lambda store: store.daily.list(date="2026-02-24", since="2026-02-24"),
        "date cannot be combined with",
        "since and until",
    ),
    "tokens of a day": (lambda store: store.daily.record("tea", raw_tokens=-1), "raw_tokens is -1", ">= 0"),
    "one memory": (lambda store: store.daily.compress("a", memory_ids="m"), "memory_ids is 'm'", "array"),
}


def test_a_group_names_what_is_wrong_and_writes_nothing(store: Store) -> None:
    for wrong, (call, message, hint) in GROUPS.items():
        call, message, hint = GROUPS[wrong]
        before = sorted(store.path.glob("log/**/*.jsonl"))
        with refused(wrong) as caught:
            call(store)
        assert message in caught.value.message, wrong
        assert hint in caught.value.hint, wrong
        assert sorted(store.path.glob("log/**/*.jsonl")) == before, wrong


def test_a_chat_of_memories_and_facts_is_taken_in_each_of_its_forms(store: Store) -> None:
    for chat in CHATS:
        saved = store.memories.save("likes green tea", chat=chat)
        assert [each.chat for each in store.memories.list(chat=chat)] == ["web:1"], chat
        store.memories.update(saved.memory_id, chat=chat)
        assert store.facts.set("tea", "green", chat=chat).chat == "web:1"
        assert store.facts.get("tea", chat=chat).answer == "green"
        assert store.facts.ask("what is my tea", chat=chat).answer == "green"
        assert [fact.chat for fact in store.facts.list(chat=chat)] == ["web:1"]
        assert len(store.facts.remove("tea", chat=chat)) == 1


def test_a_memory_may_be_of_any_text_in_the_place_of_a_chat(store: Store) -> None:
    store.memories.save("likes green tea", chat="everyone")
    assert [each.chat for each in store.memories.list(chat="everyone")] == ["everyone"]


def test_a_request_is_taken_in_the_place_of_its_fields(store: Store) -> None:
    made = operations()["facts.set"].request(topic="tea", values=["green", "black"], chat="web:1")
    operations()["facts.set"](store.facts, made)
    assert [fact.value for fact in store.facts.list(chat="web:1")] == ["green", "black"]


def test_what_is_wrong_is_named_with_what_is_right(store: Store) -> None:
    for wrong, (call, message, hint) in WRONG.items():
        call, message, hint = WRONG[wrong]
        with refused(wrong) as caught:
            call(store)
        assert message in caught.value.message, wrong
        assert hint in caught.value.hint, wrong
        assert found(store) == ["I like tea"], "the read model is as it was"


def test_arguments_that_are_given_one_by_one_may_be_a_list(store: Store) -> None:
    store.facts.set("tea", ["green", "black"])  # type: ignore[arg-type]
    saved = store.memories.save("I drink tea")
    store.memories.touch([saved.memory_id])  # type: ignore[arg-type]
    assert [fact.value for fact in store.facts.list()] == ["green", "black"]
    assert str(inspect.signature(memlog.Memories.touch)).partition(" ->")[0] == "(self, /, *memory_ids: str)"


def test_a_naive_datetime_of_an_event_is_utc(store: Store) -> None:
    noon = datetime(2026, 2, 24, 12)
    (position,) = store.append(msgspec.structs.replace(SAID, id="naive", ts=noon))
    (other,) = store.append({**msgspec.structs.asdict(SAID), "type": "message", "id": "dict", "ts": noon})
    for each in (position, other):
        stored = store.get(each.id)
        assert stored is not None
        assert stored.ts == "2026-02-24T12:00:00.000Z"


def test_a_role_that_memlog_does_not_know_is_answered_with_those_that_it_knows(store: Store) -> None:
    with pytest.raises(BadInput, match="role is 'bot'") as caught:
        store.append({"type": "message", "channel": "web", "chat_id": "1", "role": "bot", "content": "x"})
    assert caught.value.hint == "use one of: user, assistant, system, tool"


def test_a_traceback_shows_the_hint(store: Store) -> None:
    with pytest.raises(BadInput) as caught:
        store.search("tea", mode="hybird")  # type: ignore[call-overload]
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.endswith("BadInput: mode is 'hybird'\nhint: use one of: 'hybrid', 'text', 'vector'\n")
    assert "msgspec" not in shown


def test_a_chat_is_made_of_two_texts() -> None:
    chat = memlog.Chat("web", "1:2")
    assert (chat.channel, chat.chat_id, str(chat)) == ("web", "1:2", "web:1:2")
    assert pickle.loads(pickle.dumps(chat)) == copy.deepcopy(chat) == Chat.of("web:1:2")
    with pytest.raises(TypeError):
        memlog.Chat("web:1")  # type: ignore[call-arg]


def test_what_a_raw_text_excludes_is_not_found_by_its_meaning(store: Store) -> None:
    store.append({"type": "memory_saved", "content": "I drink green tea, never coffee"})
    assert [hit.content for hit in store.search("tea NOT coffee", is_raw=True).hits] == ["I like tea"]
    assert store.search("zzzz", is_raw=True).hits == []


class _Text(str):
    """A text of a class of the caller."""

    def __str__(self) -> str:
        return "something else"


class _Silent:
    def __repr__(self) -> str:
        raise RuntimeError


OPTIONS: dict[str, Any] = {
    "a durability": {"durability": "fsnyc"},
    "a time that is no number": {"lock_timeout": "a"},
    "a time before now": {"lock_timeout": -1},
    "no time": {"lock_timeout": float("nan")},
    "sizes": {"chunk_sizes": (400, 80)},
    "no answer of yes or no": {"redact": "no"},
    "no seconds": {"document_seconds": 0},
    "a notifier": {"notify": 5},
    "what is stored": {"on_stored": 5},
    "a model": {"model": 5},
}


def test_a_wrong_option_opens_no_store(tmp_path: Path) -> None:
    for name, options in OPTIONS.items():
        with refused(name, match=f"^{next(iter(options))} is|not a path"):
            memlog.open(tmp_path / "store", **options)


def test_what_is_no_path_opens_no_store() -> None:
    for path in ["", None, b"x", 5, "a\0b", "~", "~/notes", "\ud800"]:
        with refused(path, match=r"not a path|is not expanded"):
            memlog.open(path)


ODD: dict[str, Callable[[Store], object]] = {
    "half a surrogate": lambda store: store.search("\ud800"),
    "half a surrogate in a list": lambda store: store.memories.save("tea", tags=["\ud800"]),
    "half a surrogate in a mode": lambda store: store.search("tea", mode="\ud800"),  # type: ignore[call-overload]
    "half a surrogate to prove": lambda store: store.erasure.prove("\ud800"),
    "half a surrogate as a pattern": lambda store: store.erasure.forget(match="\ud800"),
    "a NUL in a path": lambda store: store.documents.add("a\0b"),
    "a value that has no text": lambda store: store.search("tea", mode=_Silent()),  # type: ignore[call-overload]
    "a value of 200,000 characters": lambda store: store.search("tea", mode="x" * 200_000),  # type: ignore[call-overload]
    "a list within lists": lambda store: store.search(_nested(20_000)),  # type: ignore[call-overload]
    "a long number": lambda store: store.search("tea", k=10**5000),
    "a whole number that is none": lambda store: memlog.open(store.path, document_seconds=1.5),  # type: ignore[arg-type]
    "a passage of half a token": lambda _: memlog.ChunkSizes(window=100.5),  # type: ignore[arg-type]
    "no event that ends a watch": lambda store: store.maintenance.watch(stop=5),
    "no message that asks": lambda store: store.search("tea", filters=Filters(asking=5)),
    "no folder of projects": lambda _: memlog.Projects("\0").list(),
    "no function of progress": lambda store: store.documents.refresh(progress=5),
    "no text for the gate": lambda _: memlog.should_retrieve(None),  # type: ignore[arg-type]
    "bytes": lambda store: store.append(memlog.Message(channel="a", chat_id="1", role="user", content=b"x")),  # type: ignore[arg-type]
    "bytes in a dict": lambda store: store.append({"type": "fact_stored", "topic_key": "a", "value": b"x"}),
    "a datetime as a text": lambda store: store.append(
        {"type": "fact_stored", "topic_key": "a", "value": datetime(2026, 2, 24, tzinfo=UTC)}
    ),
}


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def test_an_odd_value_is_refused_and_shown_in_short(store: Store) -> None:
    for name, call in ODD.items():
        with refused(name) as caught:
            call(store)
        assert len(caught.value.message) < 500, name
        assert store.maintenance.status().events == 1, name


def test_a_text_of_a_class_of_the_caller_is_taken_for_what_it_holds(store: Store) -> None:
    saved = store.memories.save(_Text("I drink tea"), tags=[_Text("drink")])
    store.memories.touch(_Text(saved.memory_id))
    memory = store.memories.get(_Text(saved.memory_id))
    assert memory is not None
    assert (memory.content, memory.tags) == ("I drink tea", ["drink"])


def test_what_a_context_appends_is_told_to_on_stored(tmp_path: Path) -> None:
    told: list[memlog.Position] = []
    with memlog.open(tmp_path / "store", on_stored=told.extend) as store:
        store.memories.save("I drink green tea")
        told.clear()
        store.context("tea")
    assert [position.stream for position in told] == ["memory", "memory"]

"""No read of a project gives a row of another; no read of a chat gives a row of another, or of none."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memlog
from memlog.eventlog.log.layout import EMBEDDINGS
from memlog.eventlog.log.reader import belongs_to_chat
from tests.isolation.reads import (
    ALL,
    READS,
    SLOW_READS,
    Answer,
    Asked,
    Read,
    chats_asked_for,
    of_the_log,
    what_is_unknown,
    words_asked_for,
)
from tests.isolation.worlds import World, canaries_in, name_of, worlds
from tests.support.examples import examples
from tests.support.in_memory import memory

Mode = Literal["text", "vector", "hybrid"]


def check(world: World, answer: Answer) -> None:
    """What was answered holds no word, no name and no place of whom it may not be of."""
    if answer.whose == ALL:
        allowed = {*world.canaries}
    else:
        given = {answer.whose, None} if answer.with_own_scope else {answer.whose}
        allowed = {word for word, whose in world.canaries.items() if whose in given}
    document = msgspec.json.encode(answer.given, enc_hook=str)
    found = canaries_in(document)
    assert found <= allowed, f"{answer.read} of {answer.whose}: {found - allowed}"
    if isinstance(answer.whose, tuple):
        for name, value in members_in(msgspec.json.decode(document)):
            where = f"{answer.read} of {answer.whose}: {name} is {value}"
            assert name != "chat" or value in (None, name_of(answer.whose)), where
            is_stream = name == "stream" and value.startswith("conversations/")
            assert not is_stream or belongs_to_chat(value, answer.whose), where


def members_in(value: Any) -> Iterator[tuple[str, Any]]:
    """Every member of every object, however deep."""
    if isinstance(value, dict):
        yield from value.items()
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from members_in(inner)


def opened(held: ExitStack, folder: Path, world: World, cache: Path | None) -> memlog.Store:
    """The store of a project, in which all of it stands. With a cache its passages have vectors; without
    one no model is found, and everything is read by words."""
    path = memlog.Projects(folder).path(f"a{'_' * world.number}")
    store = held.enter_context(
        memlog.open(path, durability="os", model=folder / "none" if cache is None else None)
    )
    store.append(world.events)
    if cache is not None and cache.exists():
        (path / EMBEDDINGS).parent.mkdir()
        shutil.copyfile(cache, (path / EMBEDDINGS))
    store.maintenance.project(embed=cache is not None)
    if cache is not None:
        store.close()
        shutil.copyfile((path / EMBEDDINGS), cache)
    return store


def check_isolation(drawn: list[World], reads: Iterable[Read], mode: Mode, cache: Path | None = None) -> None:
    """Ask every store of the drawn projects all of `reads`, while the others are open, too: what a process
    keeps of one must not come up in another."""
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(dir=memory())))
        stores = [opened(held, folder, world, cache) for world in drawn]
        everyone = [
            Asked(store, world, chats_asked_for(world, drawn), words_asked_for(drawn), mode)
            for store, world in zip(stores, drawn, strict=True)
        ]
        for read in reads:
            for asked in everyone:
                for answer in read(asked):
                    check(asked.world, answer)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors that examples before have computed: by text, so that they are nobody's."""
    return tmp_path_factory.mktemp("vectors") / "embeddings.db"


@settings(max_examples=examples(15), suppress_health_check=[*HealthCheck])
@given(drawn=worlds())
def test_no_read_gives_a_row_of_another_project_or_of_another_chat_than_was_asked_for(
    drawn: list[World],
) -> None:
    check_isolation(drawn, [*READS.values(), of_the_log], "text")


@settings(max_examples=examples(5), suppress_health_check=[*HealthCheck])
@given(drawn=worlds(), mode=st.sampled_from(["vector", "hybrid"]))
def test_no_read_by_meaning_and_none_of_the_whole_store_does_either(
    cache: Path, drawn: list[World], mode: Mode
) -> None:
    """Nor does a byte of a store hold a word of another: `prove` is among them."""
    by_meaning = [READS["search"], READS["context"]]
    check_isolation(drawn, [*by_meaning, *SLOW_READS.values()], mode, cache)


def test_every_public_method_is_known_as_a_read_or_as_none(store: memlog.Store) -> None:
    assert what_is_unknown(store) == set()


# Each read finds something in its own chat


ANNA, BORIS = ("telegram", "a"), ("telegram", "a_b")


@pytest.fixture
def world() -> World:
    saved = 6
    return World(0, [ANNA, BORIS], [(saved, place, 0, place) for place in range(3)])


@pytest.fixture
def asked(world: World, tmp_path: Path) -> Iterator[Asked]:
    """A project in which two chats, and none, have said one of each kind."""
    with ExitStack() as held:
        store = opened(held, tmp_path, world, None)
        yield Asked(store, world, [ANNA, BORIS], words_asked_for([world]))


def test_across_the_chats_of_a_project_all_is_found_unless_a_chat_is_asked_for(asked: Asked) -> None:
    found = asked.store.search(asked.words, mode="text", k=100).hits
    assert canaries_in(msgspec.json.encode(found)) == {*asked.world.canaries}
    kinds = {(hit.chat, hit.kind, hit.category) for hit in found}
    for chat in map(name_of, asked.world.chats):
        of_chat = {("message", None), ("memory", "other"), ("memory", "summaries"), ("memory", "facts")}
        assert {(chat, *each) for each in of_chat} <= kinds
        filters = memlog.Filters(chat=(*chat.split(":", 1),))
        only = asked.store.search(asked.words, mode="text", k=100, filters=filters).hits
        assert {(hit.kind, hit.category) for hit in only} == of_chat
        assert {hit.chat for hit in only} == {chat}
    of_none = {("memory", "other"), ("memory", "facts"), ("memory", "daily_events"), ("document", None)}
    assert {(None, *each) for each in of_none} <= kinds


WITHOUT_WORDS = {
    *("stream_with", "conversations.sessions", "exchange.find_histories"),
    *("maintenance.stats", "maintenance.quarantine", "exchange.list_imports"),
}
"""What they answer of these chats are names and numbers."""


def test_each_read_answers_with_what_was_said_where_something_was(asked: Asked) -> None:
    for name in sorted({*READS} - WITHOUT_WORDS):
        for whose in (ANNA, None, ALL):
            given = [answer.given for answer in READS[name](asked) if answer.whose == whose]
            assert not given or canaries_in(msgspec.json.encode(given)), (name, whose)

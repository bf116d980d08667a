"""Arguments of the wrong form: memlog accepts those with one meaning, and names the others in an error."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import memlog
from memlog import BadInput, Filters, Ranking, Store
from memlog.eventlog.chat import Chat

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


@pytest.mark.parametrize("chat", CHATS, ids=repr)
def test_a_chat_is_taken_in_each_of_its_forms(store: Store, chat: Any) -> None:
    assert found(store, chat=chat) == found(store, filters={"chat": chat}) == ["I like tea"]
    assert "I like tea" in store.context("tea", chat=chat).text
    assert [session.chat for session in store.conversations.sessions(chat)] == ["web:1"]
    assert [message.content for message in store.conversations.window(chat).messages] == ["I like tea"]
    assert store.conversations.session_content(chat).chat == "web:1"
    assert store.conversations.summaries(chat) == []
    assert store.erasure.forget(chat=chat).redacted == 1


def test_a_chat_is_still_taken_as_two_texts(store: Store) -> None:
    assert store.conversations.window(("web", "1")) == store.conversations.window("web:1")
    assert store.conversations.session_content(("web", "1")) == store.conversations.session_content("web:1")


def test_one_event_needs_no_list(store: Store) -> None:
    line = b'{"type":"memory_saved","content":"likes oolong tea"}'
    assert len(store.append(SAID)) == len(store.append(line)) == 1
    assert len(store.append({"type": "memory_saved", "content": "likes black tea"})) == 1
    assert len(found(store)) == 4


def test_filters_and_a_ranking_may_be_dicts(store: Store) -> None:
    assert found(store, filters={"role": "assistant"}) == []
    assert found(store, filters={"role": "user"}, ranking={"depth": 3}) == ["I like tea"]
    assert Filters.of({"kinds": ["memory"]}) == Filters(kinds=frozenset({"memory"}))


@pytest.mark.parametrize(
    "moment",
    [
        "2026-02-24",
        "2026-02-24T10:15:00Z",
        datetime(2026, 2, 24, 10, 15, tzinfo=UTC),
        datetime(2026, 2, 24, 10, 15),
        datetime(2026, 2, 24, 12, 15, tzinfo=timezone(timedelta(hours=2))),
    ],
    ids=str,
)
def test_a_time_is_a_text_or_a_datetime(store: Store, moment: Any) -> None:
    assert found(store, filters=Filters(since=moment)) == ["I like tea"]
    assert found(store, filters=Filters(until=moment)) == []


WRONG: dict[str, tuple[Callable[[Store], object], str, str]] = {
    "a mode": (
        lambda store: store.search("tea", mode="hybird"),
        "mode is 'hybird'",
        "'hybrid', 'text', 'vector'",
    ),  # type: ignore[arg-type]
    "a number": (lambda store: store.search("tea", k="5"), "k is '5'", "expected int, got str"),  # type: ignore[arg-type]
    "a bound": (lambda store: store.search("tea", k=-1), "k is -1", ">= 0"),
    "a similarity": (lambda store: store.search("tea", min_similarity="x"), "min_similarity is 'x'", "float"),  # type: ignore[arg-type]
    "neighbours": (lambda store: store.search("tea", expand=101), "expand is 101", "<= 100"),
    "no text": (lambda store: store.search(None), "text is None", "str"),  # type: ignore[arg-type]
    "filters": (lambda store: store.search("tea", filters="web:1"), "'web:1' is no Filters", "chat"),  # type: ignore[arg-type]
    "a filter": (lambda store: store.search("tea", filters={"chta": 1}), "takes no 'chta'", "chat, role"),
    "a role": (lambda _: Filters(role="usr"), "role is 'usr'", "'user', 'assistant', 'system', 'tool'"),  # type: ignore[arg-type]
    "a kind": (lambda _: Filters(kinds=["mail"]), "kinds is ['mail']", "'message', 'memory', 'document'"),  # type: ignore[arg-type]
    "a time": (lambda _: Filters(since="soon"), "'soon' is no time", "2026-02-24"),
    "ids": (lambda _: Filters(exclude="abc"), "'abc' is no collection of ids", "list"),  # type: ignore[arg-type]
    "a salience": (lambda _: Filters(min_salience=2), "min_salience is 2", "<= 1"),
    "a weight": (lambda _: Ranking(text_weight=float("nan")), "text_weight is nan", ">= 0"),
    "weights": (lambda _: Ranking(text_weight=0, vector_weight=0), "are both 0", "must count"),
    "a chat": (lambda store: store.context("tea", chat="web"), "chat is 'web'", "telegram:7"),
    "three parts": (
        lambda store: store.conversations.sessions(("a", "b", "c")),
        "chat is ('a', 'b', 'c')",
        "telegram:7",
    ),  # type: ignore[arg-type]
    "a form": (lambda store: store.context("tea", form="jsn"), "form is 'jsn'", "'text', 'json', 'messages'"),  # type: ignore[arg-type]
    "tokens": (lambda store: store.context("tea", max_tokens="many"), "max_tokens is 'many'", "int"),  # type: ignore[arg-type]
    "an excluded id": (lambda store: store.context("tea", exclude="abc"), "'abc' is no collection", "list"),
    "an event": (lambda store: store.append("tea"), "'tea' is no event", "memlog.Message"),  # type: ignore[arg-type]
    "nothing": (lambda store: store.append(None), "None is no event", "memlog.Message"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_named_with_what_is_right(store: Store, wrong: str) -> None:
    call, message, hint = WRONG[wrong]
    with pytest.raises(BadInput) as caught:
        call(store)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert found(store) == ["I like tea"], "the read model is as it was"

"""Summaries: what was written, in the one order."""

import pytest

import memlog


def written(content, ts, chat_id="1", **more):
    event = {"type": "summary_written", "channel": "cli", "chat_id": chat_id, "content": content, "ts": ts}
    return event | more


def test_summaries_come_in_the_order_of_their_times(store):
    store.append([written("second", "2026-02-24T11:00:00Z"), written("first", "2026-02-24T10:00:00Z")])
    store.append([written("other", "2026-02-24T10:30:00Z", "2")])
    assert [each.content for each in store.conversations.summaries()] == ["first", "other", "second"]
    assert [each.content for each in store.conversations.summaries(("cli", "1"))] == ["first", "second"]


def test_a_summary_says_what_it_is_about_and_where_it_stands(store):
    stretch = {"from_message_id": "a", "to_message_id": "b", "id": "s"}
    (position,) = store.append([written("tea", "2026-02-24T10:00:00Z", **stretch)])
    (summary,) = store.conversations.summaries()
    assert (summary.id, summary.chat, summary.from_message_id, summary.to_message_id) == (
        "s",
        "cli:1",
        "a",
        "b",
    )
    assert (summary.position.stream, summary.position.offset, summary.position.line) == (
        position.stream,
        position.offset,
        1,
    )


def test_a_chat_of_which_only_a_summary_stands_is_known(store):
    store.append([written("tea", "2026-02-24T10:00:00Z")])
    assert store.conversations.window(("cli", "1")).messages == []
    assert store.conversations.sessions(("cli", "1")) == []


def test_the_summaries_of_an_unknown_chat_are_not_found_and_of_an_empty_store_none(store):
    assert store.conversations.summaries(("cli", "1")) == store.conversations.summaries() == []
    store.append([written("tea", "2026-02-24T10:00:00Z")])
    with pytest.raises(memlog.NotFound) as caught:
        store.conversations.summaries(("cli", "2"))
    assert caught.value.code == "session_not_found"

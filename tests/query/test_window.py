"""Windows: the newest messages of a chat's current session, in the one order."""

import pytest

import memlog
from memlog.projector.text.tokens import count_tokens


@pytest.fixture
def store(fixture_store):
    with memlog.open(fixture_store("session-breaks")) as opened:
        yield opened


def ids(window):
    return [message.id for message in window.messages]


def test_a_window_begins_after_the_last_break(store):
    window = store.conversations.window(("cli", "42"))
    assert (window.chat, window.session_start, ids(window)) == ("cli:42", "m3", ["m3", "m5"])


def test_without_a_break_the_first_message_starts_the_session(store):
    window = store.conversations.window(("cli", "quiet"))
    assert (window.session_start, ids(window)) == ("n1", ["n1"])


def test_after_a_break_that_nothing_follows_the_session_is_empty(store):
    window = store.conversations.window(("cli", "ended"))
    assert (window.session_start, window.messages) == (None, [])


def test_the_last_n_are_the_newest_and_the_session_starts_where_it_did(store):
    window = store.conversations.window(("cli", "42"), last=1)
    assert (window.session_start, ids(window)) == ("m3", ["m5"])


def test_a_budget_of_tokens_takes_whole_messages_only(store):
    newest = count_tokens("The next day, the same session")
    assert ids(store.conversations.window(("cli", "42"), tokens=newest)) == ["m5"]
    assert ids(store.conversations.window(("cli", "42"), tokens=newest - 1)) == []
    assert ids(store.conversations.window(("cli", "42"), tokens=newest + count_tokens("Back again"))) == [
        "m3",
        "m5",
    ]


def test_across_sessions_a_window_goes_on_before_the_breaks_and_has_none_of_them(store):
    window = store.conversations.window(("cli", "42"), across_sessions=True)
    assert ids(window) == ["m1", "m2", "m4", "m3", "m5"]
    assert {message.type for message in window.messages} == {"message"}
    assert window.session_start == "m3"
    assert ids(store.conversations.window(("cli", "ended"), across_sessions=True)) == ["o1"]
    assert store.conversations.window(("cli", "ended"), across_sessions=True).session_start is None


def test_across_sessions_a_number_and_a_budget_count_from_the_newest(store):
    assert ids(store.conversations.window(("cli", "42"), last=3, across_sessions=True)) == ["m4", "m3", "m5"]
    newest = [
        "Written late, said in the first session",
        "Back again",
        "The next day, the same session",
    ]
    budget = sum(map(count_tokens, newest))
    assert ids(store.conversations.window(("cli", "42"), tokens=budget, across_sessions=True)) == [
        "m4",
        "m3",
        "m5",
    ]
    assert ids(store.conversations.window(("cli", "42"), tokens=budget - 1, across_sessions=True)) == [
        "m3",
        "m5",
    ]
    assert ids(store.conversations.window(("cli", "42"), tokens=budget, last=2, across_sessions=True)) == [
        "m3",
        "m5",
    ]


def test_a_message_of_a_window_has_what_was_said_of_it(tmp_path):
    said = {"role": "tool", "name": "Ann", "kind": "subagent_result", "meta": {"n": [1, 2.5]}}
    with memlog.open(tmp_path / "store") as store:
        store.append(memlog.Message(channel="cli", chat_id="1", content="{}", **said))
        (found,) = store.conversations.window(("cli", "1")).messages
    assert (found.role, found.name, found.type, found.meta) == tuple(said.values())


def test_fifty_are_given_where_nothing_is_asked(tmp_path):
    with memlog.open(tmp_path / "store") as store:
        store.append(
            memlog.Message(channel="cli", chat_id="1", role="user", content=str(number))
            for number in range(60)
        )
        assert [message.content for message in store.conversations.window(("cli", "1")).messages] == [
            str(number) for number in range(10, 60)
        ]


def test_two_folders_of_one_chat_are_read_together_in_one_order(fixture_store):
    with memlog.open(fixture_store("foreign")) as store:
        assert ids(store.conversations.window(("telegram", "a_b"))) == ["h1", "h2"]


def test_an_unknown_chat_is_not_found_but_an_empty_store_knows_every_chat(store, tmp_path):
    with pytest.raises(memlog.NotFound) as raised:
        store.conversations.window(("cli", "nobody"))
    assert raised.value.code == "session_not_found"
    (tmp_path / "empty" / "log").mkdir(parents=True)
    with memlog.open(tmp_path / "empty") as empty:
        assert empty.conversations.window(("cli", "nobody")).messages == []

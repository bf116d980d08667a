"""Sessions: what a plain reading of the messages in the one order says, and the view says too."""

import tempfile
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memlog
from memlog.eventlog.log.streams import conversation_stream
from memlog.projector.lifecycle import Projector
from memlog.projector.sqlite import count_rows
from memlog.projector.text.tokens import count_tokens
from memlog.query.conversations import window_of_chat
from memlog.query.sessions import Session, current_session_content, current_sessions
from tests.support.examples import examples


def in_order(events):
    """(chat, name of the break or None, model, ts, place, id) as sessions of each chat, the last one last."""
    chats = {}
    for chat, is_break, model, ts, event_id in events:
        found = chats.setdefault(chat, [])
        if is_break or not found:
            found.append({"start": None, "broken": None, "said": None, "ts": ts, "messages": 0})
        session = found[-1]
        if is_break:
            session["broken"] = model
            continue
        session["start"] = session["start"] or event_id
        session["said"] = model or session["said"]
        session["messages"] += 1
    return {
        chat: [
            Session(
                chat=chat,
                session_start=each["start"],
                model=each["broken"] or each["said"],
                created_at=each["ts"],
                messages=each["messages"],
            )
            for each in found
        ]
        for chat, found in chats.items()
    }


CHATS = ["cli:a_b", "cli:a", "irc:a_b"]
_EVENTS = st.lists(
    st.tuples(
        st.sampled_from(CHATS),
        st.booleans(),  # a session break
        st.sampled_from([None, "haiku", "opus"]),
        st.integers(0, 3),  # a minute: equal and late times are common
        st.booleans(),  # a foreign line, in a folder made by hand
        st.sampled_from(["2026-02-24", "2026-02-25"]),
    ),
    max_size=25,
)


def written(store, events, start=0):
    """Appends lines to segments by hand and says with their places in the one order what they are."""
    placed = []
    for number, (chat, is_break, model, minute, is_foreign, day) in enumerate(events, start):
        event_id, ts = f"e{number}", f"2026-02-24T10:0{minute}:00.000Z"
        channel, _, chat_id = chat.partition(":")
        stream = f"conversations/{channel}_{chat_id}" if is_foreign else conversation_stream(channel, chat_id)
        made = foreign if is_foreign else native
        path = store / "log" / stream / f"{day}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        offset = path.stat().st_size if path.exists() else 0
        with path.open("ab") as file:
            file.write(msgspec.json.encode(made(event_id, ts, channel, chat_id, is_break, model)) + b"\n")
        placed.append(((ts, day, offset, stream), (chat, is_break, model, ts, event_id)))
    return placed


def native(event_id, ts, channel, chat_id, is_break, model):
    place = {"id": event_id, "ts": ts, "channel": channel, "chat_id": chat_id}
    if is_break:
        return memlog.SessionBreak(**place, model=model)
    return memlog.Message(**place, role="user", content="", meta=None if model is None else {"model": model})


def foreign(event_id, ts, channel, chat_id, is_break, model):
    """Such lines stand in folders made by hand: cli_a_b, where memlog's own is cli_a%5fb."""
    return {
        **{"id": event_id, "ts": ts, "content": "", "role": "system" if is_break else "user"},
        "type": "session_break" if is_break else None,
        "meta": {"channel": channel, "chat_id": chat_id, "model": model},
    }


@settings(max_examples=examples(15))
@given(first=_EVENTS, late=_EVENTS)
def test_the_view_says_what_a_plain_reading_says(first, late):
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        projector = Projector(store)
        placed = []
        for events in (first, late):
            placed += written(store, events, start=len(placed))
            projector.catch_up()
        assert count_rows(projector.connect_to_live(), "quarantine") == 0
        expected = in_order([event for _, event in sorted(placed)])
        every = current_sessions(projector.connect_to_live(), is_all=True)
        current = current_sessions(projector.connect_to_live())
        for chat in expected:
            assert [each for each in every if each.chat == chat] == _newest_first(expected[chat])
            assert current_sessions(
                projector.connect_to_live(), tuple(chat.split(":", 1)), is_all=True
            ) == _newest_first(expected[chat])
        assert sorted(each.chat for each in current) == sorted(expected)
        for each in current:
            assert each == expected[each.chat][-1]
        for chat in expected:
            check_windows(projector.connect_to_live(), chat, sorted(placed))
        assert [each.created_at for each in every] == sorted(
            (each.created_at for each in every), reverse=True
        )
        projector.close()


def check_windows(db, chat, placed):
    """Windows and contents of a chat have its messages, in order, without a break and of no other chat."""
    said = [(is_break, event_id) for _, (of, is_break, _, _, event_id) in placed if of == chat]
    breaks = [place for place, (is_break, _) in enumerate(said) if is_break]
    whole = [event_id for is_break, event_id in said if not is_break]
    current = [event_id for _, event_id in said[breaks[-1] + 1 if breaks else 0 :]]
    key = tuple(chat.split(":", 1))
    for across, expected in ((False, current), (True, whole)):
        found = window_of_chat(db, key, last=1000, across_sessions=across)
        assert [message.id for message in found.messages] == expected
        assert found.session_start == (current[0] if current else None)
        content = current_session_content(db, key, last=None, tokens=None, across_sessions=across)
        assert content.messages == len(expected)


def _newest_first(found):
    return found[::-1]


@pytest.fixture
def store(fixture_store):
    with memlog.open(fixture_store("session-breaks")) as opened:
        yield opened


def test_the_session_starts_where_the_window_does(store):
    for session in store.conversations.sessions():
        window = store.conversations.window(session.chat.split(":", 1))
        assert session.session_start == window.session_start, session.chat


def test_a_break_that_nothing_follows_starts_a_session_without_a_message(store):
    (session,) = store.conversations.sessions(("cli", "ended"))
    assert (session.session_start, session.messages) == (None, 0)


def test_the_content_of_a_session_is_what_was_said_and_by_whom(store):
    content = store.conversations.session_content(("cli", "42"))
    assert (content.chat, content.session_start, content.messages) == ("cli:42", "m3", 2)
    assert content.content == "user: Back again\nuser: The next day, the same session"
    assert store.conversations.session_content(("cli", "ended")).content == ""


def test_the_content_of_all_sessions_has_no_break_in_it(store):
    assert store.conversations.session_content(("cli", "42"), across_sessions=True).content.splitlines() == [
        "user: Good morning",
        "assistant: Good morning. What shall we do today?",
        "user: Written late, said in the first session",
        "user: Back again",
        "user: The next day, the same session",
    ]
    assert store.conversations.session_content(("cli", "ended"), across_sessions=True).messages == 1


def test_what_was_said_stays_as_it_was_and_a_speaker_has_the_name_that_the_message_gives(tmp_path):
    odd = "  two\n\nlines \x1b[31m \u202e\t"
    with memlog.open(tmp_path) as store:
        store.append([memlog.Message(channel="cli", chat_id="1", role="user", name="Anna", content=odd)])
        store.append([memlog.Message(channel="cli", chat_id="2", role="user", content="another chat")])
        assert store.conversations.session_content(("cli", "1")).content == f"user/Anna: {odd}"


def test_all_of_a_session_is_its_content_where_no_limit_is_given(tmp_path):
    with memlog.open(tmp_path) as store:
        store.append(
            memlog.Message(channel="cli", chat_id="1", role="user", content=f"number {n}") for n in range(60)
        )
        assert store.conversations.session_content(("cli", "1")).messages == 60
        assert (
            store.conversations.session_content(("cli", "1"), last=2).content
            == "user: number 58\nuser: number 59"
        )


def test_the_content_fits_into_its_tokens_with_the_speakers(store):
    content = partial(store.conversations.session_content, ("cli", "42"), across_sessions=True)
    for tokens in (1, 8, 9, 20, 30):
        found = content(tokens=tokens)
        assert count_tokens(found.content) <= tokens
        assert count_tokens(content(last=found.messages + 1).content) > tokens


def test_a_model_that_is_no_text_names_none(tmp_path):
    with memlog.open(tmp_path) as store:
        for number, model in enumerate([5, {"name": "x"}, None]):
            said = memlog.Message(
                channel="cli", chat_id=str(number), role="user", content="", meta={"model": model}
            )
            store.append([said])
        assert [session.model for session in store.conversations.sessions()] == [None, None, None]


def test_the_sessions_of_an_unknown_chat_are_not_found_and_of_an_empty_store_none(store, tmp_path):
    with pytest.raises(memlog.NotFound) as caught:
        store.conversations.sessions(("cli", "nobody"))
    assert caught.value.code == "session_not_found"
    with pytest.raises(memlog.NotFound) as caught:
        store.conversations.session_content(("cli", "nobody"))
    assert caught.value.code == "session_not_found"
    (tmp_path / "empty" / "log").mkdir(parents=True)
    with memlog.open(tmp_path / "empty") as empty:
        assert empty.conversations.sessions(("cli", "nobody"), all=True) == []
        assert empty.conversations.sessions() == []
        assert empty.conversations.session_content(("cli", "nobody")).content == ""

"""Expansion: a hit, or an event, with what stands around it."""

import pytest

import memlog
from memlog.query.conversations import MAX_NEIGHBOURS
from tests.support.refusals import refused

PARAGRAPHS = [f"Paragraph {number} is about word{number}. " + "It goes on. " * 4 for number in range(12)]


@pytest.fixture
def breaks(fixture_store):
    with memlog.open(fixture_store("session-breaks")) as opened:
        yield opened


@pytest.fixture
def store(tmp_path):
    """An empty store of short passages."""
    with memlog.open(tmp_path / "store", chunk_sizes=memlog.ChunkSizes(64, 16)) as opened:
        yield opened


def said(number, *, chat="1", ts=None):
    return memlog.Message(
        id=f"{chat}-{number}", channel="cli", chat_id=chat, role="user", content=f"tea {number}", ts=ts
    )


def ids(found):
    return [message.id for message in found.around.messages]


def only_hit(store, text, **more):
    (hit,) = store.search(text, mode="text", k=1, **more).hits
    return hit


def test_a_message_is_given_with_n_before_and_n_behind_it(store):
    store.append(said(number) for number in range(10))
    assert ids(only_hit(store, "5", expand=2)) == ["1-3", "1-4", "1-5", "1-6", "1-7"]
    assert ids(store.get("1-5", around=1)) == ["1-4", "1-5", "1-6"]


def test_at_the_ends_of_a_chat_there_are_fewer(store):
    store.append(said(number) for number in range(3))
    assert ids(store.get("1-0", around=1)) == ["1-0", "1-1"]
    assert ids(store.get("1-2", around=5)) == ["1-0", "1-1", "1-2"]


def test_messages_of_other_chats_are_no_neighbours(store):
    store.append(said(number, chat=chat) for number in range(4) for chat in ("1", "2"))
    assert ids(store.get("2-1", around=1)) == ["2-0", "2-1", "2-2"]


def test_a_window_around_a_message_stays_in_its_session(breaks):
    assert ids(breaks.get("m1", around=9)) == ["m1", "m2", "m4"]
    assert ids(breaks.get("m3", around=9)) == ["m3", "m5"]


def test_neighbours_stand_in_the_one_order_whatever_the_order_of_their_lines(store):
    times = ["2026-02-24T10:00:03Z", "2026-02-24T10:00:01Z", "2026-02-24T10:00:02Z", "2026-02-24T10:00:02Z"]
    store.append([said(number, ts=ts) for number, ts in enumerate(times)])
    assert ids(store.get("1-2", around=9)) == ["1-1", "1-2", "1-3", "1-0"]
    assert ids(store.get("1-3", around=1)) == ["1-2", "1-3", "1-0"]


def test_two_folders_of_one_chat_are_one_window(fixture_store):
    with memlog.open(fixture_store("foreign")) as store:
        assert ids(store.get("h1", around=1)) == ["h1", "h2"]


def test_a_window_around_the_newest_message_ends_as_the_chats_window_does(breaks):
    window = breaks.conversations.window(("cli", "42"))
    assert breaks.get(window.messages[-1].id, around=MAX_NEIGHBOURS).around.messages == window.messages


def test_a_passage_of_a_document_is_given_with_the_text_around_it(store):
    text = "# Words\n\n" + "\n\n".join(PARAGRAPHS) + "\n"
    store.append([memlog.DocumentIndexed(source_id="guide", file="words.md", content=text)])
    alone, one = only_hit(store, "word6"), only_hit(store, "word6", expand=1)
    around = one.around
    assert (alone.around, alone.content, around.messages) == (None, one.content, [])
    assert around.start_line < one.start_line <= one.end_line < around.end_line
    assert around.content.strip() in "\n".join(text.split("\n")[around.start_line - 1 : around.end_line])


def test_all_neighbours_of_a_passage_are_the_whole_document(store):
    text = "\n\n".join(PARAGRAPHS)
    store.append([memlog.DocumentIndexed(source_id="guide", file="words.md", content=text)])
    assert only_hit(store, "word6", expand=MAX_NEIGHBOURS).around.content.strip() == text.strip()


def test_nothing_stands_around_what_is_given_whole(store):
    store.append(
        [
            memlog.MemorySaved(id="y1", memory_id="tea", content="likes tea"),
            memlog.SummaryWritten(channel="cli", chat_id="1", content="they drank tea"),
            memlog.SourceRegistered(source_id="notes", kind="memory", root="/notes"),
            memlog.DocumentIndexed(source_id="notes", file="MEMORY.md", content="tea is green"),
        ]
    )
    hits = store.search("tea", mode="text", expand=3).hits
    assert [(hit.kind, hit.around) for hit in hits] == [("memory", None)] * 3
    assert store.get("tea", around=3).around is None


def test_a_session_break_has_no_window(breaks):
    assert breaks.get("b1", around=3).around is None


def test_what_is_not_asked_for_is_not_given(store):
    store.append(said(number) for number in range(3))
    assert only_hit(store, "1").around is None
    assert store.get("1-1").around is None


def test_a_number_of_neighbours_that_cannot_be_is_refused(store):
    for neighbours in (-1, MAX_NEIGHBOURS + 1, 2**70):
        with refused(neighbours):
            store.search("tea", expand=neighbours)
        with refused(neighbours):
            store.get("tea", around=neighbours)

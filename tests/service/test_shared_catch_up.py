"""Reads of several threads share catch-ups, and each sees what was appended before it."""

import os
import shutil
import threading
import time
from contextlib import contextmanager

import pytest

import memlog
from memlog.eventlog.files.locks import holding_lock
from memlog.eventlog.log.reader import find_changed_streams, read_log_state
from memlog.projector import lifecycle
from memlog.projector.sqlite import transaction
from memlog.service.engine.read_model import _QUERY_LOCK_TIMEOUT, SharedCatchUp


class Turn:
    """A lock that tells of who waits for it."""

    def __init__(self):
        self._lock = threading.RLock()
        self._waits = threading.Semaphore(0)

    def __enter__(self):
        if not self._lock.acquire(blocking=False):
            self._waits.release()
            self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()

    def _is_owned(self):
        return self._lock._is_owned()

    def wait_for(self, count):
        """Until so many more wait."""
        for _ in range(count):
            assert self._waits.acquire(timeout=60)


def with_turn(state):
    """What shares catch-ups, and its lock."""
    shared = SharedCatchUp(state)
    shared._turn = turn = Turn()
    return shared, turn


def test_reads_that_wait_share_the_next_catch_up():
    numbers = iter(range(1000))
    shared, turn = with_turn(lambda: next(numbers))
    began, heartbeat, made = threading.Event(), threading.Event(), []

    def catch_up(*_):
        made.append(threading.current_thread())
        began.set()
        return None, heartbeat.wait(60)

    first = threading.Thread(target=shared.catch_up_or_join, args=(catch_up, 10))
    first.start()
    began.wait(60)
    others = [threading.Thread(target=shared.catch_up_or_join, args=(catch_up, 10)) for _ in range(5)]
    for thread in others:
        thread.start()
    turn.wait_for(len(others))
    heartbeat.set()
    for thread in (first, *others):
        thread.join(60)
    assert len(made) == 2, "the one that ran could not be relied on; one more served all"


def test_a_catch_up_that_serves_others_looks_again_when_its_turn_comes():
    state, given = ["a"], []
    shared, turn = with_turn(lambda: state[0])
    began, heartbeat = threading.Event(), threading.Event()

    def catch_up(_, before, now):
        given.append((before, now))
        began.set()
        return None, heartbeat.wait(60)

    threads = []
    for now in ("a", "b", "c"):
        state[0] = now
        threads.append(threading.Thread(target=shared.catch_up_or_join, args=(catch_up, 10)))
        threads[-1].start()
        began.wait(60)
        turn.wait_for(len(threads[:2]) - 1)
    heartbeat.set()
    for thread in threads:
        thread.join(60)
    assert given == [(None, "a"), ("a", "c")]


def test_while_nothing_changes_no_read_catches_up():
    made, state = [], ["a"]
    shared = SharedCatchUp(lambda: state[0])

    def catch_up(*_):
        made.append(state[0])
        return None, True

    for now in ("a", "a", "b", "b", None, None):
        state[0] = now
        shared.catch_up_or_join(catch_up, 1)
    assert made == ["a", "b", None, None]


def test_a_catch_up_that_left_something_or_failed_is_made_again():
    results = iter([False, ValueError("no room"), True])
    shared, made = SharedCatchUp(lambda: "a"), []

    def catch_up(*_):
        made.append(result := next(results))
        if isinstance(result, ValueError):
            raise result
        return None, result

    shared.catch_up_or_join(catch_up, 1)
    with pytest.raises(ValueError, match="no room"):
        shared.catch_up_or_join(catch_up, 1)
    shared.catch_up_or_join(catch_up, 1)
    shared.catch_up_or_join(catch_up, 1)
    assert len(made) == 3


def test_another_thread_is_waited_for_and_another_process_once_for_all_that_wait():
    shared, turn = with_turn(object)
    began, heartbeat, given = threading.Event(), threading.Event(), []

    def busy(seconds, *_):
        given.append(seconds)
        began.set()
        heartbeat.wait(60)
        raise memlog.Busy("locked by another process")

    def share():
        with pytest.raises(memlog.Busy):
            shared.catch_up_or_join(busy, 0.01)

    threads = [threading.Thread(target=share) for _ in range(3)]
    for thread in threads:
        thread.start()
        began.wait(60)
    turn.wait_for(2)
    assert given == [0.01]
    heartbeat.set()
    for thread in threads:
        thread.join(60)
    share()
    assert given == [0.01, 0.0, 0.0, 0.01]


def message(content, chat_id="1", **more):
    return memlog.Message(channel="cli", chat_id=chat_id, role="user", content=content, **more)


def contents(store):
    try:
        return [
            each.content for each in store.conversations.window(("cli", "1"), across_sessions=True).messages
        ]
    except memlog.NotFound:
        return []


@pytest.fixture
def segment(store):
    """That of a store with a message of 3 characters, which was read twice."""
    store.append([message("one", id="m1")])
    assert contents(store) == contents(store) == ["one"]
    (found,) = (store.path / "log/conversations/cli_1").iterdir()
    return found


def appended_by_another_store(store, segment):
    with memlog.open(store.path) as other:
        other.append([message("two")])
    return ["one", "two"]


def written_by_hand(store, segment):
    with segment.open("a") as file:
        file.write(
            '{"type":"message","id":"h","channel":"cli","chat_id":"1","role":"user","content":"two"}\n'
        )
    return ["two", "one"]  # without a time it stands at the beginning of the day


def put_beside(store, segment):
    line = '{"type":"message","id":"h","channel":"cli","chat_id":"1","role":"user","content":"zero"}\n'
    segment.with_name("2026-01-01.jsonl").write_text(line)
    return ["zero", "one"]


def removed(store, segment):
    segment.unlink()
    return []


def replaced_by_as_many_bytes_of_the_same_time(store, segment):
    status, folder = segment.stat(), segment.parent.stat()
    other = segment.with_name("other")
    other.write_bytes(segment.read_bytes()[:-3].replace(b"one", b"two") + segment.read_bytes()[-3:])
    other.chmod(status.st_mode)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(segment)
    os.utime(segment.parent, ns=(folder.st_atime_ns, folder.st_mtime_ns))
    return []  # its checksum is that of the line before


def overwritten_with_as_many_bytes_and_the_time_kept(store, segment):
    status = segment.stat()
    with segment.open("r+b") as file:
        file.write(segment.read_bytes().replace(b"one", b"two"))
    os.utime(segment, ns=(status.st_atime_ns, status.st_mtime_ns))
    return []


@pytest.mark.parametrize(
    "change",
    [
        appended_by_another_store,
        written_by_hand,
        put_beside,
        removed,
        replaced_by_as_many_bytes_of_the_same_time,
        overwritten_with_as_many_bytes_and_the_time_kept,
    ],
)
def test_each_change_is_seen_by_the_next_read(store, segment, change):
    expected = change(store, segment)
    assert contents(store) == contents(store) == expected


def test_a_catch_up_is_given_the_state_up_to_which_everything_was_read():
    state, given, results = ["a"], [], [True, True, False, True]
    shared = SharedCatchUp(lambda: state[0])

    def catch_up(_, before, now):
        given.append((before, now))
        return None, results[len(given) - 1]

    for now in ("a", "b", "c", "d"):
        state[0] = now
        shared.catch_up_or_join(catch_up, 1)
    assert given == [(None, "a"), ("a", "b"), ("b", "c"), (None, "d")]


def a_line(segment):
    with segment.open("a") as file:
        file.write("x\n")


def a_new_folder(segment):
    (segment.parents[1] / "cli_2").mkdir()


def a_removed_folder(segment):
    shutil.rmtree(segment.parent)


def a_truncated_file(segment):
    os.truncate(segment, 3)


def a_file_of_another_name(segment):
    segment.with_name("notes").touch()


def a_git_folder(segment):
    (segment.parents[2] / ".git").mkdir()


def a_link_for_a_folder(segment):
    segment.parent.rename(segment.parents[3] / "elsewhere")
    segment.parent.symlink_to(segment.parents[3] / "elsewhere")


def a_seal(segment):
    (segment.parents[2] / "seals.jsonl").touch()


def a_file_among_the_folders(segment):
    (segment.parents[1] / "cli_3").touch()


CHANGED = {
    a_line: {"conversations/cli_1"},
    a_truncated_file: {"conversations/cli_1"},
    a_removed_folder: {"conversations/cli_1"},
    a_file_of_another_name: {"conversations/cli_1"},
    a_new_folder: {"conversations/cli_2"},
    a_git_folder: set(),
    a_link_for_a_folder: None,
    a_seal: None,
    a_file_among_the_folders: None,
}


def test_what_changes_in_streams_alone_names_these_streams(tmp_path):
    for change, expected in CHANGED.items():
        with memlog.open(tmp_path / change.__name__) as store:
            store.append([message("one", id="m1")])
            store.memories.save("tea")
        log = tmp_path / change.__name__ / "log"
        (segment,) = (log / "conversations/cli_1").iterdir()
        before = read_log_state(log)
        change(segment)
        assert find_changed_streams(log, before, read_log_state(log)) == expected, change


def test_a_catch_up_with_some_streams_reads_no_others(store, segment):
    with memlog.open(store.path) as other:
        other.append([message("two"), memlog.MemorySaved(content="tea")])
    done = store._engine.read_model.projector.catch_up(streams={"memory"})
    assert done.read.events == 1
    assert contents(store) == ["one", "two"]


def test_what_a_person_should_know_of_a_changed_stream_is_told(tmp_path):
    notes = []
    with memlog.open(tmp_path / "store", notify=notes.append) as store:
        store.append([message("one"), message("two")])
        (segment,) = (store.path / "log/conversations/cli_1").iterdir()
        assert len(contents(store)) == len(contents(store)) == 2
        segment.with_name("notes").touch()
        contents(store)
        assert "cli_1/notes is not a segment" in notes[-1]
        segment.with_name("notes").unlink()
        contents(store)
        store.append([message("three")])
        contents(store)
        os.truncate(segment, 0)
        assert contents(store) == []
        assert any("was rewritten; the stream was replayed" in note for note in notes[1:])


def test_a_read_model_that_was_removed_is_built_by_the_next_read(store, segment):
    for _ in range(2):
        shutil.rmtree(store.path / "model")
        assert contents(store) == ["one"]


def test_folders_that_are_no_streams_are_not_looked_into(store, segment):
    (store.path / "log/.git/objects").mkdir(parents=True)
    (segment.parent / "notes").mkdir()
    before = read_log_state(store.path / "log")
    (store.path / "log/.git/objects/some").touch()
    (segment.parent / "notes/some").touch()
    files = {path for path, *_ in before}
    assert {str(segment), str(segment.parent), str(segment.parent / "notes")} <= files
    assert {path for path, *_ in read_log_state(store.path / "log")} == files


def test_a_search_with_nothing_new_waits_for_no_projector(store, segment):
    store.search("one")
    with holding_lock(store.path / "projector.lock", "the read model", 1):
        result = store.search("one")
    assert result.synced
    assert [hit.id for hit in result.hits] == ["m1"]


@pytest.mark.parametrize("hold", [memlog.Store.search, lambda store, text: store.memories.save(text)])
def test_while_another_thread_catches_up_a_read_sees_what_its_own_thread_appended(store, monkeypatch, hold):
    store.append(message("one"))
    contents(store)
    began = threading.Event()

    @contextmanager
    def slow_transaction(db):
        with transaction(db):
            yield
            if not began.is_set():
                began.set()
                time.sleep(2 * _QUERY_LOCK_TIMEOUT)

    monkeypatch.setattr(lifecycle.sqlite, "transaction", slow_transaction)
    store.append(message("two"))
    holding = threading.Thread(target=hold, args=(store, "tea"))
    holding.start()
    assert began.wait(60)
    store.append([message("three", id="m3"), memlog.FactStored(topic_key="city", value="Oulu")])
    assert store.get("m3") is not None
    assert store.facts.ask("what is my city?").answer == "Oulu"
    assert contents(store) == ["one", "two", "three"]
    holding.join(60)


def test_no_read_waits_while_a_writer_waits_for_another_process(store, monkeypatch):
    store.append([message("one", id="m1")])
    waits, catch_up = threading.Event(), lifecycle.Projector.catch_up

    def told(projector, *, lock_timeout=None, **more):
        if lock_timeout is not None and lock_timeout > 1:  # a read waits .25 s
            waits.set()
        return catch_up(projector, lock_timeout=lock_timeout, **more)

    contents(store)
    store.append(message("two"))
    monkeypatch.setattr(lifecycle.Projector, "catch_up", told)
    with holding_lock(store.path / "projector.lock", "the read model", 1):
        saving = threading.Thread(target=store.memories.save, args=("tea",))
        saving.start()
        assert waits.wait(60)
        assert contents(store) == ["one"]
        assert saving.is_alive()
    saving.join(60)
    assert [each.content for each in store.memories.list()] == ["tea"]


def test_a_read_says_once_that_another_process_keeps_it_from_what_was_appended_last(tmp_path):
    notes = []
    with memlog.open(tmp_path / "store", notify=notes.append) as store:
        store.append(message("one"))
        contents(store)
        for number in range(2):
            notes.clear()
            store.append(memlog.FactStored(topic_key=f"city{number}", value="Oulu"))
            with holding_lock(store.path / "projector.lock", "the read model", 1):
                assert not store.facts.get(f"city{number}").found
                assert not store.facts.ask(f"what is my city{number}?").found
            assert len(notes) == 1
            assert notes[0].endswith(": what was appended last may be missing")
            assert store.facts.get(f"city{number}").found


def test_a_stray_file_is_told_once_and_has_no_read_catch_up_again(tmp_path, monkeypatch):
    notes, made = [], []
    with memlog.open(tmp_path / "store", notify=notes.append) as store:
        store.append([message("one"), message("two", chat_id="2")])
        assert contents(store) == contents(store) == ["one"]
        (segment,) = (store.path / "log/conversations/cli_1").iterdir()
        stray = segment.with_name(f"{segment.name}~")
        stray.touch()
        catch_up = lifecycle.catchup.catch_up
        monkeypatch.setattr(
            lifecycle.catchup,
            "catch_up",
            lambda *args, **more: made.append(more["streams"]) or catch_up(*args, **more),
        )
        notes.clear()
        for _ in range(3):
            assert contents(store) == ["one"]
        assert made == [{"conversations/cli_1"}]
        assert len(notes) == 1
        assert f"{stray.name} is not a segment" in notes[0]
        store.append(message("three", chat_id="2"))
        contents(store)
        assert made[1:] == [{"conversations/cli_2"}]
        assert len(notes) == 1
        stray.unlink()
        contents(store)
        stray.touch()
        contents(store)
        assert len(notes) == 2, "it came again"

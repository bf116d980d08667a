"""Checkpoints: what is read on, what is seen as rewritten, what is no change."""

import os
import shutil
from collections import Counter

import pytest

import memlog
from memlog.eventlog.log.layout import WRITERS
from memlog.eventlog.log.streams import list_segments
from memlog.eventlog.log.writer import Log
from memlog.projector import fold
from memlog.projector.checkpoints import Tally, find_range_to_read
from memlog.projector.fold import fold_segment
from memlog.projector.lifecycle import Projector
from memlog.projector.verify import hash_dump
from tests.support.recorded_disk import recording


class History:
    """A store with one chat of three messages on each of two days, projected, and verbs for damage."""

    def __init__(self, store):
        self.store = store
        self.folder = store / "log" / "conversations" / "cli_1"
        self.log = Log(store)
        self.log.append([message(number) for number in range(3)])
        (today,) = self.folder.iterdir()
        self.old = self.folder / "2026-02-24.jsonl"
        today.rename(self.old)
        shutil.rmtree(store / WRITERS)
        self.log = Log(store)
        self.log.append([message(number) for number in range(3, 6)])
        self.new = max(self.folder.iterdir())
        # As of a log that another program writes: what is missing of a sealed one would be a loss.
        for seals in (store / "log").glob("seals.*"):
            seals.unlink()
        self.projector = Projector(store)
        self.projector.catch_up()

    def catch_up(self):
        return self.projector.catch_up().read

    def ids(self):
        return [
            row[0] for row in self.projector.connect_to_live().execute("SELECT id FROM messages ORDER BY id")
        ]

    def first_id_of(self, stream):
        query = "SELECT id FROM events WHERE stream = ? ORDER BY line"
        return self.projector.connect_to_live().execute(query, (stream,)).fetchone()[0]

    def is_like_a_replay(self):
        fresh = self.store.parent / "fresh"
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(self.store / "log", fresh / "log")
        replayed = Projector(fresh)
        replayed.catch_up()
        return hash_dump(replayed.connect_to_live()) == hash_dump(self.projector.connect_to_live())


def message(number):
    return memlog.Message(id=f"m{number}", channel="cli", chat_id="1", role="user", content=f"text {number}")


@pytest.fixture
def history(tmp_path):
    return History(tmp_path / "store")


def test_a_catch_up_that_ended_between_two_batches_is_gone_on_with(history, monkeypatch):
    """Killed there, it has seen the whole file, and read a part of it."""
    monkeypatch.setattr(fold, "_BATCH_LINES", 2)
    history.log.append([message(number) for number in range(6, 11)])

    def killed(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        history.projector.catch_up(progress=killed)
    assert len(history.ids()) == 8
    assert history.catch_up().events == 3
    assert len(history.ids()) == 11
    assert history.is_like_a_replay()


def test_a_catch_up_that_has_no_time_for_more_says_so(history, monkeypatch):
    monkeypatch.setattr(fold, "_BATCH_LINES", 32)  # two lines in each of its small batches
    history.log.append([message(number) for number in range(6, 11)])
    assert not history.projector.catch_up(seconds=0).read.is_whole
    assert history.ids() == [f"m{number}" for number in range(6)]
    done = history.projector.catch_up(seconds=60).read
    assert (done.events, done.is_whole) == (5, True)


def test_nothing_new_is_read_as_nothing(history):
    assert history.catch_up().events == 0


def test_growth_is_read_on(history):
    history.log.append([message(6)])
    found = history.catch_up()
    assert (found.events, found.notes) == (1, [])
    assert history.is_like_a_replay()


def test_a_shorter_segment_has_its_stream_replayed_and_says_so(history):
    os.truncate(history.old, history.old.stat().st_size - 40)
    found = history.catch_up()
    assert "2026-02-24.jsonl was rewritten; the stream was replayed" in found.notes[0]
    assert history.ids() == ["m0", "m1", "m3", "m4", "m5"]
    assert history.is_like_a_replay()


def test_a_byte_changed_in_place_is_seen(history):
    data = bytearray(history.old.read_bytes())
    data[data.index(b"text 1") + 5] ^= 1
    history.old.write_bytes(data)
    assert "rewritten" in history.catch_up().notes[0]
    assert history.ids() == ["m0", "m2", "m3", "m4", "m5"]
    assert history.is_like_a_replay()


def test_a_segment_that_is_gone_takes_its_rows_with_it(history):
    history.old.unlink()
    assert "is gone" in history.catch_up().notes[0]
    assert history.ids() == ["m3", "m4", "m5"]
    assert history.is_like_a_replay()


def test_a_chat_that_is_gone_takes_its_rows_with_it(history):
    shutil.rmtree(history.folder)
    history.catch_up()
    assert history.ids() == []
    assert history.is_like_a_replay()


def test_the_same_bytes_under_another_inode_are_no_change(history):
    copy = history.old.with_name("copy")
    shutil.copyfile(history.old, copy)
    copy.replace(history.old)
    found = history.catch_up()
    assert (found.events, found.notes) == (0, [])


def test_a_touch_is_no_change(history):
    os.utime(history.old, ns=(1, 1))
    assert history.catch_up().notes == []


def test_a_late_line_in_an_older_segment_is_read_on(history):
    with history.old.open("ab") as file:
        file.write(b'{"id":"late","role":"user","content":"late"}\n')
    found = history.catch_up()
    assert (found.events, found.notes) == (1, [])
    assert history.is_like_a_replay()


def test_a_late_line_that_repeats_a_later_id_has_its_stream_replayed(history):
    with history.old.open("ab") as file:
        file.write(b'{"id":"m4","role":"user","content":"the earlier position wins"}\n')
    assert "a late line repeats the id m4" in history.catch_up().notes[0]
    assert history.is_like_a_replay()


def test_a_torn_last_line_waits_and_is_read_when_it_is_whole(history):
    line = b'{"id":"slow","role":"user","content":"written in two pieces"}\n'
    with history.new.open("ab") as file:
        file.write(line[:20])
        file.flush()
        assert history.catch_up().quarantined == 0
        file.write(line[20:])
    assert history.catch_up().events == 1
    assert history.is_like_a_replay()


def test_a_line_of_memlog_that_lacks_only_its_newline_is_read(history):
    """Something has cut the segment by one byte; the writer, which sees that, appends elsewhere."""
    os.truncate(history.new, history.new.stat().st_size - 1)
    history.log.append([message(6)])
    history.catch_up()
    assert history.ids() == [f"m{number}" for number in range(7)]
    assert history.is_like_a_replay()


@pytest.mark.parametrize(
    ("behind", "ids"),
    [
        (b"\n", ["m3", "m4", "m5"]),
        (b'\n{"id":"m6","role":"user","content":"more"}\n', ["m3", "m4", "m5", "m6"]),
        (b'{"id":"m6","role":"user","content":"glued"}\n', ["m3", "m4"]),
    ],
)
def test_what_comes_behind_a_line_without_its_newline_is_told_from_it(history, behind, ids):
    os.truncate(history.new, history.new.stat().st_size - 1)
    history.catch_up()
    with history.new.open("ab") as file:
        file.write(behind)
    history.catch_up()
    assert history.ids() == ["m0", "m1", "m2", *ids]
    assert history.is_like_a_replay()


def test_a_plain_segment_gives_up_its_tail_to_a_plain_one_of_a_later_day(history):
    (history.folder / "9998-01-01.jsonl").write_bytes(b'{"id":"whole","role":"user","content":"no newline"}')
    assert history.catch_up().events == 0
    (history.folder / "9999-01-01.jsonl").write_bytes(b"")
    assert history.catch_up().events == 1
    assert history.is_like_a_replay()


def test_what_is_no_segment_is_named_and_not_read(history):
    (history.folder / "notes.txt").write_text("not a segment")
    (history.folder / "2026-13-45.jsonl").write_text("no such day")
    (history.folder / "2026-02-25.jsonl").symlink_to("/etc/passwd")
    os.mkfifo(history.folder / "2026-02-26.jsonl")
    notes = history.catch_up().notes
    assert len(notes) == 4
    assert all("is not a segment: not read" in note for note in notes)
    assert len(history.ids()) == 6


def test_a_projector_that_another_has_overtaken_reads_nothing(history):
    """It measured the log, waited for its turn, and finds that the checkpoint is further on."""
    (segment,) = [each for each in list_segments(history.projector.log)[0] if each.path == history.new]
    measured = find_range_to_read(segment, history.new.stat().st_size)
    history.log.append([message(6)])
    history.catch_up()
    tallies = list(fold_segment(history.projector.connect_to_live(), measured, history.projector.sizes))
    assert tallies == [Tally()]
    history.log.append([message(7)])
    assert history.catch_up().events == 1
    assert history.is_like_a_replay()


def test_a_line_is_caught_up_with_few_system_calls(history):
    history.log.append([message(6)])
    history.catch_up()  # which also looks once whether the file of core memory is as it should be
    history.log.append([message(7)])
    with recording() as disk:
        assert history.catch_up().events == 1
    calls = Counter((each.call, each.path.name) for each in disk.trace)
    # The generation once, and again under the lock; the log for its seals, and for its folders.
    assert (calls["status_of_path", "CURRENT"], calls["open", "CURRENT"], calls["scan_folder", "log"]) == (
        2,
        0,
        2,
    )
    assert len(disk.trace) <= 60
    assert history.is_like_a_replay()


def test_redactions_of_ids_that_nothing_has_replay_nothing(history):
    history.log.append_redactions([("conversations/cli_1", f"nobody-{n}") for n in range(3)], None)
    assert history.catch_up().notes == []
    assert history.is_like_a_replay()


@pytest.mark.parametrize("target", ["m1", "2026-02-24.jsonl:{offset}"])
def test_a_redaction_of_an_event_or_of_a_bad_line_replays_the_stream(history, target):
    offset = history.old.stat().st_size
    with history.old.open("ab") as file:
        file.write(b"no event\n")
    history.catch_up()
    target = target.format(offset=offset)
    history.log.append_redactions([("conversations/cli_1", target)], None)
    assert history.catch_up().notes == [
        f"conversations/cli_1: {target} was redacted; the stream was replayed"
    ]
    assert history.is_like_a_replay()


def test_redactions_after_redactions_leave_what_none_of_them_names(history):
    stream = "conversations/cli_1"
    for target in ("m4", "m0", "m5"):
        history.log.append_redactions([(stream, target)], None)
        history.catch_up()
        assert history.is_like_a_replay()
    assert history.ids() == ["m1", "m2", "m3"]


def test_lines_of_a_rewritten_segment_are_read_again_though_its_events_are_redacted(history):
    first, second, third = history.old.read_bytes().splitlines(keepends=True)
    history.old.write_bytes(second + first + third)
    history.log.append_redactions([("conversations/cli_1", "m0")], None)
    history.catch_up()
    assert history.ids() == [f"m{number}" for number in range(1, 6)]
    assert history.is_like_a_replay()


def test_a_redaction_that_was_taken_out_of_the_log_counts_no_more(history):
    before = history.new.read_bytes()
    history.log.append_redactions([("conversations/cli_1", target) for target in ("m0", "m3")], "a reason")
    history.catch_up()
    assert history.ids() == ["m1", "m2", "m4", "m5"]
    history.new.write_bytes(before)
    history.catch_up()
    assert history.ids() == [f"m{number}" for number in range(6)]
    assert history.is_like_a_replay()


def test_a_redaction_that_has_the_id_of_its_target_stays_when_the_target_goes(history):
    redaction = {"type": "redacted", "id": "m1", "target_id": "m1", "stream": "conversations/cli_1"}
    history.log.append([redaction])
    history.catch_up()
    history.log.append([redaction | {"id": "r2", "target_id": "m4", "reason": ""}])
    history.catch_up()
    types = history.projector.connect_to_live().execute(
        "SELECT id, type FROM events WHERE type = 'redacted' ORDER BY id"
    )
    assert types.fetchall() == [("m1", "redacted"), ("r2", "redacted")]
    assert history.ids() == ["m0", "m2", "m3", "m5"]
    assert history.is_like_a_replay()


def test_a_stream_that_is_replayed_leaves_the_rows_of_others(history):
    others = [
        memlog.Message(id="m0", channel="cli", chat_id="2", role="user", content="text 0"),
        {"type": "memory_saved", "content": "green tea"},
        {"type": "fact_stored", "topic_key": "tea", "value": "green"},
        {"type": "core_memory_updated", "section": "user", "key": "tea", "value": "green"},
        {"type": "summary_written", "channel": "cli", "chat_id": "1", "content": "they had tea"},
    ]
    history.log.append(others)
    history.catch_up()
    for stream in ("conversations/cli_1", "memory", "facts", "core"):
        history.log.append_redactions([(stream, history.first_id_of(stream))], None)
        assert "the stream was replayed" in history.catch_up().notes[0]
        assert history.is_like_a_replay()

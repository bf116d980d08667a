"""Forgetting: what is gone, what stays, and what comes back never."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest

import memlog
from memlog.eventlog.files import disk
from memlog.eventlog.log.layout import EMBEDDINGS
from memlog.query.filters import Filters
from memlog.service.upkeep import forgetting
from tests.support.refusals import refused

STREAM = "conversations/cli_1"
SEGMENT = "2026-02-24.jsonl"


def said(content, **members):
    event = {"type": "message", "channel": "cli", "chat_id": "1", "role": "user", "content": content}
    return event | members


def write_segment(store, data: bytes, stream: str = STREAM, filename: str = SEGMENT) -> Path:
    path = store.path / "log" / stream / filename
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)
    return path


def messages(store) -> list[str]:
    try:
        return [each.content for each in store.conversations.window(("cli", "1")).messages]
    except memlog.NotFound:  # of this chat nothing is left
        return []


def words(done) -> list[str]:
    return [line.words for line in done.lines]


def test_an_event_is_gone_from_rows_and_text_when_the_call_returns(store):
    store.append([said("my number is 5551234", id="m1"), said("thank you", id="m2")])
    assert [hit.id for hit in store.search("5551234", mode="text").hits] == ["m1", "m2"]
    done = store.erasure.forget("m1", reason="private")
    assert (words(done), done.redacted, done.already) == (["my number is 5551234"], 1, 0)
    assert (messages(store), store.search("5551234", mode="text").hits) == (["thank you"], [])
    assert store.get("m1") is None
    assert store.maintenance.verify().ok


def test_the_live_generation_is_without_it_before_anything_else_is_read(store):
    store.append([said("my number is 5551234", id="m1")])
    store.maintenance.project(embed=False)
    store.erasure.forget("m1")
    generation = store.path / "model" / (store.path / "model" / "CURRENT").read_text().strip()
    with closing(sqlite3.connect(generation)) as db:
        counted = db.execute("SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM events)")
        assert counted.fetchone() == (0, 1)


def test_vectors_of_texts_that_no_other_passage_has_leave_the_cache(store):
    store.append(
        [
            said("my number is 5551234", id="m1"),
            said("thank you", id="m2"),
            said("thank you", id="m3"),
            said("green tea", id="m4"),
        ]
    )
    store.maintenance.project()
    assert cached(store) == 3
    done = store.erasure.forget(match="number|thank you")
    assert (done.vectors, cached(store)) == (2, 1)
    store.erasure.forget("m4", dry_run=True)
    assert cached(store) == 1
    store.append([said("green tea", id="m5")])
    store.erasure.forget("m4")
    assert cached(store) == 1  # m5 says the same
    assert store.search("tea", mode="vector").hits
    verified = store.maintenance.verify()
    assert (verified.ok, verified.missing_vectors) == (True, 0)


def test_the_cache_keeps_no_byte_of_a_vector_that_left_it(store):
    store.append([said("my number is 5551234", id="m1"), said("thank you", id="m2")])
    store.maintenance.project()
    with closing(sqlite3.connect(store.path / EMBEDDINGS)) as db:
        vectors = [vector for (vector,) in db.execute("SELECT vector FROM vectors")]
    store.erasure.forget("m1")
    left = b"".join(path.read_bytes() for path in (store.path / EMBEDDINGS).parent.iterdir())
    assert sorted(vector[:64] in left for vector in vectors) == [False, True]


def test_what_an_earlier_save_said_leaves_the_cache_with_its_memory(store):
    store.append([memlog.MemorySaved(content="the door code is 4711", memory_id="m")])
    store.maintenance.project()
    store.append([memlog.MemorySaved(content="the door has a new code", memory_id="m")])
    store.maintenance.project()
    assert cached(store) == 2
    assert store.erasure.forget(memory="m").redacted == 2
    assert cached(store) == 0


def cached(store) -> int:
    with closing(sqlite3.connect(store.path / EMBEDDINGS)) as db:
        (count,) = db.execute("SELECT count(*) FROM vectors").fetchone()
    return int(count)


def test_a_cache_that_cannot_be_read_is_replaced(store):
    store.append([said("my number", id="m1")])
    store.maintenance.project(embed=False)
    (store.path / EMBEDDINGS).parent.mkdir()
    (store.path / EMBEDDINGS).write_bytes(b"no database" * 100)
    assert store.erasure.forget("m1").vectors == 0
    assert b"no database" not in (store.path / EMBEDDINGS).read_bytes()


def test_no_line_of_a_forgotten_id_counts_ever_again(store):
    store.append([said("my number", id="m1"), said("my number", id="m1"), said("other words", id="m1")])
    assert [line.offset for line in store.erasure.forget("m1").lines] == [0, *later_offsets(store, 2)]
    store.append([said("my number", id="m1"), said("third words", id="m1")])
    write_segment(store, json.dumps(said("imported", id="m1")).encode() + b"\n", filename="2026-01-01.jsonl")
    assert messages(store) == []
    assert store.maintenance.verify().is_spotless
    again = store.erasure.forget("m1")
    assert (again.lines, again.redacted, again.already) == ([], 0, 1)


def later_offsets(store, count: int) -> list[int]:
    (path,) = (store.path / "log" / STREAM).iterdir()
    lines = path.read_bytes().split(b"\n")
    return [sum(len(line) + 1 for line in lines[:number]) for number in range(1, count + 1)]


def test_a_foreign_line_without_an_id_is_forgotten_by_its_position(store):
    path = write_segment(store, b'{"role":"user","content":"first"}\n{"role":"user","content":"my number"}\n')
    place = f"{SEGMENT}:{path.read_bytes().index(b'my number') - len(b'{`role`:`user`,`content`:`')}"
    assert words(store.erasure.forget(place)) == ["my number"]
    assert messages(store) == ["first"]
    assert store.maintenance.verify().ok


def test_a_quarantined_line_is_forgotten_by_its_position(store):
    write_segment(store, b'no JSON, but my number\n{"role":"user","content":"first"}\n')
    assert [line.reason for line in store.maintenance.quarantine()] == ["not_json"]
    done = store.erasure.forget(f"{SEGMENT}:0")
    assert (words(done), done.lines[0].type) == (["no JSON, but my number"], "not_json")
    assert store.maintenance.quarantine() == []
    verified = store.maintenance.verify()
    assert (verified.ok, verified.quarantined) == (True, {})
    assert store.erasure.forget(f"{SEGMENT}:0").already == 1


def test_a_good_line_stays_where_the_position_of_a_bad_one_was_forgotten(store):
    write_segment(store, json.dumps(said("first", id="m1")).encode() + b"\n")
    store.append([memlog.Redacted(target_id=f"{SEGMENT}:0", stream=STREAM)])
    assert messages(store) == ["first"]


def test_what_a_torn_line_has_of_an_event_goes_with_it(store):
    store.append([said("my number is 5551234", id="m1")])
    (path,) = (store.path / "log" / STREAM).iterdir()
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(whole[:-40])  # a writer was killed at its second try
    store.append([said("thank you", id="m2")])
    done = store.erasure.forget("m1")
    assert [line.type for line in done.lines] == ["message", "torn"]
    assert done.redacted == 2
    assert (messages(store), store.maintenance.quarantine()) == (["thank you"], [])


def test_a_line_that_was_cut_short_is_all_there_is_of_an_event(store):
    store.append([said("thank you", id="m2")])
    with next((store.path / "log" / STREAM).iterdir()).open("ab") as file:
        file.write(b'{"type":"message","id":"m1","content":"my num\n')
    assert [line.type for line in store.erasure.forget("m1").lines] == ["torn"]
    assert store.maintenance.quarantine() == []


def test_a_tail_that_a_writer_may_be_at_is_found_and_forgotten(store):
    store.append([said("thank you", id="m2")])
    with next((store.path / "log" / STREAM).iterdir()).open("ab") as file:
        file.write(b'{"type":"message","content":"my number is 555')
    assert len(store.erasure.forget(match="number").lines) == 1
    assert (messages(store), store.maintenance.quarantine()) == (["thank you"], [])


def test_an_event_of_a_newer_memlog_is_forgotten_by_id_and_by_position(store):
    line = b'{"type":"picture_taken","id":"p1","caption":"my number"}\n'
    write_segment(store, line + b'{"type":"picture_taken","id":7,"caption":"my number"}\n')
    assert store.erasure.forget(match="number").redacted == 3
    assert store.maintenance.quarantine() == []
    targets = [json.loads(each).get("target_ids", []) for each in log_lines(store)]
    assert {"p1", f"{SEGMENT}:0"} <= set(chain.from_iterable(targets))


def log_lines(store) -> list[bytes]:
    return [line for path in (store.path / "log").rglob("*.jsonl") for line in path.read_bytes().splitlines()]


def test_a_chat_takes_the_lines_that_no_read_shows_with_it(store):
    store.append([said("thank you", id="m1"), said("thank you", id="m1"), said("no thanks", id="m1")])
    store.append(
        [
            said("", id="m2"),
            said("a\0b", id="m3"),
            {"type": "session_break", "channel": "cli", "chat_id": "1", "id": "b"},
        ]
    )
    store.append([said("gone", id="m4")])
    store.erasure.forget("m4")
    segment = max((store.path / "log" / STREAM).iterdir()).name
    newer = said("a newer memlog", type="thought", id="m5")
    write_segment(store, b"no event\n" + json.dumps(newer).encode() + b"\n", filename=segment)
    write_segment(store, b'{"type":"message","content":"cut sho', filename=segment)
    done = store.erasure.forget(chat=("cli", "1"))
    assert words(done) == [
        "thank you",
        "thank you",
        "no thanks",
        "",
        "a\0b",
        "",
        "no event",
        "a newer memlog",
        '{"type":"message","content":"cut sho',
    ]
    assert [line.line for line in done.lines] == [1, 2, 3, 4, 5, 6, 9, 10, 11]
    assert (done.already, store.erasure.forget(chat=("cli", "1")).lines) == (1, [])
    assert messages(store) == []
    assert store.maintenance.verify().ok


def test_all_that_touched_a_memory_is_forgotten(store):
    store.memories.save("the door code is 4711", memory_id="m")
    store.memories.save("tea is green", memory_id="other")
    store.memories.update("m", title="the door")
    store.memories.touch("m", "other")
    store.memories.archive("m")
    done = store.erasure.forget(memory="m")
    assert [line.type for line in done.lines] == [
        *("memory_saved", "memory_updated", "memory_accessed", "memory_archived")
    ]
    assert store.memories.history("m") == []
    assert [each.memory_id for each in store.memories.list()] == ["other"]
    assert store.maintenance.verify().ok


def test_a_deleted_memory_can_be_forgotten(store):
    store.memories.save("the door code is 4711", memory_id="m")
    store.memories.delete("m")
    assert store.erasure.forget(memory="m").redacted == 2
    assert store.memories.history("m") == []


def test_a_chat_takes_its_streams_facts_and_memories_with_it(store):
    store.append(
        [
            said("hello", id="a"),
            memlog.SessionBreak(channel="cli", chat_id="1"),
            memlog.SummaryWritten(channel="cli", chat_id="1", content="they said hello"),
            said("other chat", chat_id="2"),
            memlog.MemorySaved(content="of the chat", memory_id="m", chat_id="cli:1"),
            memlog.MemorySaved(content="of all", memory_id="n"),
            memlog.MemoryUpdated(memory_id="m", title="no chat named"),
            memlog.FactStored(topic_key="tea", value="green", chat_id="cli:1"),
            memlog.FactStored(topic_key="tea", value="black"),
        ]
    )
    write_segment(store, b'{"role":"user","content":"by hand"}\nbad\n', "conversations/%63li_1")
    done = store.erasure.forget(chat=("cli", "1"))
    assert sorted(line.type for line in done.lines) == sorted(
        ["message", "session_break", "summary_written", "memory_saved", "memory_updated", "fact_stored"]
        + ["message", "not_json"]
    )
    assert [each.memory_id for each in store.memories.list()] == ["n"]
    assert [each.chat for each in store.conversations.sessions()] == ["cli:2"]
    assert (store.maintenance.status().quarantined, store.maintenance.verify().ok) == (0, True)


def test_a_memory_that_moved_to_a_chat_goes_with_it_whole(store):
    store.append([said("hello"), memlog.MemorySaved(content="of all", memory_id="m")])
    store.memories.update("m", chat="cli:1")
    store.erasure.forget(chat=("cli", "1"))
    assert store.memories.history("m") == []


def test_a_pattern_is_looked_for_in_all_that_an_event_says(store):
    events = [
        said("call 5551234"),
        said("tool", meta={"answer": [{"phone": "call 5551234"}]}),
        said("tool", note="call 5551234"),
        memlog.CoreMemoryUpdated(section="user", key="phone", value="call 5551234"),
        memlog.FactStored(topic_key="phone", value="call 5551234"),
        memlog.MemorySaved(content="x", tags=["call 5551234"]),
        memlog.DocumentIndexed(source_id="s", file="f", content="call 5551234"),
        memlog.DailyEventRecorded(summary="call 5551234"),
    ]
    store.append([*events, said("thank you", id="other")])
    done = store.erasure.forget(match=r"call \d{7}")
    assert done.redacted == len(done.lines) == len(events)
    # The other one, and a redaction a stream.
    status = store.maintenance.status()
    assert status.events == 1 + status.streams


def test_a_pattern_is_not_looked_for_in_names_of_chats_and_redactions(store):
    store.append([said("hello", id="m1"), said("my number", id="m2")])
    store.erasure.forget("m2", reason="a number")
    assert store.erasure.forget(match="number|cli|user|message|redacted").lines == []


def test_a_pattern_finds_a_line_whose_id_says_something_else_first(store):
    store.append([said("thank you", id="m1"), said("my number", id="m1")])
    assert words(store.erasure.forget(match="number")) == ["thank you", "my number"]


def test_the_core_memory_is_without_it_and_its_file_for_people_too(store):
    store.append([memlog.CoreMemoryUpdated(section="user", key="phone", value="5551234", id="c")])
    assert store.core.get().user == {"phone": "5551234"}
    store.erasure.forget("c")
    said_in_files = [path.read_bytes() for path in (store.path / "model").glob("*.json")]
    assert said_in_files
    assert not any(b"5551234" in data for data in said_in_files)
    assert store.core.get().user == {}


def test_an_older_value_stands_again(store):
    store.core.set("user", "city", "Helsinki")
    position = store.core.set("user", "city", "Espoo")
    store.erasure.forget(position.id)
    assert store.core.get().user == {"city": "Helsinki"}


def test_a_dry_run_forgets_nothing(store):
    store.append([said("my number", id="m1")])
    done = store.erasure.forget("m1", dry_run=True)
    assert (words(done), done.redacted, done.dry_run) == (["my number"], 0, True)
    assert messages(store) == ["my number"]


def test_a_redaction_is_synced_whatever_the_setting_is(tmp_path, monkeypatch):
    with memlog.open(tmp_path / "store", durability="os") as store:
        store.append([said("my number", id="m1")])
        synced = []
        monkeypatch.setattr(disk, "sync_data", synced.append)
        store.append([said("more", id="m2")])
        assert synced == []
        store.erasure.forget("m1")
        assert len(synced) == 1


def test_an_id_of_several_streams_needs_its_stream(store):
    store.append([said("mine", id="m1"), said("other", id="m1", chat_id="2")])
    with pytest.raises(memlog.BadInput, match="several streams"):
        store.erasure.forget("m1")
    assert words(store.erasure.forget("m1", stream=STREAM)) == ["mine"]
    assert words(store.erasure.forget("m1", stream="conversations/cli_2")) == ["other"]


def test_what_never_stood_here_is_not_found(store):
    store.append([said("hello", id="m1"), memlog.MemorySaved(content="tea", memory_id="m")])
    for asked in ({"event_id": "nothing"}, {"event_id": "m1", "stream": "facts"}):
        with pytest.raises(memlog.NotFound) as unknown:
            store.erasure.forget(**asked)
        assert unknown.value.code == "event_not_found"
    with pytest.raises(memlog.NotFound) as unknown:
        store.erasure.forget(memory="nothing")
    assert unknown.value.code == "memory_not_found"
    with pytest.raises(memlog.NotFound) as unknown:
        store.erasure.forget(chat=("cli", "nobody"))
    assert unknown.value.code == "session_not_found"
    assert store.erasure.forget(match="nothing says this").lines == []


def test_what_cannot_be_asked_is_refused(store):
    for asked in ({}, {"event_id": "a", "match": "b"}):
        with refused(asked):
            store.erasure.forget(**asked)


def test_a_line_in_a_folder_that_is_no_stream_is_named(store):
    write_segment(store, json.dumps(said("my number", id="m1")).encode() + b"\n", "elsewhere")
    done = store.erasure.forget(match="number")
    assert (done.lines, done.redacted) == ([], 0)
    assert done.unreachable == [f"elsewhere/{SEGMENT}:1 (byte 0)"]


def test_where_another_projector_is_at_work_it_is_said_that_the_rows_still_stand(tmp_path):
    with memlog.open(tmp_path / "store") as store:
        store.append([said("my number", id="m1"), memlog.MemorySaved(content="tea", id="e")])
        store.maintenance.project(embed=False)
    holder: list[subprocess.Popen[bytes]] = []
    lock = tmp_path / "store/projector.lock"

    def hold_the_lock(_) -> None:
        if not holder:
            holder.append(subprocess.Popen([sys.executable, "-c", HOLD, lock], stdout=subprocess.PIPE))
            assert holder[0].stdout.readline() == b"locked\n"

    with memlog.open(tmp_path / "store", lock_timeout=0.2, on_stored=hold_the_lock) as store:
        try:
            with pytest.raises(memlog.Busy, match="1 events were redacted"):
                store.erasure.forget("m1")
        finally:
            holder[0].kill()
            holder[0].communicate()
        assert messages(store) == []
        assert store.erasure.forget("m1").already == 1


HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "ab")
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(60)
"""


def test_a_forgotten_document_is_not_found(store, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("the door code is 4711")
    store.documents.add(tmp_path / "notes")
    assert store.search("4711", mode="text", filters=Filters()).hits
    assert store.erasure.forget(match="4711").redacted == 1
    assert store.search("4711", mode="text", filters=Filters()).hits == []


def test_a_pattern_that_never_ends_is_refused_and_nothing_is_forgotten(store, monkeypatch):
    monkeypatch.setattr(forgetting, "PATTERN_SECONDS", 1)
    store.append([memlog.Message(channel="cli", chat_id="1", role="user", content="a" * 60 + "!", id="m")])
    with pytest.raises(memlog.BadInput, match="more than 1 seconds"):
        store.erasure.forget(match="(a+)+$")
    assert store.get("m") is not None


def test_what_is_no_pattern_is_refused_with_the_reason(store):
    with pytest.raises(memlog.BadInput, match="unterminated subpattern"):
        store.erasure.forget(match="(")


def test_a_pattern_that_matches_the_empty_text_erases_nothing(store):
    store.append([said("tea", id="m1")])
    for pattern in ("", "x*", "(?:)", "^", ".*"):
        with refused(pattern, match="matches the empty string, and so every event"):
            store.erasure.forget(match=pattern)
        assert [hit.id for hit in store.search("tea", mode="text").hits] == ["m1"], pattern


def test_a_key_in_a_reason_is_masked_since_it_could_never_be_erased(store):
    store.append([said("tea", id="m1")])
    store.erasure.forget("m1", reason="leaked ghp_016C7e3d41dB5aBcDeF0123456789abcdEFG")
    assert store.erasure.secrets() == []
    assert b"ghp_" not in b"".join(path.read_bytes() for path in store.path.rglob("*.jsonl"))


def test_a_pattern_matches_each_canonical_form(store):
    forms = ["caf\u00e9 noir", "cafe\u0301 noir"]
    for pattern in (r"caf\u00e9", "caf[\u00e9] n", "cafe\u0301"):
        positions = store.append([memlog.MemorySaved(content=form) for form in forms])
        assert store.erasure.forget(match=pattern).redacted == len(positions), pattern
        assert store.search("noir", mode="text").hits == []

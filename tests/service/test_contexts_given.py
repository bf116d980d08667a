"""`context_given`: what a context gave is kept, without a word of it, and forgotten with it."""

import errno
import json
import multiprocessing

import pytest

import memlog
from memlog.eventlog.files import file_io
from memlog.eventlog.log.layout import STORE_KEY
from memlog.eventlog.secrets.outgoing import compute_keyed_hash, load_or_create_store_key

CHAT = "telegram:7"
ASKED = "favourite tea: green, black?"


def said(content, name, chat_id="7", **members):
    where = {"channel": "telegram", "chat_id": chat_id, "role": "user"}
    return memlog.Message(id=name, content=content, **where | members)


@pytest.fixture
def store(tmp_path):
    """One thing of every part, and the message that asks."""
    (tmp_path / "no-model").mkdir()
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "kettle.md").write_text("# Tea\n\nBoil the tea for a minute.\n")
    with memlog.open(tmp_path / "store", model=tmp_path / "no-model", durability="os") as opened:
        opened.core.set("user", "nickname", "Annushka")
        where = {"channel": "telegram", "chat_id": "7"}
        opened.append(
            [
                said("My tea is green", "old"),
                said("Elsewhere the tea is black", "other", "8"),
                memlog.SummaryWritten(id="sum", content="They spoke of tea", **where),
                memlog.SessionBreak(**where),
                said("Good morning", "new"),
                said(ASKED, "asking"),
            ]
        )
        opened.facts.set("favorite_teas", "Sencha", "Assam", chat=CHAT)
        opened.memories.save("Anna drinks tea at nine", memory_id="habit", importance=0.75, chat=CHAT)
        opened.documents.add(tmp_path / "guide", source="manual")
        yield opened


def lines(store, tag="context_given"):
    paths = sorted((store.path / "log" / "memory").iterdir())
    found = [line for path in paths for line in path.read_bytes().splitlines() if line.strip()]
    return [line for line in found if json.loads(line)["type"] == tag]


def events(store):
    return [json.loads(line) for line in lines(store)]


def test_a_context_says_what_it_gave(store):
    given = store.context(ASKED, chat=CHAT)
    (event,) = events(store)
    assert (event["chat_id"], event["message_id"]) == (CHAT, "asking")
    parts = ["core", "fact", "memory", "document", "passage", "summary", "window"]
    assert [*event["tokens"]] == parts
    assert event["tokens"]["fact"] == sum(each.tokens for each in given.entries if each.part == "fact")
    assert [*dict.fromkeys(each["part"] for each in event["entries"])] == parts
    assert {"part": "window", "id": "new", "stream": "conversations/telegram_7"} in event["entries"]
    (memory,) = (each for each in event["entries"] if each["part"] == "memory")
    score = next(each.relevance_score for each in given.entries if each.part == "memory")
    assert memory == {"part": "memory", "id": "habit", "score": round(score, 3)}


def test_each_entry_but_a_memory_is_named_by_its_event(store):
    given = store.context(ASKED, chat=CHAT)
    (event,) = events(store)
    named = {(each["stream"], each["id"]) for each in event["entries"] if "stream" in each}
    at = {(each.position.stream, each.position.offset) for each in given.entries if not each.is_memory}
    shown = [(stream, store.get(name)) for stream, name in named]
    assert {(stream, each.position.offset) for stream, each in shown} == at


def test_it_tells_no_text_and_no_name(store):
    given = store.context(ASKED, chat=CHAT)
    (line,) = lines(store)
    told = [word for each in given.entries for word in each.content.split() if len(word) > 3]
    names = ["favorite_teas", "nickname", "Annushka", "kettle", "manual", "sencha"]
    assert [
        word for word in [*told, *names, "favourite"] if word.casefold() in line.decode().casefold()
    ] == []


def test_it_is_one_append_with_the_memories_that_were_accessed(store, monkeypatch):
    appended = []
    append = memlog.eventlog.log.writer.Log.append
    monkeypatch.setattr(
        "memlog.eventlog.log.writer.Log.append",
        lambda log, events: appended.append(events) or append(log, events),
    )
    store.context(ASKED, chat=CHAT)
    store.context("Good morning", chat=CHAT, limit=0)
    tags = [[type(event).__name__ for event in events] for events in appended]
    assert tags == [["MemoryAccessed", "ContextGiven"], ["ContextGiven"]]


def test_nothing_is_recorded_where_nobody_wants_it_or_nothing_was_given(store):
    store.context(ASKED, chat=CHAT, record=False)
    store.context(ASKED, chat=CHAT, max_tokens=5)
    store.context("", chat=CHAT, part="stable")
    assert events(store) == []
    assert not (store.path / STORE_KEY).exists()


def test_it_is_no_access_of_a_memory_and_no_part_of_its_history(store):
    store.context(ASKED, chat=CHAT)
    assert store.memories.get("habit").access_count == 1
    assert [event.type for event in store.memories.history("habit")] == ["memory_saved", "memory_accessed"]


# Hashes


def test_the_hash_is_that_of_the_printed_block_whatever_its_white_space(store):
    whole = store.context(ASKED, chat=CHAT)
    turn = store.context(ASKED, chat=CHAT, part="turn")
    stable = store.context("", chat=CHAT, part="stable")
    key = load_or_create_store_key(store.path)
    both, half = events(store)
    spaced = "\n  " + whole.text.replace("\n", "\r\n\t").replace(" ", "  ")
    assert both["stable"] == both["turn"] == compute_keyed_hash(key, spaced)
    assert half["turn"] == compute_keyed_hash(key, turn.text)
    assert half["stable"] == compute_keyed_hash(key, stable.text)
    assert compute_keyed_hash(bytes(32), whole.text) != both["turn"] != half["turn"]


def test_of_messages_the_block_is_the_system_message_and_json_has_none(store):
    given = store.context(ASKED, chat=CHAT, form="messages")
    store.context(ASKED, chat=CHAT, form="json", part="turn")
    messages, for_programs = events(store)
    assert messages["turn"] == compute_keyed_hash(
        load_or_create_store_key(store.path), given.messages[0]["content"]
    )
    assert not for_programs.keys() & {"stable", "turn"}


def test_without_core_memory_the_turn_alone_has_a_hash(store):
    store.core.delete("user", "nickname")
    store.context(ASKED, chat=CHAT, part="turn")
    (event,) = events(store)
    assert "stable" not in event
    assert event["turn"]


def test_the_key_is_its_owners_alone_and_the_same_for_all_that_make_it_at_once(tmp_path):
    with multiprocessing.get_context("fork").Pool(4) as pool:
        keys = pool.map(load_or_create_store_key, [tmp_path] * 16, chunksize=1)
    assert len({*keys}) == 1
    assert len(keys[0]) == 32
    assert (tmp_path / STORE_KEY).stat().st_mode & 0o777 == file_io._FILE
    (tmp_path / STORE_KEY).write_text(keys[0].hex()[:20])  # whoever wrote it was killed
    assert load_or_create_store_key(tmp_path) == load_or_create_store_key(tmp_path) != keys[0]


def test_where_there_can_be_no_key_the_context_is_given_and_the_reason_told(store):
    (store.path / STORE_KEY).mkdir()
    given = store.context(ASKED, chat=CHAT)
    assert given.entries
    assert STORE_KEY in str(given.unrecorded)
    assert (events(store), store.memories.get("habit").access_count) == ([], 0)


def test_on_a_full_disk_the_context_is_given_and_the_reason_told(store, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("memlog.eventlog.files.disk.overwrite", full)
    given = store.context(ASKED, chat=CHAT)
    assert given.entries
    assert given.unrecorded


# Forgetting


def rows(store):
    db = store._engine.read_model.projector.connect_to_live()
    count = "SELECT (SELECT count(*) FROM contexts_given), (SELECT count(*) FROM named_in_contexts)"
    return db.execute(count).fetchone()


def event_ids(store, stream, tag):
    paths = sorted((store.path / "log" / stream).iterdir())
    found = [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]
    return [event["id"] for event in found if event["type"] == tag]


def bytes_with(store, name):
    """The lines of the log that have a text, but for redactions, which name what they redact."""
    paths = (store.path / "log").rglob("*.jsonl")
    found = [line for path in paths for line in path.read_bytes().splitlines() if name.encode() in line]
    return [line for line in found if b'{"type":"redacted"' not in line]


def targets(store):
    """What of each part is forgotten, and how a context names it."""
    (core,) = event_ids(store, "core", "core_memory_updated")
    (facts,) = event_ids(store, "facts", "fact_stored")
    (file,) = event_ids(store, "documents", "document_indexed")
    (memory,) = event_ids(store, "memory", "memory_saved")
    events = {
        name: {"event_id": name} for name in ("asking", "new", "old", "other", "sum", core, facts, file)
    }
    return [*events.items(), ("habit", {"event_id": memory})]


def test_with_an_event_each_context_is_forgotten_that_names_it(store):
    """In rows at once, in bytes after a scrub, and in no context that does not name it."""
    for name, asked in targets(store):
        store.context(ASKED, chat=CHAT, scope="store", message_id="asking")
        (line,) = lines(store)
        assert f'"{name}"'.encode() in line
        tried = store.erasure.forget(**asked, dry_run=True)
        done = store.erasure.forget(**asked)
        assert tried.lines == done.lines
        assert [each.type for each in done.lines].count("context_given") == 1, name
        assert rows(store) == (0, 0), name
        store.erasure.scrub()
        assert lines(store) == [], name
        if name != "habit":  # accesses name a memory until the memory is forgotten
            assert bytes_with(store, f'"{name}"') == [], name
    assert store.maintenance.verify().ok


def test_with_a_memory_each_context_is_forgotten_that_gave_it(store):
    store.context(ASKED, chat=CHAT)
    store.context("Good morning", limit=0, documents=0)
    done = store.erasure.forget(memory="habit")
    assert [each.type for each in done.lines] == ["memory_saved", "memory_accessed", "context_given"]
    store.erasure.scrub()
    assert bytes_with(store, "habit") == []
    assert len(events(store)) == rows(store)[0] == 1


def test_with_a_chat_its_contexts_are_forgotten_and_those_that_gave_of_it(store):
    store.context(ASKED, chat=CHAT, scope="store")
    store.context(ASKED, chat="telegram:9", passages=0, limit=0)
    assert b'"other"' in lines(store)[0]
    assert store.erasure.forget(chat="telegram:8").redacted == 2
    assert [event["chat_id"] for event in events_left(store)] == ["telegram:9"]
    store.context(ASKED, chat=CHAT)
    store.erasure.forget(chat=CHAT)
    assert bytes_left(store, "asking") == []
    assert all(event["chat_id"] != CHAT for event in events_left(store))


def events_left(store):
    store.erasure.scrub()
    return events(store)


def bytes_left(store, name):
    store.erasure.scrub()
    return bytes_with(store, name)


def test_a_message_of_the_same_id_in_another_chat_takes_nothing_with_it(store):
    store.append([said("The kettle", "asking", "10")])
    store.context(ASKED, chat=CHAT)
    done = store.erasure.forget("asking", stream="conversations/telegram_10")
    assert [each.type for each in done.lines] == ["message"]
    assert rows(store)[0] == 1


def test_a_pattern_matches_no_id_and_no_hash_but_takes_the_contexts_of_what_it_matches(store):
    store.context(ASKED, chat=CHAT)
    (event,) = events(store)
    assert store.erasure.forget(match=f"{event['turn']}|^asking$|^window$").lines == []
    done = store.erasure.forget(match="leaf|My tea is green")
    assert [each.type for each in done.lines] == ["message", "context_given"]


def test_a_replay_from_scratch_gives_the_same_rows(store):
    store.context(ASKED, chat=CHAT)
    store.context(ASKED, chat=CHAT, part="turn")
    store.erasure.forget("new")
    store.context(ASKED, chat=CHAT)
    before = store.maintenance.digest(), rows(store)
    store.maintenance.project(from_scratch=True)
    assert (store.maintenance.digest(), rows(store)) == before
    assert rows(store)[0] == 1

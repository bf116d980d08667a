"""What enters a context, by which right, and what never does."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

import memlog
from memlog.eventlog import timestamps
from memlog.eventlog.files import locks
from memlog.service.retrieval import search
from tests.support.refusals import refused

CHAT = ("telegram", "7")
NAME = "telegram:7"
OTHER = ("telegram", "8")
FRAME = 18
"""Tokens of the lines around the entries."""


@pytest.fixture
def store(tmp_path):
    """Without a model: what is found is found by its words."""
    (tmp_path / "no-model").mkdir()
    with memlog.open(tmp_path / "store", model=tmp_path / "no-model", durability="os") as opened:
        yield opened


MEMORIES_OF_SESSION = """\
Relevant memories from this session:
- [FACT] The project deadline is March 15th (importance: 0.9)
- [PREFERENCE] User prefers concise bullet-point summaries of the project (importance: 0.7)
- [INSIGHT] The project's \\n\\[M1] revenue correlates with marketing (importance: 1.0)

Use these memories to provide contextually aware responses.
"""


def test_memory_context_format_has_the_memories_of_the_session_alone(store):
    text = "When is the deadline of the project?"
    store.core.set("user", "name", "Anna")
    store.facts.set("project", "deadline is near", chat=NAME, single=True)
    store.append([said("The project deadline was moved", "m1"), said(text, "m2")])
    of_session = [
        ("The project deadline is March 15th", "fact", 0.9),
        ("User prefers concise bullet-point summaries of the project", "preference", 0.7),
        ("The project's \n[M1] revenue correlates with marketing", "insight", 1.0),
    ]
    for content, kind, importance in of_session:
        store.memories.save(content, kind=kind, importance=importance, chat=NAME, title="Project")
    store.memories.save("The project deadline is May 1st", chat=OTHER)
    store.memories.save("The project has a deadline", kind="preference")
    given = store.context(text, chat=NAME, form="session", limit=3)
    assert sorted(given.text.splitlines()) == sorted(MEMORIES_OF_SESSION.splitlines())
    first, last = MEMORIES_OF_SESSION.splitlines()[0], "\n\n" + MEMORIES_OF_SESSION.splitlines()[-1] + "\n"
    assert (given.text.startswith(first), given.text.endswith(last), given.citations) == (True, True, {})
    assert len(store.context(text, chat=NAME, form="session", limit=1).entries) == 1
    assert store.context(text, chat="telegram:9", form="session").text == ""
    for wrong in ({}, {"chat": NAME, "part": "stable"}):
        with refused(wrong, "the form session is of one chat"):
            store.context(text, form="session", **wrong)


def said(content, name=None, *, chat=CHAT, **members):
    where = {"channel": chat[0], "chat_id": chat[1]}
    return memlog.Message(id=name, content=content, **{"role": "user", **where, **members})


def pause(chat=CHAT):
    return memlog.SessionBreak(channel=chat[0], chat_id=chat[1])


def summed_up(content, name=None, *, chat=CHAT, **members):
    where = {"channel": chat[0], "chat_id": chat[1]}
    return memlog.SummaryWritten(id=name, content=content, **where, **members)


def entries(given):
    return [(entry.part, entry.id) for entry in given.entries]


def ids(given, part):
    return [entry.id for entry in given.entries if entry.part == part]


def left_out(given):
    return {(left.part, left.id): left.why for left in given.left_out}


@pytest.fixture
def filled(store):
    """One thing of every part; all speak of tea."""
    store.core.set("user", "name", "Anna")
    store.append(
        [
            said("My tea is green", "old"),
            summed_up("They spoke of tea", "sum", from_message_id="old", to_message_id="old"),
            pause(),
            said("Good morning", "new"),
        ]
    )
    store.facts.set("favorite_teas", "Sencha", chat=NAME)
    store.memories.save("Anna drinks tea at nine", memory_id="habit", importance=0.75, chat=NAME)
    return store


# By right


def test_all_parts_stand_in_the_order_of_their_right(filled):
    given = filled.context("tea", chat=CHAT)
    parts = [part for part, _ in entries(given)]
    assert parts == ["core", "fact", "memory", "passage", "summary", "window"]
    assert entries(given)[1:] == [
        ("fact", "favorite_teas/1/telegram:7"),
        ("memory", "habit"),
        ("passage", "old"),
        ("summary", "sum"),
        ("window", "new"),
    ]


def test_a_line_of_the_text_says_what_kind_how_important_and_where_it_is_cited(filled):
    text = filled.context("nine tea", chat=CHAT).text
    assert f"- [FACT] {timestamps.today()}: Anna drinks tea at nine [M1]\n" in text


def test_what_has_the_lesser_right_goes_first_where_room_is_short(filled):
    whole = filled.context("tea", chat=CHAT, record=False)
    parts = []
    for budget in range(whole.tokens + 1):
        given = filled.context("tea", chat=CHAT, max_tokens=budget, record=False)
        parts.append(len(given.entries))
        assert given.tokens <= budget
        assert len(given.entries) + len(given.left_out) == 6
    assert parts[0] == 0
    assert parts[-1] == 6
    by_part = {entry.part: entry.tokens for entry in whole.entries}
    by_right = ["memory", "summary", "core", "window", "passage", "fact"]
    for most in range(2, 7):
        room = FRAME + sum(by_part[part] for part in by_right[:most])
        given = filled.context("tea", chat=CHAT, max_tokens=room, record=False)
        assert {part for part, _ in entries(given)} == {*by_right[:most]}


def test_what_does_not_fit_is_left_out_and_a_smaller_one_behind_it_is_taken(store):
    store.core.set("user", "diary", "tea " * 200)
    store.core.set("user", "name", "Anna")
    given = store.context("tea", max_tokens=60)
    assert [entry.title for entry in given.entries] == ["user.name"]
    (left,) = given.left_out
    assert (left.part, left.why) == ("core", "no room")
    assert left.tokens > 200


def test_the_newest_messages_of_the_window_get_in_and_the_oldest_is_printed_first(store):
    store.append([said(f"word {number}", f"m{number}") for number in range(9)])
    whole = store.context("unknown", chat=CHAT)
    room = whole.frame + sum(entry.tokens for entry in whole.entries[-3:])
    given = store.context("unknown", chat=CHAT, max_tokens=room)
    assert entries(given) == [("window", "m6"), ("window", "m7"), ("window", "m8")]


def test_where_the_frame_alone_is_too_large_nothing_is_printed(filled):
    given = filled.context("tea", max_tokens=15)
    assert (given.frame, given.text, given.entries, given.tokens) == (FRAME, "", [], 0)
    assert {left.why for left in given.left_out} == {"no room"}
    assert filled.memories.get("habit").access_count == 0


def test_a_word_without_end_is_no_small_entry(store):
    store.core.set("user", "key", "x" * 100_000)
    given = store.context("tea")
    assert (given.text, [left.why for left in given.left_out]) == ("", ["no room"])


def test_twenty_passages_of_forty_where_little_is_distilled(store):
    store.append([said(f"tea leaf {number}", f"m{number}") for number in range(45)])
    given = store.context("tea")
    assert len(ids(given, "passage")) == 20
    why = [(left.part, left.why) for left in given.left_out]
    assert why.count(("passage", "beyond the 20 that were requested")) == 20


def test_what_much_is_distilled_of_is_one_list_of_six_with_it(store, tmp_path):
    for number in range(12):
        store.memories.save(f"tea {number}", memory_id=f"x{number}", dedup=False)
        store.facts.set(f"tea_{number}", "green", single=True)
    store.append([said(f"tea leaf {number}", f"m{number}") for number in range(45)])
    (tmp_path / "tea.md").write_text("# Tea\n\nOf tea.\n")
    store.documents.add(tmp_path / "tea.md", source="tea")
    for limit in (6, 10, 2):
        given = store.context("tea", limit=limit, record=False)
        assert len(given.entries) == limit
        assert f"beyond the {limit} that were requested" in {left.why for left in given.left_out}
    assert len(store.context("tea", record=False).entries) == 6
    few = store.context("tea", limit=99, passages=2, documents=0, record=False)
    assert (len(ids(few, "passage")), len(ids(few, "document"))) == (2, 0)


def test_an_empty_store_gives_nothing(store):
    (store.path / "log").mkdir(parents=True)
    assert (store.context("tea").text, store.context("tea", chat=CHAT).entries) == ("", [])
    assert json.loads(store.context("tea", form="json").text)["entries"] == []


def test_what_no_context_can_be_made_for_is_bad_input(store):
    for odd in (
        {"counter": "words"},
        {"form": "xml"},
        {"max_tokens": -1},
        {"limit": -1},
        {"min_salience": 2.0},
    ):
        with refused(odd):
            store.context("tea", **odd)
    with pytest.raises(memlog.BadInput):
        store.context("  ")


# The asking message, and what is said twice


def test_the_message_that_asks_is_no_answer_and_stands_last_and_once(store):
    store.append([said("which tea?", "first"), said("green", "answer"), said("which tea?", "asks")])
    given = store.context("which tea?", chat=CHAT, form="messages")
    assert entries(given) == [("window", "first"), ("window", "answer")]
    assert given.messages == [
        {"role": "user", "content": "which tea?"},
        {"role": "user", "content": "green"},
        {"role": "user", "content": "which tea?"},
    ]


def test_what_is_excluded_enters_by_no_way(filled):
    names = ["habit", "old", "new", "sum", "favorite_teas/1/telegram:7"]
    given = filled.context("tea", chat=CHAT, exclude=names)
    assert [part for part, _ in entries(given)] == ["core"]


def test_a_passage_of_the_window_is_printed_once_with_the_right_of_a_passage(store):
    store.append([said("the kettle is new", "kettle"), *(said(f"word {n}", f"m{n}") for n in range(9))])
    kettle, beside, *_ = store.context("kettle", chat=CHAT).entries
    given = store.context("kettle", chat=CHAT, max_tokens=FRAME + kettle.tokens + beside.tokens)
    # What stands beside a match is found with it, and has the greater right than what is newest.
    assert entries(given) == [("window", "kettle"), ("window", "m0")]
    assert given.text.count("the kettle is new") == 1


def test_a_message_of_the_window_needs_no_right_of_a_passage(store):
    store.append([said("tea", "m1"), said("more tea", "m2")])
    given = store.context("tea?", chat=CHAT, passages=0)
    assert entries(given) == [("window", "m1"), ("window", "m2")]


def test_a_passage_that_repeats_a_memory_is_left_out(store):
    store.append(
        [
            said("I  like GREEN tea", "same"),
            said("I like green tea, and coffee in the morning", "more"),
            pause(),
        ]
    )
    store.memories.save("I like green tea", memory_id="likes")
    given = store.context("green tea", chat=CHAT)
    assert entries(given) == [("memory", "likes"), ("passage", "more")]
    assert left_out(given)["passage", "same"] == "the memory likes has this text"


def test_of_a_long_message_the_passage_that_was_found_is_given(store):
    store.append([said("Rain. " * 900 + "The kettle whistles at nine. " + "Snow. " * 900, "long"), pause()])
    (entry,) = store.context("kettle whistles", chat=CHAT).entries
    assert "The kettle whistles at nine." in entry.content
    assert entry.content.startswith("…")
    assert entry.content.endswith("…")
    assert entry.tokens < 500


# What stands no more


def test_what_is_archived_deleted_or_changed_does_not_enter(store):
    for name in ("archived", "deleted", "changed"):
        store.memories.save(f"tea that was {name}", memory_id=name)
    store.memories.archive("archived")
    store.memories.delete("deleted")
    store.memories.update("changed", content="tea as it is")
    given = store.context("tea")
    assert [(entry.id, entry.content) for entry in given.entries] == [("changed", "tea as it is")]


def test_what_has_faded_is_left_out_and_explain_says_so(store):
    store.memories.save("green tea", memory_id="fresh")
    store.memories.save("black tea", memory_id="faded")
    store.memories.update("faded", salience=0.2)
    assert ids(store.context("tea"), "memory") == ["fresh"]
    explained = store.context("tea", explain=True)
    assert left_out(explained) == {("memory", "faded"): "its salience 0.200 is below 0.3"}
    assert set(ids(store.context("tea", min_salience=0.0), "memory")) == {"fresh", "faded"}


@pytest.fixture
def superseded(store):
    """A fact that was set anew; the messages that said both, and a summary of the first."""
    store.append(
        [
            said("my city is Turku", "turku"),
            summed_up("the city is Turku", "sum", from_message_id="turku", to_message_id="turku"),
            said("my city is Oulu", "oulu"),
        ]
    )
    store.facts.set("city", "Turku", single=True, chat=NAME, source_message_id="turku")
    store.facts.set("city", "Oulu", single=True, chat=NAME, source_message_id="oulu")
    return store


def test_a_superseded_fact_does_not_come_back_by_the_message_that_said_it(superseded):
    for is_over in (False, True):
        if is_over:
            superseded.append([pause()])
        for chat in (CHAT, None):
            for form in ("text", "json", "messages"):
                given = superseded.context("my city", chat=chat, form=form)
                assert "Turku" not in given.text, (is_over, chat, form)
                assert "my city is Oulu" in given.text, (is_over, chat, form)
                assert left_out(given)["summary", "sum"] == "superseded", (is_over, chat, form)


def test_a_summary_is_left_out_where_its_stretch_has_a_superseded_message(superseded):
    stretches = {
        ("oulu", "oulu"): True,
        ("oulu", None): True,
        ("turku", "oulu"): False,
        (None, "turku"): False,
        (None, None): False,
        ("unknown", "unknown"): False,
    }
    for (first, last), is_given in stretches.items():
        name = f"{first} to {last}"
        superseded.append([summed_up("of a city", name, from_message_id=first, to_message_id=last)])
        given = superseded.context("my city", chat=CHAT)
        assert (name in ids(given, "summary")) is is_given, name
        assert (left_out(given).get(("summary", name)) == "superseded") is not is_given, name


def test_a_removed_fact_does_not_come_back_by_the_message_that_said_it(superseded):
    superseded.facts.remove("city", chat=NAME)
    given = superseded.context("my city", chat=CHAT)
    assert given.entries == []
    assert left_out(given) == dict.fromkeys(
        [("window", "oulu"), ("window", "turku"), ("summary", "sum")], "superseded"
    )


def test_a_message_that_also_said_what_stands_is_given(superseded):
    superseded.facts.set("street", "Kauppakatu", single=True, chat=NAME, source_message_id="turku")
    assert "turku" in ids(superseded.context("my city", chat=CHAT), "window")


def test_a_message_of_another_chat_with_the_same_id_is_not_meant(superseded):
    superseded.append([said("my city is Turku, too", "turku", chat=OTHER), pause(OTHER)])
    assert ids(superseded.context("my city Turku", chat=OTHER, scope="chat"), "passage") == ["turku"]


def test_a_fact_of_no_chat_means_its_message_by_its_id_alone(store):
    store.append([said("my city is Turku", "turku"), pause()])
    store.facts.set("city", "Turku", single=True, source_message_id="turku")
    store.facts.set("city", "Oulu", single=True)
    assert "Turku" not in store.context("my city Turku", chat=CHAT).text


def test_a_key_in_another_spelling_is_superseded_too(store):
    """As others write keys, both rows stand in the read model."""
    where = {"chat_id": NAME, "kind": "single"}
    store.append([said("my colour is red", "red"), pause()])
    store.append(
        [memlog.FactStored(topic_key="favourite_colour", value="red", source_message_id="red", **where)]
    )
    store.append([memlog.FactStored(topic_key="favorite_colors", value="blue", **where)])
    for text in ("colour", "my favourite colour", "red"):
        given = store.context(text, chat=CHAT)
        assert "red" not in given.text
        assert "favorite_colors: blue" in given.text or text == "red"


def test_the_order_in_which_events_arrive_does_not_matter(tmp_path, superseded):
    """The fact that is older comes last."""
    (tmp_path / "no-model").mkdir(exist_ok=True)
    with memlog.open(tmp_path / "late", model=tmp_path / "no-model") as late:
        late.append([said("my city is Turku", "turku"), said("my city is Oulu", "oulu")])
        for day, city in ((9, "Oulu"), (8, "Turku")):
            late.append(
                [
                    memlog.FactStored(
                        topic_key="city",
                        value=city,
                        chat_id=NAME,
                        source_message_id=city.lower(),
                        ts=f"2026-02-0{day}T00:00:00.000Z",
                    )
                ]
            )
            late.context("my city", chat=CHAT)
        assert ids(late.context("my city", chat=CHAT), "window") == ["oulu"]
        assert late.maintenance.verify().ok


def test_a_forgotten_fact_supersedes_nothing(superseded):
    fact = superseded.facts.list(chat=NAME)[0]
    superseded.erasure.forget(fact.event_id)
    given = superseded.context("my city", chat=CHAT)
    assert ("window", "turku") in entries(given)
    assert "city: Turku" in given.text


# Facts, and whose they are


@pytest.fixture
def known(store):
    """Facts of two chats and of none."""
    store.append([said("Good morning", "m1"), said("Hello", "m2", chat=OTHER)])
    store.facts.set("favorite_colors", "Blue", "Green", "Black", chat=NAME)
    store.facts.set("favorite_colors", "Red", chat="telegram:8")
    store.facts.set("favorite_colors", "White")
    store.facts.set("kettle", "steel", single=True)
    return store


def facts(given):
    return [entry.content for entry in given.entries if entry.part == "fact"]


def test_a_topic_that_is_asked_for_is_given_whole_by_rank(known):
    given = known.context("what is my second favourite colour?", chat=CHAT, scope="chat")
    assert facts(given) == ["favorite_colors 1: Blue", "favorite_colors 2: Green", "favorite_colors 3: Black"]


def test_a_topic_is_named_in_other_languages_and_in_passing(known):
    for text in ("мой любимый цвет?", "mikä on lempivärini?", "favourite colours and more"):
        assert "favorite_colors 1: Blue" in facts(known.context(text, chat=CHAT)), text


def test_a_fact_of_no_chat_enters_where_the_chat_has_none_of_its_topic(known):
    given = known.context("kettle, favourite colours", chat=CHAT, scope="chat")
    assert "kettle: steel" in facts(given)
    assert "favorite_colors 1: White" not in facts(given)
    assert left_out(given)["fact", "favorite_colors/1"] == "telegram:7 has its own"


def test_without_a_chat_facts_of_all_are_given_and_say_whose_they_are(known):
    text = known.context("favourite colours", scope="store").text
    assert "favorite_colors 1: Red (telegram:8)" in text
    assert "favorite_colors 1: Blue (telegram:7)" in text
    assert "favorite_colors 1: White" in text


def test_nothing_of_another_chat_enters_where_a_chat_is_asked_for(known):
    known.append([said("my tea is green", "tea", chat=OTHER), pause(OTHER)])
    known.append([summed_up("they drank tea", "sum", chat=OTHER)])
    known.memories.save("likes tea", memory_id="other", chat="telegram:8")
    known.memories.save("tea is a plant", memory_id="nobody")
    known.daily.record("tea with Anna", channel="telegram", sender_id="8")
    known.daily.record("tea for all")
    given = known.context("tea, favourite colours", chat=CHAT, scope="chat")
    assert {entry.chat for entry in given.entries} <= {None, NAME}
    said_of_none = {entry.content for entry in given.entries if entry.part == "memory"}
    assert said_of_none == {"tea for all", "tea is a plant"}
    assert "with Anna" not in given.text
    assert "Red" not in given.text
    everything = known.context("tea", scope="store")
    assert {"tea", "sum", "other"} <= {entry.id for entry in everything.entries}


def test_a_file_of_memories_gives_the_passage_that_was_found(store, tmp_path):
    content = "# Home\n\n" + "It rains here. " * 400 + "\n\n# Kitchen\n\nThe kettle whistles.\n"
    source = memlog.SourceRegistered(source_id="home", kind="memory", root="/home/anna")
    store.append([source, memlog.DocumentIndexed(source_id="home", file="MEMORY.md", content=content)])
    given = store.context("kettle whistles")
    (entry,) = given.entries
    assert (entry.part, entry.label, entry.id) == ("memory", "FILE", "home/MEMORY.md")
    assert "The kettle whistles." in entry.content
    assert entry.tokens < 500
    assert given.memory_ids == []
    assert ": MEMORY.md: …" in given.text


# Recording


def accesses(store):
    path = Path(store.path) / "log" / "memory"
    lines = [line for segment in sorted(path.iterdir()) for line in segment.read_bytes().splitlines()]
    return [event["memory_ids"] for event in map(json.loads, lines) if event["type"] == "memory_accessed"]


def size_of_log(store):
    return {path: path.stat().st_size for path in (store.path / "log").rglob("*.jsonl")}


def test_one_event_records_all_memories_that_were_given(store):
    for name in ("a", "b", "c"):
        store.memories.save(f"tea {name}", memory_id=name, dedup=False)
    given = store.context("tea", limit=2)
    assert accesses(store) == [ids(given, "memory")]
    assert len(given.memory_ids) == 2
    store.context("tea", limit=0)
    assert len(accesses(store)) == 1
    assert [store.memories.get(name).access_count for name in given.memory_ids] == [1, 1]


def test_nothing_is_appended_where_nobody_wants_it_or_nothing_was_given(filled):
    before = size_of_log(filled)
    filled.context("tea", record=False)
    filled.context("tea", max_tokens=20)
    assert size_of_log(filled) == before


def test_a_failed_append_does_not_fail_the_read(filled, tmp_path):
    (segment,) = (filled.path / "log" / "memory").iterdir()
    with segment.open("ab") as held:
        locks.lock_file(held.fileno(), str(segment), 5)
        given = filled.context("tea nine")
    assert ids(given, "memory") == ["habit"]
    assert "2026" in given.unrecorded or segment.name in given.unrecorded
    assert accesses(filled) == []


# Citations


def test_each_citation_is_the_place_of_the_event_that_says_it(filled):
    given = filled.context("tea", chat=CHAT)
    assert list(given.citations) == ["M1", "M2", "M3", "M4", "M5"]
    for entry in given.entries:
        shown = filled.get(entry.id, stream=entry.position.stream)
        assert (shown.position, entry.content.rpartition(": ")[2] in shown.raw) == (entry.position, True)


def test_only_messages_have_messages(filled):
    with pytest.raises(memlog.BadInput):
        _ = filled.context("tea").messages
    assert filled.context("tea", form="messages", max_tokens=1).messages == []


# Members of classes that were found from outside


def test_the_asking_message_hides_nothing_else_of_its_id(store):
    store.core.set("user", "name", "Anna")
    store.append(
        {"type": "core_memory_updated", "id": "5", "section": "user", "key": "city", "value": "Oulu"}
    )
    asked = "What is the wifi password?"
    store.append([said("The wifi password is trout", "5", chat=OTHER), said(asked, "5")])
    for options in ({}, {"message_id": "5"}):
        given = store.context(asked, chat=CHAT, scope="store", **options)
        assert "trout" in given.text
        assert [entry.title for entry in given.entries if entry.part == "core"] == ["user.city", "user.name"]
        assert ids(given, "window") == []
    store.append([said("calling", role="assistant"), said("ok", "back", role="tool")])
    assert "back" in ids(store.context("ok", chat=CHAT, passages=0), "window")


def test_the_ranks_of_a_list_are_no_older_than_each_other(store):
    store.facts.set("favorite_teas", "Sencha", "Assam")
    store.facts.set("favorite_teas", "Oolong", ranks=[3])
    store.facts.set("favorite_teas", "Mate", "Assam", chat="telegram:8")
    given = store.context("my favorite teas?", chat=CHAT, scope="store")
    older = [entry.content for entry in given.entries if entry.is_older]
    assert (older, len(ids(given, "fact"))) == (["favorite_teas 1: Sencha"], 5)


def test_a_newer_memory_of_a_topic_is_not_cut_behind_the_one_that_it_corrects(store):
    old, new = "2020-01-01T10:00:00Z", "2025-01-01T10:00:00Z"
    store.memories.save("Anna lives in the city of Oulu", memory_id="old", topic="city", dedup=False, ts=old)
    text = "Anna now lives in the city of Turku"
    store.memories.save(text, memory_id="new", topic="city", dedup=False, ts=new)
    asked = "In which city does Anna live?"
    assert ids(store.context(asked, limit=1, min_salience=0), "memory") == ["new"]
    both = store.context(asked, min_salience=0).entries
    assert [(entry.id, entry.changed_by) for entry in both] == [("new", None), ("old", "new")]


def test_who_speaks_while_a_context_is_made_is_not_heard(store, monkeypatch):
    store.append(replace(said("my salary"), name="Anna"))
    store.context("my salary", chat=CHAT, record=False)
    asking = search.find_prompt_message

    def meanwhile(db, asked):
        with memlog.open(store.path, model=store.path.parent / "no-model") as other:
            other.append(replace(said("my salary is 7000", chat=OTHER), name="Bo"))
            other.maintenance.project(embed=False)
        return asking(db, asked)

    monkeypatch.setattr(search, "find_prompt_message", meanwhile)
    assert "7000" not in store.context("my salary", chat=CHAT, record=False).text


def test_a_daily_event_keeps_its_day_in_every_zone(store):
    store.daily.record("Anna planned a party", date="2026-02-24")
    for zone in ("America/New_York", "Pacific/Auckland"):
        assert "- [EVENT] 2026-02-24: Anna" in store.context("party", timezone=zone).text


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[32m kettle \x1b[0m" * 180,
        "kettle" + "\x1b" * 9000,
        "\r\n".join(f"{number}. kettle" for number in range(300)),
        ("我喜欢喝绿茶我的水壶坏了昨天买了一个新的水壶" * 6 + " ") * 20,
    ],
)
def test_an_excerpt_is_as_short_as_it_is_printed(store, text):
    store.append(said(text, "long"))
    given = store.context("kettle 水壶", max_tokens=150)
    assert ids(given, "passage") == ["long"]


def test_where_the_question_fills_the_budget_silent_says_so(store):
    store.append(said("hello"))
    given = store.context("kettle " * 400, form="messages", max_tokens=100)
    assert given.messages == []
    assert given.silent["frame"].startswith("nothing included: the frame alone takes")

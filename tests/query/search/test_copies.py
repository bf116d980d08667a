"""Copies of a text: one candidate stands for all of them, before the cut of each side."""

import json

import pytest

import memlog
from memlog import DailyEventRecorded, DocumentIndexed, FactStored, MemorySaved, Message
from memlog.query.search.copies import represent_copies_alike
from memlog.query.search.hits import Candidate

QUESTION = "What is the wifi password?"
SPELLINGS = (QUESTION, "what is the WiFi password", "What is  the\nwifi password!!")


@pytest.fixture
def store(tmp_path):
    with memlog.open(tmp_path / "store", durability="os") as opened:
        yield opened


def said(content, number=0, *, role="user", chat="1", **more):
    ts = f"2026-02-{number // 24 + 1:02}T{number % 24:02}:00:00Z"
    return Message(channel="cli", chat_id=chat, role=role, content=content, ts=ts, **more)


def asked_often(store, times=45):
    """One fact, and copies of the question for it."""
    asked = [said(SPELLINGS[number % 3], number + 2, id=f"q{number}") for number in range(times)]
    store.append([said("The wifi password is hunter2, keep it", id="fact"), said("Noted.", 1), *asked])
    store.maintenance.project()


COPIES = [
    ("Tea at nine.", "tea at nine"),
    ("Tea, at  nine", "tea at\tnine!"),
    ("Tea: at nine?!", "TEA AT NINE…"),
    ("Straße", "STRASSE"),
    ("Caf\u00e9 Central", "cafe\u0301 central"),
    ("Где ключ?", "где ключ"),
    ("¿Dónde está?", "dónde está"),
    ("天气怎么样？", "天气怎么样"),
    ("चाय कहाँ है।", "चाय कहाँ है"),
]
DIFFERENT = [
    ("severity=high", "severity!=high"),
    ("C++ tea", "C tea"),
    ("tea 2+2?", "tea 2-2?"),
    ("tea at -5", "tea at 5"),
    ("tea 1.5", "tea 15"),
    ("pill a", "pill b"),
    ("tea [1]", "tea (1)"),
    ("tea 👍", "tea 👎"),
    ("a ? tea : c", "a tea c"),
    ("lives in Oulu", "lived in Oulu"),
]


def test_copies_have_the_same_words_and_nothing_else_is_one(tmp_path):
    for number, (one, other, copies) in enumerate(
        [(*pair, 2) for pair in COPIES] + [(*pair, 1) for pair in DIFFERENT]
    ):
        with memlog.open(tmp_path / str(number), durability="os") as store:
            store.append([said(one, 1), said(other, 2), said("Something else about tea", 3)])
            hits = [hit for hit in store.search(f"{one} {other}").hits if hit.content in (one, other)]
            assert {hit.copies for hit in hits} == {copies}, (one, other)
            assert len(hits) == 3 - copies, (one, other)
            assert copies == 1 or hits[0].content == other


def test_a_question_that_was_asked_often_does_not_hide_its_answer(store):
    asked_often(store)
    for mode in ("hybrid", "text", "vector"):
        hits = store.search(QUESTION, mode=mode, ranking=memlog.Ranking(context=mode == "hybrid")).hits
        assert "fact" in [hit.id for hit in hits], mode
        assert [(hit.id, hit.copies) for hit in hits if "?" in hit.content or "!" in hit.content] == [
            ("q44", 45)
        ]
    for chat in (None, "cli:1"):
        assert "hunter2" in store.context(QUESTION, chat=chat, max_tokens=300).text, chat
    (line,) = [line for line in store.context(QUESTION).text.splitlines() if "wifi password!!" in line]
    assert "(45 copies) [M" in line
    entries = json.loads(store.context(QUESTION, form="json").text)["entries"]
    assert [entry["copies"] for entry in entries if "copies" in entry] == [45]


def test_ten_hits_are_ten_texts(store):
    notes = [said(f"tea note {number}", number) for number in range(12)]
    store.append([*notes, *[said("Tea? Tea!", number + 20) for number in range(80)]])
    for mode in ("hybrid", "text", "vector"):
        contents = [hit.content for hit in store.search("tea", mode=mode, k=10).hits]
        assert len(set(contents)) == len(contents) == 10, mode


def test_what_neighbours_bring_has_no_copies(store):
    """The replies are found by the messages beside them alone."""
    turns = [
        (said(f"Water plant {n} in May", 2 * n), said("Yes.", 2 * n + 1, role="assistant")) for n in range(9)
    ]
    store.append([turn for pair in turns for turn in pair])
    hits = store.search("plant", mode="text", k=20).hits
    assert [hit.content for hit in hits].count("Yes.") == 1
    assert len(hits) == 10


def test_other_roles_speakers_kinds_titles_and_topics_are_no_copies(store):
    same = "Green tea at nine"
    store.append(
        [
            *[said(same, role="user"), said(same, role="assistant"), said(same, name="Anna")],
            *[
                MemorySaved(memory_id="plain", content=same),
                MemorySaved(memory_id="t", content=same, title="B"),
            ],
            *[
                MemorySaved(memory_id="topic", content=same, topic="tea"),
                FactStored(topic_key="a", value=same),
            ],
            *[
                FactStored(topic_key="b", value=same),
                DailyEventRecorded(event_date="2026-02-01", summary=same),
            ],
            DocumentIndexed(source_id="docs", file="a.md", content=same),
        ]
    )
    hits = store.search(same, k=20).hits
    assert [hit.copies for hit in hits] == [1] * 10


def test_copies_of_memories_and_documents_are_one_hit(store):
    same = "Green tea at nine"
    for chat in ("cli:1", "cli:2", None):
        store.append([MemorySaved(memory_id=f"m-{chat}", content=same, chat_id=chat)])
    store.append([DailyEventRecorded(event_date=f"2026-02-0{day}", summary=same) for day in (1, 2)])
    store.append([DocumentIndexed(source_id="docs", file=name, content=same) for name in ("a.md", "b.md")])
    long = [said("A long story. " * 9000, number, id=f"long{number}") for number in range(2)]
    store.append(long)
    hits = [hit for hit in store.search(same, k=20).hits if hit.content == same]
    copies = {hit.source: hit.copies for hit in hits}
    assert (len(hits), copies) == (3, {"daily_event": 2, "docs": 2, "manual": 3})
    assert [hit.copies for hit in store.search("story", mode="text").hits] == [1, 1]
    assert [hit.copies for hit in store.search(same, chat="cli:2").hits] == [1]


def test_of_copies_of_one_time_the_one_last_in_the_log_is_the_newest(store):
    same = [said(SPELLINGS[number % 3], 1, id=f"q{-number % 17:02}") for number in range(40)]
    store.append([each for number, each in enumerate(same) if number < 17])
    for mode in ("hybrid", "text"):
        assert [(hit.id, hit.copies) for hit in store.search("wifi", mode=mode).hits] == [("q01", 17)]


def test_a_side_that_does_not_know_the_newest_copy_finds_it():
    old, new = (
        Candidate("message", "message", ("s", ts), 0.5, ts, ref, text_key="x")
        for ref, ts in ((1, "a"), (2, "b"))
    )
    old = old._replace(copies=3, score=0.9)
    sides = represent_copies_alike({"text": [[new]], "vector": [[old]]})
    assert [(each.ref, each.score, each.copies) for each in sides["text"][0]] == [(2, 0.5, 3)]
    assert [(each.ref, each.score, each.copies) for each in sides["vector"][0]] == [(2, 0.9, 3)]

"""What a later memory may change comes behind it, marked, in every reader."""

import pytest

import memlog
from memlog.query.search.hits import LATER

MOVES = {
    "english": ("Anna lives in Helsinki", "Anna lives in Oulu now", "where does Anna live?"),
    "russian": ("Мила живёт в Казани", "Мила теперь живёт в Уфе", "где живёт Мила?"),
    "finnish": ("Aino asuu Helsingissä", "Aino asuu nyt Oulussa", "missä Aino asuu?"),
    "chinese": ("小雨住在成都", "小雨现在住在重庆", "小雨住在哪里？"),
}
OTHERS = ("The kettle is on the stove", "Кот спит на диване", "Koira nukkuu sohvalla", "猫在沙发上睡觉")


def saved(store, texts, **members) -> list[str]:
    ids = [f"m{number}" for number in range(len(texts))]
    store.append(
        memlog.MemorySaved(memory_id=name, content=text, ts=f"2026-11-{10 + number}T10:00:00Z", **members)
        for number, (name, text) in enumerate(zip(ids, texts, strict=True))
    )
    for number, text in enumerate(OTHERS):
        store.append([memlog.MemorySaved(memory_id=f"o{number}", content=text, ts="2026-11-01T10:00:00Z")])
    store.maintenance.embed()
    return ids


@pytest.mark.parametrize("topic", [None, "residence"])
@pytest.mark.parametrize("language", MOVES)
def test_the_newer_comes_first_and_the_older_is_marked_in_all_three_readers(store, language, topic):
    *texts, question = MOVES[language]
    older, newer = saved(store, texts, topic=topic)
    hits = {hit.id: (place, hit.changed_by) for place, hit in enumerate(store.search(question).hits)}
    assert hits[newer][0] < hits[older][0]
    assert (hits[newer][1], hits[older][1]) == (None, newer)
    results = [(result.id, result.note) for result in store.tools.memory_search(question).results]
    assert results.index((newer, None)) < results.index((older, LATER))
    text = store.context(question, record=False).text
    assert text.index(texts[1]) < text.index(texts[0])
    (line,) = [line for line in text.splitlines() if texts[0] in line]
    assert LATER in line


DIFFERENT = [
    ("Anna is allergic to nuts", "Anna is now allergic to shellfish"),
    ("Ada is allergic to penicillin", "Ada is no longer allergic to cats"),
    ("Nina works at the hospital", "Nina's husband now works at the bank"),
    ("Anna takes 50 mg of levothyroxine", "Anna now takes vitamin D"),
    ("The web server runs on port 8080", "The database now runs on port 5432"),
    ("Ben likes chess", "Ben now likes tennis"),
    ("The car is in the garage", "The bicycle is in the garage now"),
    ("Mila works at the hospital", "Ivan now works at the school"),
    ("The passport is in the drawer", "The keys are now in the drawer"),
    ("Standup is at half past nine", "The retro is now on Fridays at two"),
    ("Lena plays handball", "Otto now plays the piano"),
    ("The router is in the hall", "The printer is in the study now"),
]


def test_different_things_under_one_topic_or_of_two_topics_are_not_marked(store):
    for number, (one, other) in enumerate(DIFFERENT):
        for place, text in enumerate((one, other)):
            store.append(
                [
                    memlog.MemorySaved(
                        memory_id=f"d{number}-{place}",
                        content=text,
                        topic=f"topic {number}",
                        ts=f"2026-11-{10 + place}T10:00:00Z",
                    )
                ]
            )
    store.maintenance.embed()
    for one, other in DIFFERENT:
        found = store.search(f"{one} {other}", k=20).hits
        assert [hit.content for hit in found if hit.changed_by] == []


def test_two_topics_rule_a_pair_out(store):
    texts = MOVES["english"][:2]
    for place, (text, topic) in enumerate(zip(texts, ("home", "office"), strict=True)):
        store.append([memlog.MemorySaved(content=text, topic=topic, ts=f"2026-11-{10 + place}T10:00:00Z")])
    store.maintenance.embed()
    assert [hit.changed_by for hit in store.search("where does Anna live?").hits] == [None, None]


def test_what_was_found_for_nonsense_is_not_certain(store):
    store.append([memlog.Message(channel="cli", chat_id="1", role="user", content=":-) :-) zzz")])
    saved(store, ["Anna lives in Helsinki"])
    nonsense, known = store.search("qwrtplk zxcvbn"), store.search("where does Anna live?")
    assert (nonsense.certain, known.certain) == (False, True)
    (hit,) = [hit for hit in known.hits if hit.id == "m0"]
    assert hit.relevance is not None
    assert hit.similarity is not None
    asked = store.tools.memory_search("qwrtplk zxcvbn")
    assert (asked.certain, asked.note) == (False, "nothing certain")
    assert (store.tools.memory_search("where does Anna live?").certain) is True


def test_the_core_memory_is_searched(store):
    store.core.set("user", "favourite_tea", "Sencha")
    store.core.set("user", "name", "Anna")
    saved(store, ["The kettle is on the stove"])
    first = store.search("what is the favourite tea?").hits[0]
    assert (first.source, first.id, first.content) == ("core", "user.favourite_tea", "Sencha")
    found = store.tools.memory_search("name of the user").results[0]
    assert (found.id, found.content) == ("user.name", "Anna")
    assert [hit.id for hit in store.search("kettle stove").hits if hit.source == "core"] == []

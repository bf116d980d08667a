from memlog import Filters, MemorySaved, Message

SAID = [
    Message(channel="cli", chat_id="1", role="user", name="Anna", content="green tea", id="a"),
    Message(channel="cli", chat_id="1", role="user", name="Ben", content="green tea, too", id="b"),
    Message(channel="cli", chat_id="1", role="user", content="no name for green tea", id="c"),
    MemorySaved(content="Anna likes green tea"),
]


def test_a_search_finds_what_one_speaker_says(store):
    store.append(SAID)
    for mode in ("text", "vector", "hybrid"):
        found = store.search("green tea", mode=mode, filters=Filters(speaker="Anna")).hits
        assert [hit.id for hit in found] == ["a"]
    assert store.search("green tea", filters={"speaker": "anna"}).hits == []

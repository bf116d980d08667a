"""A name is the same in each canonical form of Unicode: é is one character, or e and an accent."""

import pytest

import memlog

FORMS = ["caf\u00e9 \uac01", "cafe\u0301 \u1100\u1161\u11a8"]


@pytest.mark.parametrize(("stored", "asked"), [FORMS, FORMS[::-1]])
def test_a_name_is_found_in_each_canonical_form(store, stored, asked, tmp_path):
    store.facts.set(stored, ["green"])
    store.memories.save("black tea", topic=stored, tags=[stored])
    store.append([memlog.Message(channel="c", chat_id="1", role="user", name=stored, content="white tea")])
    store.core.set("user", stored, "tea")
    projects = memlog.Projects(tmp_path / "projects")
    projects.path(stored).mkdir(parents=True)

    def found(**filters):
        return len(store.search("tea", mode="text", filters=memlog.Filters(**filters)).hits)

    assert store.facts.get(asked).answer == "green"
    assert (found(topic=asked), found(tag=asked), found(speaker=asked)) == (1, 1, 1)
    assert len(store.memories.list(topic=asked)) == len(store.memories.list(tag=asked)) == 1
    store.core.set("user", asked, "coffee")
    assert store.core.get().user == {stored: "coffee"}
    assert store.core.get("user", asked) == "coffee"
    assert store.core.delete("user", asked)
    assert store.core.get().user == {}
    assert projects.path(asked) == projects.path(stored)

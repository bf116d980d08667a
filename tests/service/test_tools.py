"""`store.tools`: what an agent is offered."""

import memlog


def test_what_was_found_is_read_in_full_whatever_its_line_has(store: memlog.Store) -> None:
    for chat in ("1", "2"):
        said = {"type": "message", "id": "same", "channel": "x", "chat_id": chat, "role": "user"}
        store.append(said | {"content": f"green tea {chat} " * 300, "source": {"a": 1}})
    foreign = store.path / "log/conversations/cli_1/2026-11-20.jsonl"
    foreign.parent.mkdir(parents=True)
    foreign.write_text(
        '{"id":"f3","ts":"2026-11-20T10:00:00Z","role":"user","content":"green tea, too","channel":"cli"}\n'
    )
    found = store.tools.memory_search("green tea").results
    assert {each.id for each in found} == {"same", "f3"}
    assert [each.is_cut for each in found if each.id == "same"][:1] == [True]
    items = store.tools.memory_get(["same", "f3"]).items
    assert [(each.chat, len(each.content) > 2000) for each in items[:2]] == [("x:1", True), ("x:2", True)]
    assert items[2].content == "green tea, too"
    store.facts.set("beans", "Borlotti", "Fava")
    (fact, *_) = [each for each in store.tools.memory_search("Fava beans").results if each.id == "beans/2"]
    (item,) = store.tools.memory_get([fact.id]).items
    assert (fact.kind, item.id, item.kind, item.content) == ("fact", "beans/2", "fact", "beans 2: Fava")

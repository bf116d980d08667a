"""`memlog.connect`: the operations of a store that a server does."""

import copy
from datetime import datetime
from pathlib import Path

import pytest

import memlog
from memlog.service.catalogue import GROUPS, operations
from tests.service.http.conftest import Serve


def test_a_connected_group_has_the_operations_of_that_of_a_store() -> None:
    store = memlog.connect("http://127.0.0.1:9", token="x")
    served = {name for name, each in operations().items() if not each.is_endless}
    found = {f"{group}.{name}" for group in GROUPS if group for name in dir(getattr(store, group))}
    assert {name for name in served if "." in name} == {name for name in found if "._" not in name}
    assert copy.copy(store.memories).save.__self__ != store.memories


def test_a_remote_store_answers_as_one_that_is_open(serve: Serve, tmp_path: Path) -> None:
    server = serve(store=tmp_path / "store")
    with memlog.connect(f"http://127.0.0.1:{server.port}", token=server.token) as store:
        assert store.available()
        said = memlog.Message(channel="x", chat_id="1", id="m1", role="user", content="I like green tea")
        (position,) = store.append([said, {"type": "memory_saved", "content": "likes tea"}])[:1]
        assert isinstance(position, memlog.Position)
        saved = store.memories.save("Ann likes rye bread", memory_id="bread", tags=["food"])
        assert isinstance(saved, memlog.SaveReport)
        hits = store.search("green tea", k=3, chat=("x", "1"), filters=memlog.Filters(role="user")).hits
        assert [(hit.id, hit.position.stream) for hit in hits] == [("m1", position.stream)]
        assert "rye" in store.context("bread?", chat="x:1", exclude={"m1"}).text
        assert (store.core.get(), store.core.get("user")) == (memlog.CoreMemory({}, {}), {})
        assert store.documents.list() == []
        # What is missing is what it is in Python.
        assert (store.core.get("user", "name"), store.memories.get("x"), store.memories.delete("x")) == (
            *(None, None),
            False,
        )
        assert store.memories.history("x") == []
        with pytest.raises(memlog.NotFound) as missing:
            store.conversations.window("x:2")
        assert missing.value.code == "session_not_found"
        for wrong in (
            lambda: store.search("tea", k=0),
            lambda: store.append(b"{"),
            lambda: memlog.connect("http://127.0.0.1:1", seconds=-1),
        ):
            with pytest.raises(memlog.BadInput):
                wrong()
        dated = memlog.Message(
            channel="x", chat_id="3", role="user", content="late", ts=datetime(2026, 11, 20)
        )  # type: ignore[arg-type]
        store.append([dated, {"type": "memory_saved", "content": "early", "ts": datetime(2026, 11, 20)}])
        store.close()
        assert store.conversations.window("x:3").messages[0].ts.startswith("2026-11-20T00:00")
    with (
        memlog.connect(f"http://127.0.0.1:{server.port}", token="wrong\n") as store,
        pytest.raises(memlog.BadInput, match="token"),
    ):
        store.memories.list()
    with memlog.connect("http://127.0.0.1:1") as store:
        assert not store.available()
        with pytest.raises(memlog.LogError) as away:
            store.memories.list()
        assert away.value.retryable


def test_a_remote_store_has_every_operation_but_endless_ones() -> None:
    with memlog.connect("http://127.0.0.1:1") as store:
        for name, operation in operations().items():
            group, _, method = name.rpartition(".")
            found = hasattr(getattr(store, group) if group else store, method)
            assert found is not operation.is_endless, name

"""klaw: "Reading logs: `klaw logs --chat telegram_123456`": a chat by the name of its folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog
from memlog.service.catalogue import call_operation

SAID = memlog.Message(channel="telegram", chat_id="123456", role="user", content="I drink tea")

CALLS: dict[str, Callable[[memlog.Store], Any]] = {
    "an argument": lambda store: store.conversations.window("telegram_123456").messages,
    "an option": lambda store: store.search("tea", chat="telegram_123456").hits,
    "a field of a request by HTTP or MCP": lambda store: (
        call_operation(store, "conversations.window", {"chat": "telegram_123456"}).messages
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_klaw_logs_chat_telegram_123456(tmp_path: Path, call: Callable[[memlog.Store], Any]) -> None:
    with memlog.open(tmp_path) as store:
        store.append([SAID])
        assert [each.content for each in call(store)] == ["I drink tea"]


@pytest.mark.parametrize(
    "name", ["telegram_99", "telegram", "telegram_../memory", "x/telegram_123456", "x" * 5000 + "_7"]
)
def test_another_name_is_no_chat(tmp_path: Path, name: str) -> None:
    with memlog.open(tmp_path) as store:
        store.append([SAID])
        with pytest.raises(memlog.BadInput, match="chat is"):
            store.conversations.window(name)

"""Rows of docs/five-systems.md that Python programs and commands use in the same way."""

import json
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog
from tests.support.command_tree import MEMLOG
from tests.support.provider import serving

SUPERGROUP = -1001234567890
CHAT = f"telegram:{SUPERGROUP}"
MESSAGE = {"type": "message", "channel": "telegram", "role": "user", "content": "I drink green tea"}


def command(store: Path, *args: str, said: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [MEMLOG, "--store", str(store), *args], input=said, capture_output=True, text=True, check=False
    )


def foreign(store: Path, *members: dict[str, Any]) -> None:
    folder = store / "log/conversations/telegram_x"
    folder.mkdir(parents=True)
    (folder / "2026-02-24.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in members))


SAYS: dict[str, Callable[[memlog.Store, Any], object]] = {
    "struct": lambda store, chat: store.append(
        memlog.Message(channel="telegram", chat_id=chat, role="user", content="I drink green tea")
    ),
    "dict": lambda store, chat: store.append({**MESSAGE, "chat_id": chat}),
    "line": lambda store, chat: store.append(json.dumps({**MESSAGE, "chat_id": chat}).encode()),
    "command": lambda store, chat: command(
        store.path, "append", said=json.dumps({**MESSAGE, "chat_id": chat})
    ).check_returncode(),
    "option": lambda store, chat: command(
        store.path, *("append", "message", "--chat", f"telegram:{chat}"), *("--role=user", "--content=tea")
    ).check_returncode(),
}


@pytest.mark.parametrize("way", SAYS)
def test_an_integer_chat_id_is_the_chat_of_its_text(way: str, tmp_path: Path) -> None:
    with memlog.open(tmp_path / "store") as store:
        SAYS[way](store, SUPERGROUP)
        store.append({**MESSAGE, "chat_id": str(SUPERGROUP)})
        assert len(store.conversations.window(("telegram", SUPERGROUP)).messages) == 2
        assert store.search("tea", chat=memlog.Chat("telegram", SUPERGROUP)).hits
        assert [each.name for each in (tmp_path / "store/log/conversations").iterdir()] == [
            f"telegram_{SUPERGROUP}"
        ]
        store.facts.set("tea", "green", chat=("telegram", SUPERGROUP))
        store.tools.memory_save("Anna likes tea", chat=("telegram", SUPERGROUP))
        found = (store.facts.list(chat=CHAT), store.memories.list(chat=CHAT))
        assert [[each.chat for each in kind] for kind in found] == [[CHAT], [CHAT]]
        assert store.maintenance.verify().ok


@pytest.mark.parametrize("chat_id", [7.0, True, [7]])
def test_another_chat_id_than_a_text_or_an_integer_is_refused(chat_id: object, tmp_path: Path) -> None:
    with memlog.open(tmp_path) as store:
        for way in ("struct", "dict", "line"):
            with pytest.raises(memlog.BadInput, match="chat_id is"):
                SAYS[way](store, chat_id)
        with pytest.raises(memlog.BadInput, match="chat is"):
            store.search("tea", chat=("telegram", chat_id))  # type: ignore[arg-type]
        assert not store.exists


def test_a_line_of_another_program_with_an_integer_chat_id_is_read(tmp_path: Path) -> None:
    foreign(tmp_path, {**MESSAGE, "chat_id": 7, "id": "a"}, {**MESSAGE, "chat_id": 7.5, "id": "b"})
    folder = tmp_path / "log/conversations"
    (folder / "telegram_x").rename(folder / "telegram_7")
    with memlog.open(tmp_path) as store:
        (message,) = store.conversations.window("telegram:7").messages
        assert message.id == "a"
        assert [each.reason for each in store.maintenance.quarantine()] == ["invalid"]


BLANK = " \n\t\u2003\u200b\ufeff\u3164"
SAVED = {"type": "memory_saved", "content": BLANK}

SAVES: dict[str, Callable[[memlog.Store], object]] = {
    "save": lambda store: store.memories.save(BLANK),
    "save without dedup": lambda store: store.memories.save(BLANK, dedup=False),
    "replace": lambda store: store.memories.save(BLANK, memory_id="tea"),
    "update": lambda store: store.memories.update("tea", content=BLANK),
    "tool": lambda store: store.tools.memory_save(BLANK),
    "struct": lambda store: store.append(memlog.MemorySaved(content=BLANK)),
    "dict": lambda store: store.append(SAVED),
    "line": lambda store: store.append(json.dumps(SAVED).encode()),
    "update event": lambda store: store.append(memlog.MemoryUpdated(memory_id="tea", content=BLANK)),
}
COMMANDS = {
    "memory save": ["memory", "save", "--content", BLANK],
    "memory save --no-dedup": ["memory", "save", "--no-dedup", "--content", BLANK],
    "memory update": ["memory", "update", "tea", "--content", BLANK],
    "append memory_saved": ["append", "memory_saved", "--content", BLANK],
    "append": ["append"],
}


@pytest.mark.parametrize("way", [*SAVES, *COMMANDS])
def test_a_memory_with_blank_content_is_refused(way: str, tmp_path: Path) -> None:
    with memlog.open(tmp_path / "store") as store:
        store.memories.save("Anna drinks tea", memory_id="tea")
        if way in SAVES:
            with pytest.raises(memlog.BadInput, match="must not be blank"):
                SAVES[way](store)
        else:
            done = command(store.path, *COMMANDS[way], said=json.dumps(SAVED))
            assert (done.returncode, "must not be blank" in done.stdout + done.stderr) == (65, True)
        assert [each.content for each in store.memories.list()] == ["Anna drinks tea"]


def test_an_older_line_with_blank_content_is_read(tmp_path: Path) -> None:
    (tmp_path / "log/memory").mkdir(parents=True)
    line = json.dumps({**SAVED, "id": "old", "memory_id": "old", "ts": "2026-02-24T08:00:00Z"})
    (tmp_path / "log/memory/2026-02-24.jsonl").write_text(line + "\n")
    with memlog.open(tmp_path) as store:
        assert [each.memory_id for each in store.memories.list()] == ["old"]
        assert store.maintenance.quarantine() == []


@pytest.mark.parametrize("makes_folder", [False, True])
def test_core_set_of_a_key_beyond_ascii(makes_folder: bool, tmp_path: Path) -> None:
    if makes_folder:
        (tmp_path / "store").mkdir()
    done = command(tmp_path / "store", "core", "set", "user", "città", "Roma")
    assert (done.returncode, done.stderr) == (0, "")
    assert command(tmp_path / "store", "core", "get", "user", "città").stdout == "Roma\n"


def test_memory_retrieved_count_moves_by_reads_alone(tmp_path: Path) -> None:
    with memlog.open(tmp_path) as store:
        found = []
        tea = store.memories.save("Anna drinks green tea", chat="cli:1").memory_id
        acts: list[Callable[[], object]] = [
            lambda: store.memories.save("Anna drinks green tea", chat="cli:1"),
            lambda: store.memories.list(),
            lambda: store.context("which tea?", chat="cli:1"),
            lambda: store.memories.touch(tea),
        ]
        for act in acts:
            act()
            found.append(store.maintenance.stats().counters["memory.retrieved.count"])
        memory = store.memories.get(tea)
    assert found == [0, 0, 1, 2]
    assert memory is not None
    assert memory.access_count == 3


@pytest.mark.parametrize("is_one_session", [False, True])
@pytest.mark.parametrize("fault", ["500", "no JSON"])
def test_memory_extraction_errors_counts_each_failed_extraction(
    fault: str, is_one_session: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memlog.service.llm.model._WAITS", ())
    with serving() as provider:
        provider.always = fault
        model = memlog.LanguageModelProvider(type="api", base_url=provider.url, model="m")
        with memlog.open(tmp_path, language_model=model) as store:
            for number in range(4):
                session = f"chat:{0 if is_one_session else number}"
                store.extraction.extract(session, f"I bought {number} kettles", "Noted")
            for thread in threading.enumerate():
                if thread.name == "memlog-extraction":
                    thread.join(60)
            counters = store.maintenance.stats().counters
    found = [counters[f"memory.extraction.{name}"] for name in ("count", "errors", "success")]
    assert found == [4, 4, 0]

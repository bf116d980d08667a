"""Every write answers with a warning where a text looks like a key, and shows none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog as library

Run = Callable[..., Any]

KEY = "sk-ant-api03-" + "a1B2" * 12
SECRETS = {
    "a key": f"my key is {KEY}",
    "named": "password: hunter2abc",
    "in JSON": '{"PASSWORD": "hunter2abc"}',
}
SAID = ("--chat", "x:1", "--role", "user", "--content")

WRITES: dict[str, Callable[[library.Store, str], Any]] = {
    "append": lambda store, text: store.append(
        [{"type": "message", "channel": "x", "chat_id": "1", "role": "user", "content": text}]
    )[0],
    "memory save": lambda store, text: store.memories.save(text),
    "memory save beside a name": lambda store, text: store.memories.save(
        "hunter2abc" if text.endswith("hunter2abc") else text, title="wifi password"
    ),
    "memory update": lambda store, text: store.memories.update(
        store.memories.save("tea").memory_id, content=text
    ),
    "fact set": lambda store, text: store.facts.set("tea", text),
    "core set": lambda store, text: store.core.set("user", "tea", text),
    "core import": lambda store, text: store.core.import_file(_file(store, "USER.md", f"tea: {text}\n")),
    "daily record": lambda store, text: store.daily.record(summary=text),
    "import": lambda store, text: store.exchange.import_from(
        "memory-folder", [_file(store, "MEMORY.md", f"# Tea\n\n{text}\n")]
    ),
    "a document": lambda store, text: store.documents.add(
        _file(store, "docs/tea.md", text).parent, source="d"
    ),
    "tool memory_save": lambda store, text: store.tools.memory_save(content=text),
    "tool memory_core_update": lambda store, text: store.tools.memory_core_update(
        section="user", key="tea", value=text
    ),
}


def _file(store: library.Store, name: str, text: str) -> Path:
    path = store.path.parent / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("secret", SECRETS)
def test_every_write_warns(tmp_path: Path, write: str, secret: str) -> None:
    with library.open(tmp_path / "store") as store:
        answer = WRITES[write](store, SECRETS[secret])
        (warning,) = answer.warnings
        told = warning.text if write == "a document" else warning.message
        kind = "anthropic-key" if secret == "a key" else "named-secret"
        assert f"looks like a key ({kind})" in told
        assert "the redact setting masks" in told
        assert "forget the event" in told
        assert not any(value in repr(answer.warnings) for value in (KEY, "hunter2abc"))
    with library.open(tmp_path / "masked", redact=True) as store:
        assert not WRITES[write](store, SECRETS[secret]).warnings


@pytest.mark.parametrize("secret", SECRETS)
def test_commands_say_it_as_a_note_and_succeed(memlog: Run, secret: str) -> None:
    text = SECRETS[secret]
    for command in (
        ("append", "message", *SAID, text),
        ("memory", "save", "--content", text),
        ("fact", "set", "tea", text),
        ("core", "set", "user", "tea", text),
        ("daily", "record", "--summary", text),
    ):
        done = memlog(*command)
        assert (done.code, done.err.count(b"contains what looks like a key")) == (0, 1), command
        assert done.err.startswith(b"memlog: ")
        assert not any(value in done.err for value in (KEY.encode(), b"hunter2abc"))


def test_a_pair_of_names_is_one_key_and_tea_is_none(memlog: Run) -> None:
    line = {"type": "core_memory_updated", "section": "user", "key": "wifi_password", "value": "hunter2abc"}
    (warning,) = memlog("append", input=json.dumps(line).encode()).json["warnings"]
    assert (warning["code"], warning["member"]) == ("key", "value")
    assert "warnings" not in memlog("append", "message", *SAID, "green tea").json


TOLD = (
    "my password is hunter2x9",
    "My wifi password's hunter2x9",
    "password for the wifi: hunter2x9",
    "password (router) → hunter2x9",
    "use hunter2x9 as the password",
    "passwords: hunter2x9, hunter2x8",
    "PASSWORD: hunter2x9",
    "DB_PASSWORD=hunter2x9",
    "PGPASS=hunter2x9",
    "| PASSWORD | hunter2x9 |",
    '{"DB_PASSWORD":"hunter2x9"}',
    '{"pass":"hunter2x9"}',
    "password: mysummer77q4",
    "password: changed1234",
    "<password>hunter2x9</password>",
    "password：hunter2x9",
    "Password is “hunter2x9”",
    "mysql --password hunter2x9",
    "passphrase: correct horse battery 9",
)
PLAIN = (
    "the token limit is 4096 for gpt-4o",
    "tests pass: all 12",
    "reset your password in 3 days",
    "password policy: rotate every 90 days",
    "I got in with the key of room 204b",
)
NAMED: tuple[tuple[str, ...], ...] = (
    ("core", "set", "user", "wifi_password", "hunter2x9"),
    ("fact", "set", "wifi_password", "swordfish"),
    ("fact", "set", "wifi_password_2", "swordfish"),
    ("fact", "set", "Passwords", "swordfish"),
    ("memory", "save", "--title", "Password", "--content", "swordfish"),
    ("memory", "save", "--title", "Wi-Fi password of the cabin", "--content", "swordfish"),
    ("memory", "save", "--topic", "wifi_password", "--content", "swordfish"),
    ("memory", "save", "--tag", "wifi_password", "--content", "swordfish"),
)


@pytest.mark.parametrize("text", TOLD)
def test_what_is_sent_to_nobody_is_warned_of(memlog_here: Run, text: str) -> None:
    (warning,) = memlog_here("append", "message", *SAID, text).json["warnings"]
    assert "the redact setting masks" in warning["message"]


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_text_is_warned_of_by_nothing(memlog_here: Run, text: str) -> None:
    assert "warnings" not in memlog_here("append", "message", *SAID, text).json


@pytest.mark.parametrize("command", NAMED, ids=" ".join)
def test_a_value_behind_its_name_is_warned_of(memlog: Run, command: tuple[str, ...]) -> None:
    assert memlog(*command).err.count(b"contains what looks like a key (named-secret)") == 1

"""Names and texts that mean harm: none leaves the store, none drives a terminal, and each is found again."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import memlog
from memlog.eventlog.errors import BadInput
from memlog.eventlog.text import normalise_to_nfc

NAMES = [
    *("../../etc/passwd", "..", ".", "/etc/passwd", "~root", "a/../../b", "con", "CURRENT", "seals.jsonl"),
    *(
        "\0",
        "a\0b",
        "a\nb",
        "\r\n",
        "\t",
        " ",
        "-rf",
        "--help",
        "%2e%2e%2f",
        "%00",
        "*",
        "?",
        "$(id)",
        "`id`",
    ),
    *(
        "x" * 300,
        "\u202egnp.exe",
        "\ufeffx",
        "раypal",
        "e\u0301",
        "é",
        "İ",
        "ﬁ",
        "\u2028",
        "\x1b[31m",
        "\x9b2J",
    ),
    *("\x1b]0;title\x07", "\x7f", "\u2066x\u2069", "x_y", "a~0123456789abcdef", "2026-02-24.jsonl"),
]
LONE = ["\ud800", "a\udfffb", "\udc80"]
HOSTILE = "tea \x1b[31mred\x1b]0;title\x07 \x9b31m \x7f \x08 \u202ereversed\u2066\u200f\ufeff\u2028 \r end"
ESCAPES = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)


CONTROLS = re.compile("[\x00-\x1f\x7f]")


def listing(folder: Path, without: Path) -> list[str]:
    """Every path below `folder` but those below `without`."""
    found = [Path(root) / name for root, folders, files in os.walk(folder) for name in (*folders, *files)]
    return sorted(str(path) for path in found if not path.is_relative_to(without))


def _is_taken(opened: memlog.Store, event: object) -> bool:
    try:
        opened.append([event])
    except BadInput:
        return False
    return True


def test_no_name_leaves_the_store_and_each_is_found_again(opened, store, tmp_path):
    """Chats, channels, memories, keys, topics and ids of events."""
    before = listing(tmp_path, store)
    for number, name in enumerate(NAMES):
        opened.append(
            [
                memlog.Message(channel="x", chat_id=name, role="user", content=f"in chat {number}"),
                memlog.Message(channel=name.replace(":", ""), chat_id="1", role="user", content=f"{number}"),
                memlog.MemorySaved(memory_id=name, content=f"memory {number}", id=f"y{number}"),
                memlog.FactStored(topic_key=name, value=f"fact {number}"),
            ]
        )
        opened.core.set("user", name, f"value {number}")
        taken = _is_taken(
            opened, memlog.Message(id=name, channel="x", chat_id="ids", role="user", content=name)
        )
        assert taken is (CONTROLS.search(name) is None), "an id stands on one line, and in a terminal"
    opened.maintenance.project(embed=False)
    assert listing(tmp_path, store) == before
    assert opened.maintenance.quarantine() == []
    assert opened.maintenance.verify().problems == []
    for number, name in enumerate(NAMES):
        assert [m.content for m in opened.conversations.window(("x", name)).messages] == [f"in chat {number}"]
        assert f"{number}" in [m.content for m in opened.conversations.window((name, "1")).messages]
        memory = opened.memories.get(name)
        assert memory is not None
        assert memory.content == f"memory {number}"
        same = [each for each, other in enumerate(NAMES) if normalise_to_nfc(other) == normalise_to_nfc(name)]
        assert opened.core.get("user", name) == f"value {same[-1]}"
        is_id = CONTROLS.search(name) is None
        assert (opened.get(name, stream="conversations/x_ids") is not None) is is_id


def test_folders_of_chats_are_of_few_characters_and_no_two_chats_share_one(opened, store):
    for name in NAMES:
        opened.append([memlog.Message(channel="x", chat_id=name, role="user", content="tea")])
    folders = [path.name for path in (store / "log" / "conversations").iterdir()]
    assert len(folders) == len(NAMES)
    assert all(re.fullmatch(r"x_[a-z0-9.%~-]{1,118}", folder) for folder in folders)
    assert {path.name for path in (store / "log").iterdir()} == {"FORMAT", "conversations"}


@pytest.mark.parametrize("name", LONE, ids=ascii)
def test_a_lone_surrogate_is_refused_and_nothing_is_written(opened, store, name):
    store.mkdir()
    (store / "memlog.toml").touch()
    attempts = [
        lambda: opened.append([memlog.Message(channel="x", chat_id=name, role="user", content="tea")]),
        lambda: opened.append([{"type": "memory_saved", "content": name}]),
        lambda: opened.memories.save("tea", memory_id=name),
        lambda: opened.core.set("user", name, "x"),
        lambda: opened.memories.get(name),
        lambda: opened.memories.delete(name),
        lambda: opened.conversations.window(("x", name)),
        lambda: opened.get(name),
        lambda: opened.search(name, mode="text", is_raw=True),
        lambda: opened.search(f"tea {name}", mode="text"),
        lambda: opened.documents.list(name),
        lambda: opened.documents.remove(f"{name}/file"),
        lambda: opened.conversations.sessions(("x", name)),
    ]
    for attempt in attempts:
        with pytest.raises(BadInput):
            attempt()
    assert not list(store.rglob("*.jsonl"))


def test_files_of_documents_may_have_any_name(opened, store, tmp_path):
    """Whatever is no text is left out by name; nothing is made beside the store."""
    notes = tmp_path / "notes"
    notes.mkdir()
    names = [
        name + ".md"
        for name in NAMES
        if "/" not in name and "\0" not in name and len(name.encode()) < 200 and name not in (".", "..")
    ]
    for number, name in enumerate(names):
        (notes / name).write_text(f"# Note\n\nnumber {number}\n")
    (notes / os.fsdecode(b"\xff\xfe.md")).write_text("x")
    (notes / "link.md").symlink_to("/etc/passwd")
    (notes / "up").symlink_to("/etc")
    before = listing(tmp_path, store)
    added = opened.documents.add(notes)
    assert listing(tmp_path, store) == before
    listed = {document.file for document in opened.documents.list("notes")}
    assert listed >= set(names)
    assert not any("passwd" in name and "link" in name for name in listed)
    assert opened.search("nologin", mode="text").hits == [], "nothing behind a link is read"
    assert added.source_id == "notes"


def test_no_redaction_or_source_of_a_hostile_name_leaves_the_store(opened, store, tmp_path):
    before = listing(tmp_path, store)
    refused = 0
    for name in NAMES:
        for stream in (name, f"conversations/{name}"):
            refused += not _is_taken(opened, memlog.Redacted(target_id="x", stream=stream))
        _is_taken(opened, memlog.SourceRegistered(source_id=name, root="/nowhere"))
        _is_taken(opened, memlog.DocumentIndexed(source_id="x", file=name, content="tea"))
    assert refused > len(NAMES)
    assert listing(tmp_path, store) == before
    allowed = {"FORMAT", "conversations", "documents"}
    assert {path.name for path in (store / "log").iterdir()} <= allowed
    assert all(path.is_relative_to(store / "log") for path in (store / "log").rglob("*"))


COMMANDS: list[tuple[str, ...]] = [
    ("query", "tea", "--mode", "text"),
    ("query", "tea", "--mode", "text", "--explain"),
    ("query", "tea", "--mode", "text", "--json"),
    ("window", "--chat", "x:\x1b[31m"),
    ("show", "m\u202e\x9b"),
    ("show", "m\u202e\x9b", "--json"),
    ("memory", "list"),
    ("memory", "show", "\x1b[2J\u202e"),
    ("core", "get"),
    ("sessions", "--all"),
    ("summaries",),
    ("docs", "status"),
    ("docs", "status", "\x9b\u202e"),
    ("quarantine",),
    ("log", "cat"),
    ("log", "cat", "--raw"),
    ("log", "tail", "--positions"),
    ("project", "--no-embed"),
    ("verify",),
    ("status",),
    ("show", "\x1b[31m nothing \u202e"),
    ("memory", "show", "\x9b nothing"),
    ("nothing\x1b[31m",),
    ("query", "--nothing\x1b[31m\u202e"),
]


# One process for all: each is the whole command line, from its arguments to its exit code.
EACH_COMMAND = """
import json, sys
from memlog.cli.process.main import main
for arguments in json.loads(sys.argv[1]):
    print("\\n%%%", flush=True)
    sys.argv = ["memlog", *arguments]
    try:
        main()
    except SystemExit:
        sys.stdout.flush()
"""


@pytest.fixture(scope="module")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of every text that a command prints, one that would drive a terminal."""
    store = tmp_path_factory.mktemp("hostile") / "store"
    esc = "\x1b[31m"
    with memlog.open(store, durability="os") as opened:
        opened.append(
            [
                memlog.Message(
                    id="m\u202e\x9b",
                    channel="x",
                    chat_id=esc,
                    role="user",
                    name=HOSTILE,
                    content=HOSTILE,
                    meta={"model": HOSTILE, esc: HOSTILE},
                ),
                memlog.SummaryWritten(channel="x", chat_id=esc, content=HOSTILE, from_message_id=HOSTILE),
                memlog.SessionBreak(channel="x", chat_id=esc, model=HOSTILE),
                memlog.Message(channel="x", chat_id=esc, role="user", content=HOSTILE),
                memlog.MemorySaved(
                    memory_id="\x1b[2J\u202e",
                    content=HOSTILE,
                    title=HOSTILE,
                    category=HOSTILE,
                    topic=HOSTILE,
                    source=HOSTILE,
                    tags=[HOSTILE],
                ),
                memlog.CoreMemoryUpdated(section="user", key=esc, value=HOSTILE),
                memlog.SourceRegistered(source_id="\x9b\u202e", root=f"/nowhere/{esc}"),
                memlog.DocumentIndexed(
                    source_id="\x9b\u202e", file=HOSTILE.replace("/", ""), content=HOSTILE, filetype=esc
                ),
            ]
        )
    bad = store / "log" / "conversations" / f"x_{esc}\u202e"
    bad.mkdir()
    lines = [
        json_line.encode()
        for json_line in ('{"type":"\x9b31m\u202e"}', '{"role":"\u202e"', f'["{HOSTILE[5:8]}\x7f\x9b\u202e"]')
    ]
    (bad / "2026-02-24.jsonl").write_bytes(b"\n".join([*lines, b"\x1b[31m\x9b\xff raw", b""]))
    (store / "log" / "core" / f"{esc}\u202e.txt").write_text("a stranger")
    return store


def on_a_terminal(command: list[str], environment: dict[str, str]) -> str:
    """All that a command writes on a terminal, both streams, without the terminal's own end of line."""
    ours, its = pty.openpty()
    with subprocess.Popen(command, env=environment, stdin=its, stdout=its, stderr=its) as process:
        os.close(its)
        said = b"".join(_all_of(ours))
        process.wait(60)
    os.close(ours)
    assert process.returncode in (0, 1, 2), said
    return said.decode().replace("\r\n", "\n")


def _all_of(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # how Linux says that nobody writes to it any more
            return
        if not data:
            return
        yield data


def test_no_text_of_a_log_drives_a_terminal(hostile_store, environment):
    """With colours off, so that every escape that is seen is the text's."""
    run = [sys.executable, "-c", EACH_COMMAND, json.dumps(COMMANDS)]
    said = on_a_terminal(run, environment | {"MEMLOG_STORE": str(hostile_store), "NO_COLOR": "1"})
    parts = said.split("\n%%%\n")[1:]
    assert len(parts) == len(COMMANDS)
    for arguments, part in zip(COMMANDS, parts, strict=True):
        assert part, arguments
        assert ESCAPES.findall(part) == [], arguments
        is_progress = arguments[0] in ("project", "verify")
        assert "\r" not in part or is_progress, arguments

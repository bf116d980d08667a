"""memlog import codex: what a home of rollouts becomes, and what it survives."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

import memlog
from tests.support.places import ROOT

SAMPLE = ROOT / "fixtures/importers/codex"
MAIN, FORK, PACKED, AGENT, EVENTS = (f"019a0000-{n * 4}-7000-8000-00000000000{n}" for n in "12345")
OLD = "0f000000-0000-4000-8000-00000000000f"
TORN = 1
"""One line of the sample is torn, as two writers tear it."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "codex"))


def imported(store: memlog.Store, *paths: Path) -> memlog.ImportReport:
    report: memlog.ImportReport = store.exchange.import_from("codex", paths)
    assert report.found == report.used + sum(report.skipped.values()) + report.unreadable
    assert (
        report.events == report.appended + report.known + report.updated + report.forgotten + report.refused
    )
    return report


def rollout(home: Path, thread: str) -> Path:
    return next(home.rglob(f"rollout-*{thread}.jsonl*"))


def messages(store: memlog.Store, thread: str) -> list[Any]:
    return store.conversations.window(f"codex:{thread}", last=99).messages


def chats(store: memlog.Store) -> dict[str, int]:
    return {each.chat.partition(":")[2]: each.messages for each in store.conversations.sessions()}


def test_the_sample_gives_what_was_counted_by_hand_and_a_second_run_nothing(
    tmp_path: Path, home: Path
) -> None:
    # The subagent, with all other types of lines, and the file without prompts were added to the sample.
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, home)
        assert (report.appended, report.updated, report.described) == (33, 2, 5)
        assert (report.unreadable, report.unknown_columns) == (TORN, {})
        assert report.skipped == {
            "harness": 3 + 8,
            "inherited": 14 + 2,
            "mirror": 7 + 2 + 1,
            "structure": 9 + 3 + 2 + 2 + 7 + 1,
            "thinking": 1,
        }
        assert chats(store) == {MAIN: 8 - 2, FORK: 2, PACKED: 2, OLD: 2, AGENT: 16, EVENTS: 2}
        (summary,) = store.conversations.summaries()
        assert summary.content == "The pot holds six cups; seven was taken back."
        assert {each.ts for each in messages(store, OLD)} == {"2025-06-01T08:00:00.000Z"}
        again = imported(store, home)
        assert (again.appended, again.updated, again.described, again.changed) == (0, 0, 0, 0)


def test_each_kind_of_item_becomes_a_message(tmp_path: Path, home: Path) -> None:
    with memlog.open(tmp_path / "store") as store:
        imported(store, home)
        found = messages(store, AGENT)
        assert [each.content for each in found if (each.meta or {}).get("author") == "agent"] == [
            *("Measure the lid.", "Is the knob included?", "The knob is not included.")
        ]
        assert [each.meta["tool"]["error"] for each in found if each.role == "tool"] == [False, True] + [
            False
        ] * 2
        said = [(each.role, each.name, each.content) for each in found]
    patch = "*** Begin Patch\n*** Add File: lid.toml\n+cm = 9\n*** End Patch"
    shell = "<command>\nls\n</command>\n<result>\nlid.toml\n</result>"
    assert [each if each[0] != "assistant" else each[2].partition("\n```")[0] for each in said] == [
        ("user", None, "Measure the lid."),
        f"apply_patch: {patch}",
        ("tool", "apply_patch", "Success. Updated lid.toml"),
        "local_shell: cat lid.tml",
        ("tool", "local_shell", "cat: lid.tml: No such file"),
        "web_search: teapot lid sizes",
        "tool_search: ruler",
        ("tool", "tool_search", "measure"),
        "measure: lid",
        ("tool", "measure", "9 cm\n[image]"),
        ("user", None, "Is the knob included?"),
        ("user", None, "The knob is not included."),
        ("user", None, f"<user_shell_command>\n{shell}\n</user_shell_command>"),
        ("user", None, "Like this one?"),
        ("user", None, "[image]"),
        "The lid has 9 cm.",
    ]


@pytest.mark.parametrize(("turns", "left"), [(0, 6), (1, 4), (2, 0), (9, 0)])
def test_what_is_rolled_back_is_taken_back(tmp_path: Path, home: Path, turns: int, left: int) -> None:
    payload = {"type": "thread_rolled_back", "num_turns": turns}
    line = {"timestamp": "2026-05-04T18:09:00Z", "type": "event_msg", "payload": payload}
    with memlog.open(tmp_path / "store") as store:
        imported(store, home)
        with rollout(home, MAIN).open("a") as file:
            file.write(json.dumps(line) + "\n")
        assert imported(store, home).updated == 6 - left
        assert len(messages(store, MAIN)) == left


def in_two_homes(home: Path) -> list[Path]:
    other = Path(shutil.copytree(home, home.with_name("other"), copy_function=os.link))
    return [home, other]


def in_two_homes_as_copies(home: Path) -> list[Path]:
    return [home, Path(shutil.copytree(home, home.with_name("other")))]


def in_a_folder_of_homes(home: Path) -> list[Path]:
    shutil.copytree(home, home / "accounts/one/sessions", copy_function=os.link)
    shutil.copytree(home, home.parent / "homes/two")
    shutil.move(home, home.parent / "homes/one")
    return [home.parent / "homes"]


def a_fork_in_another_home(home: Path) -> list[Path]:
    fork = rollout(home, FORK)
    other = home.with_name("other")
    (other / "sessions").mkdir(parents=True)
    shutil.move(fork, other / "sessions" / fork.name)
    return [home, other]


def compressed_and_plain(home: Path) -> list[Path]:
    plain = rollout(home, MAIN)
    cut = zstandard.compress(plain.read_bytes()[:3000])
    plain.with_name(f"{plain.name}.zst").write_bytes(cut)
    return [home]


def compressed(home: Path) -> list[Path]:
    for plain in [*home.rglob("rollout-*.jsonl")]:
        data = plain.read_bytes()
        # Two frames: what was appended to a compressed file.
        plain.with_name(f"{plain.name}.zst").write_bytes(
            zstandard.compress(data[:700]) + zstandard.compress(data[700:])
        )
        plain.unlink()
    return [home]


@pytest.mark.parametrize(
    "arrange",
    [
        in_two_homes,
        in_two_homes_as_copies,
        in_a_folder_of_homes,
        a_fork_in_another_home,
        compressed_and_plain,
        compressed,
    ],
)
def test_a_rollout_counts_once_wherever_it_stands(
    tmp_path: Path, home: Path, arrange: Callable[[Path], list[Path]]
) -> None:
    digests = []
    for name, find in {"once": lambda home: [home], "arranged": arrange}.items():
        with memlog.open(tmp_path / name) as store:
            report = imported(store, *find(home))
            assert (report.appended, report.refused) == (33, 0)
            digests.append(store.maintenance.digest(content=True))
    assert digests[0] == digests[1]


@pytest.mark.parametrize("parts", [1, 4])
def test_a_home_that_has_grown_is_imported_as_if_it_had_been_whole(
    tmp_path: Path, home: Path, parts: int
) -> None:
    files = {path: path.read_bytes().splitlines(keepends=True) for path in home.rglob("rollout-*.jsonl")}
    digests = []
    for name, steps in {"whole": [99], "grown": [*range(1, 31, parts), 99]}.items():
        with memlog.open(tmp_path / name) as store:
            for step in steps:
                for path, lines in files.items():
                    path.write_bytes(b"".join(lines[:step]))
                imported(store, home)
            digests.append(store.maintenance.digest(content=True))
    assert digests[0] == digests[1]


def test_a_thread_that_went_on_from_a_turn_in_a_new_file_stays_one_chat(tmp_path: Path, home: Path) -> None:
    file = rollout(home, AGENT)
    lines = file.read_text().splitlines(keepends=True)
    header = json.loads(lines[0])
    header["payload"] |= {"history_base": {"thread_id": AGENT, "end_ordinal_exclusive": 30}}
    del header["payload"]["subagent_history_start_ordinal"]
    name = file.name.replace(AGENT, f"{AGENT}_{AGENT[:-1]}9")
    file.with_name(name).write_text(
        json.dumps(header | {"ordinal": 30}) + "\n" + lines[-1].replace("9 cm", "8 cm")
    )
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, home)
        assert [each.where for each in report.problems] == [
            f"{rollout(home, MAIN).relative_to(home)}: line 21"
        ]
        assert chats(store)[AGENT] == 16 + 1


def test_a_fork_without_its_parent_has_the_whole_conversation(tmp_path: Path, home: Path) -> None:
    rollout(home, MAIN).unlink()
    with memlog.open(tmp_path / "store") as store:
        appended = imported(store, home).appended
        assert chats(store)[FORK] == 2 + 4
        assert imported(store, home).known == appended


def test_what_was_forgotten_does_not_come_back_from_a_fork(tmp_path: Path, home: Path) -> None:
    with memlog.open(tmp_path / "store") as store:
        rollout(home, FORK).rename(tmp_path / "fork")
        imported(store, home)
        store.erasure.forget(messages(store, MAIN)[0].id)
        file = rollout(home, MAIN)
        (tmp_path / "fork").rename(file.with_name(file.name.replace(MAIN, FORK)))
        file.unlink()
        assert imported(store, home).appended == 2
        assert [each.content for each in messages(store, FORK)] == ["In litres?", "About 1.2 litres."]


@pytest.mark.parametrize("member", ["forked_from_id", "history_base", "source", "id", "cwd"])
@pytest.mark.parametrize("value", [None, 7, "x", [7], {"x": 7}, {"subagent": {"thread_spawn": 7}}])
def test_a_header_of_another_shape_costs_no_message(
    tmp_path: Path, home: Path, member: str, value: Any
) -> None:
    file = rollout(home, EVENTS)
    lines = file.read_text().splitlines()
    header = json.loads(lines[0])
    header["payload"][member] = value
    file.write_text("\n".join([json.dumps(header), *lines[1:], ""]))
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, home).appended == 33


def test_a_fork_of_a_parent_without_turns_begins_where_its_items_differ(tmp_path: Path, home: Path) -> None:
    for thread in (MAIN, FORK):
        file = rollout(home, thread)
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(line for line in lines if b"turn_id" not in line))
    with memlog.open(tmp_path / "store") as store:
        imported(store, home)
        assert [each.content for each in messages(store, FORK)] == ["In litres?", "About 1.2 litres."]


def prompt(text: str) -> bytes:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    line = {"timestamp": "2026-05-04T18:09:00Z", "type": "response_item", "payload": item}
    return json.dumps(line).encode() + b"\n"


HOSTILE: dict[str, tuple[bytes, tuple[int, int, int], dict[str, int]]] = {
    "a last line that is being written": (prompt("x")[:-9], (0, 0, 1), {}),
    "a line that is torn in the middle": (prompt("x")[:30] + prompt("x"), (0, 1, 0), {}),
    "a line that is no object": (b"[1]\n", (0, 1, 0), {}),
    "content of another shape": (prompt("x").replace(b'"input_text"', b"7"), (1, 0, 0), {}),
    "parts of another shape": (
        prompt("x").replace(b'{"type": "input_text", "text": "x"}', b"7"),
        (0, 1, 0),
        {},
    ),
    "content that is a text": (
        prompt("x").replace(b'[{"type": "input_text", "text": "x"}]', b'"x"'),
        (1, 0, 0),
        {},
    ),
    "a result like one of a command": (
        b'{"type":"response_item","payload":{"type":"function_call_output","output":"{\\"metadata\\":[]}"}}\n',
        (1, 0, 0),
        {},
    ),
    "a byte order mark": (b"\xef\xbb\xbf" + prompt("x"), (1, 0, 0), {}),
    "lone surrogates and NUL": (prompt("\ud800x\0"), (1, 0, 0), {}),
    "the same again": (prompt("ok") * 3, (3, 0, 0), {}),
    "an ordinal and an id that two writers gave": (
        b"".join(
            prompt(text)
            .replace(b'{"timestamp"', b'{"ordinal":7,"timestamp"')
            .replace(b'"role"', b'"id":"m","role"')
            for text in "abc"
        ),
        (3, 0, 0),
        {},
    ),
    "a prompt that begins like the program's": (prompt("<skill>a</skill> is what?"), (1, 0, 0), {}),
    "a line of next year": (b'{"type":"dream","payload":{}}\n', (0, 0, 0), {"type dream": 1}),
    "an item of next year": (
        b'{"type":"response_item","payload":{"type":"smell"}}\n',
        (0, 0, 0),
        {"response_item smell": 1},
    ),
    "an event of next year": (
        b'{"type":"event_msg","payload":{"type":"nod"}}\n',
        (0, 0, 0),
        {"event_msg nod": 1},
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_bad_line_costs_no_other_and_an_unknown_type_is_named(
    tmp_path: Path, home: Path, case: str
) -> None:
    added, (used, unreadable, tail), unknown = HOSTILE[case]
    with rollout(home, MAIN).open("ab") as file:
        file.write(added)
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, home)
    assert (report.appended, report.unreadable) == (33 + used, TORN + unreadable)
    assert report.skipped.get("tail", 0) == tail
    assert report.unknown_columns == unknown


def cut(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return zstandard.compress(b"".join(lines[:3])) + zstandard.compress(b"".join(lines[3:]))[:-9]


def bomb(data: bytes) -> bytes:
    return zstandard.compress(data + b" " * 2**27)


def damaged(data: bytes) -> bytes:
    return zstandard.compress(data) + b"no frame"


@pytest.mark.parametrize(
    ("pack", "why", "lost"),
    [
        (cut, "its end is missing", 1),
        (bomb, "decompressed, it is too large", 0),
        (damaged, "zstd decompressor error: Unknown frame descriptor", 0),
    ],
)
def test_of_a_compressed_rollout_what_can_be_read_is_used(
    tmp_path: Path, home: Path, pack: Callable[[bytes], bytes], why: str, lost: int
) -> None:
    file = rollout(home, PACKED)
    file.write_bytes(pack(zstandard.ZstdDecompressor().stream_reader(file.read_bytes()).readall()))
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, file)
    assert report.appended == 2 - lost
    assert why in [each.why for each in report.problems]


def test_without_zstandard_a_compressed_rollout_is_named_with_what_to_install(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, home)
    assert (report.appended, report.unreadable) == (31, TORN + 1)
    assert any("pip install '.[import]'" in each.why for each in report.problems)


def test_keys_are_masked(tmp_path: Path, home: Path) -> None:
    key = "sk-ant-" + "api03-" + "A" * 24
    with rollout(home, MAIN).open("ab") as file:
        file.write(prompt(f"Use {key}"))
    with memlog.open(tmp_path / "store") as store:
        imported(store, home)
        assert messages(store, MAIN)[-1].content == "Use [REDACTED:anthropic-key]"
    assert not any(key in path.read_text() for path in (tmp_path / "store/log").rglob("*.jsonl"))


def test_threads_that_name_each_other_as_parents_lose_no_message(tmp_path: Path) -> None:
    home = tmp_path / "codex"
    home.mkdir()
    for thread, parent in ((MAIN, FORK), (FORK, MAIN), (OLD, OLD)):
        meta = {"id": thread, "forked_from_id": parent}
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": thread}]}
        lines = [("session_meta", meta), ("response_item", said)]
        (home / f"rollout-2026-05-04T20-00-00-{thread}.jsonl").write_text(
            "".join(
                json.dumps({"timestamp": "2026-05-04T20:00:00Z", "type": kind, "payload": payload}) + "\n"
                for kind, payload in lines
            )
        )
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, home).appended == 3
        assert chats(store) == {MAIN: 1, FORK: 1, OLD: 1}

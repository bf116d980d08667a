"""memlog import claude-code: what a folder of sessions becomes, and what it survives."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog
from tests.support.agent_samples import sample
from tests.support.places import ROOT

SAMPLE = ROOT / "fixtures/importers/claude-code"
SESSION = "5e55104e-0000-4000-8000-000000000001"
FORK = "5e55104e-0000-4000-8000-000000000002"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    copied = Path(shutil.copytree(SAMPLE, tmp_path / "claude"))
    file = next(copied.glob(f"projects/*/{SESSION}.jsonl"))
    file.write_text(file.read_text().replace("KEY-OF-THE-TEST", "sk-ant-" + "api03-" + "A" * 24))
    return copied


def imported(store: memlog.Store, home: Path) -> memlog.ImportReport:
    report: memlog.ImportReport = store.exchange.import_from("claude-code", [home])
    assert report.found == report.used + sum(report.skipped.values()) + report.unreadable
    assert (
        report.events == report.appended + report.known + report.updated + report.forgotten + report.refused
    )
    return report


def chats(store: memlog.Store) -> dict[str, int]:
    return {each.chat.partition(":")[2]: each.messages for each in store.conversations.sessions()}


def test_the_sample_gives_what_was_counted_by_hand_and_a_second_run_nothing(
    tmp_path: Path, home: Path
) -> None:
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, home)
        assert (report.used, report.appended, report.unreadable) == (20, 20, 0)
        assert report.skipped == {
            "bookkeeping": 4,
            "duplicate_in_source": 5,
            "harness": 2,
            "mirror": 3,
            "tail": 1,
            "thinking": 1,
            "title": 3,
        }
        assert chats(store) == {SESSION: 11, f"{SESSION}.a1b2c3": 4, FORK: 4}
        (summary,) = store.conversations.summaries()
        assert summary.from_message_id == "claude-code/a0000000-0000-4000-8000-000000000001/1"
        said = store.conversations.window(f"claude-code:{SESSION}", last=99).messages
        assert [each.content for each in said if each.name == "Explore"] == [
            "Two callers: kettle.py and tray.py."
        ]
        assert "[REDACTED:anthropic-key]" in said[-2].content
        (_, _, output, _) = store.conversations.window(f"claude-code:{SESSION}.a1b2c3", last=9).messages
        assert output.content == "kettle.py:3\ntray.py:9\n(two hits)"
        assert imported(store, home).appended == 0


def test_every_other_type_of_line_is_known(tmp_path: Path) -> None:
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, ROOT / "fixtures/importers/claude-code-types")
        assert (report.used, report.unreadable, report.unknown_columns) == (3, 0, {})
        assert report.skipped == {"bookkeeping": 7, "thinking": 1, "title": 2}
        (session,) = store.conversations.sessions()
        assert (session.title, session.messages) == ("Lids", 3)


def test_links_that_lead_out_are_named(tmp_path: Path, home: Path) -> None:
    (home / "projects").rename(tmp_path / "elsewhere")
    (home / "projects").mkdir()
    (home / "projects/linked").symlink_to(next((tmp_path / "elsewhere").iterdir()))
    (home / "projects/own").mkdir()
    (home / "projects/own/s.jsonl").symlink_to(next((tmp_path / "elsewhere").rglob("*.jsonl")))
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, home).unknown_columns == {
            "link projects/linked": 1,
            "link projects/own/s.jsonl": 1,
        }


def test_chats_have_title_folder_branch_and_parent(tmp_path: Path, home: Path) -> None:
    file = next(home.glob(f"projects/*/{SESSION}.jsonl"))
    with file.open("ab") as written:
        written.write(b"\n")  # ends the torn last line
    own = {"type": "custom-title", "customTitle": "The teapot"}
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, home).described == 5
        shown = {each.chat.partition(":")[2]: each for each in store.conversations.sessions()}
        assert shown[SESSION].title == "Fix the spilling teapot"
        assert (shown[SESSION].folder, shown[SESSION].labels) == ("/home/mia/src/teapot", ["branch main"])
        assert shown[f"{SESSION}.a1b2c3"].parent_chat == f"claude-code:{SESSION}"
        assert shown[FORK].parent_chat == f"claude-code:{SESSION}"
        with file.open("a") as written:
            written.writelines(
                json.dumps(each) + "\n" for each in (own, own | {"type": "ai-title", "aiTitle": "X"})
            )
        assert imported(store, home).described == 1
        assert "The teapot" in {each.title for each in store.conversations.sessions()}


def test_of_an_answer_that_was_written_while_it_grew_the_longest_version_is_shown(
    tmp_path: Path, home: Path
) -> None:
    file = next(home.glob(f"projects/*/{SESSION}.jsonl"))
    line = {"type": "assistant", "sessionId": SESSION, "timestamp": "2026-09-01T09:00:00Z"}
    texts = ["The sp", "The spout was", "The spout was", "The spout was bent."]
    lines = [
        line | {"uuid": f"g{number}", "message": {"id": "msg_g", "content": [{"type": "text", "text": text}]}}
        for number, text in enumerate(texts)
    ]
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, home).updated == 3
        window = store.conversations.window(f"claude-code:{SESSION}")
        assert [each.content for each in window.messages] == texts[-1:]


def test_a_history_keeps_what_was_pasted_and_prompts_of_one_millisecond(tmp_path: Path) -> None:
    (tmp_path / "home/projects").mkdir(parents=True)
    line = {"timestamp": 1788246000000, "sessionId": "gone", "pastedContents": {"1": {"content": "a log"}}}
    lines = [line | {"display": text} for text in ("one", "two")]
    (tmp_path / "home/history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, tmp_path / "home").appended == 2
        messages = store.conversations.window("claude-code:gone").messages
        assert [each.content for each in messages] == ["one\na log", "two\na log"]


def test_when_the_sources_are_deleted_everything_is_found_after_a_replay(tmp_path: Path, home: Path) -> None:
    with memlog.open(tmp_path / "store") as store:
        imported(store, home)
        shutil.rmtree(home)
        store.maintenance.project(from_scratch=True)
        assert store.search("why does pour spill", mode="text").hits[0].chat == f"claude-code:{SESSION}"


def test_the_prompts_of_a_session_that_is_gone_are_taken_from_the_history(tmp_path: Path, home: Path) -> None:
    shutil.rmtree(home / "projects")
    (home / "projects").mkdir()
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, home).appended == 1
        assert chats(store) == {SESSION: 1}
        again = imported(store, home)
        assert (again.known, again.skipped.get("mirror", 0)) == (1, 0)


@pytest.mark.parametrize("parts", [1, 5, 12])
def test_a_session_that_has_grown_is_imported_as_if_it_had_been_whole(
    tmp_path: Path, home: Path, parts: int
) -> None:
    next(home.glob(f"projects/*/{FORK}.jsonl")).unlink()  # it began after these lines
    file = next(home.glob(f"projects/*/{SESSION}.jsonl"))
    lines = file.read_bytes().splitlines(keepends=True)
    digests = []
    for name, steps in {"whole": [len(lines)], "grown": [*range(0, len(lines), parts), len(lines)]}.items():
        with memlog.open(tmp_path / name) as store:
            for step in steps:
                file.write_bytes(b"".join(lines[:step]))
                imported(store, home)
            digests.append(store.maintenance.digest(content=True))
    assert digests[0] == digests[1]


def test_a_line_whose_text_has_changed_is_an_edit_that_forgetting_and_people_survive(
    tmp_path: Path, home: Path
) -> None:
    file = next(home.glob(f"projects/*/{SESSION}.jsonl"))
    first, name = file.read_text(), "claude-code/a0000000-0000-4000-8000-000000000001/1"

    def import_with(word: str, store: memlog.Store) -> int:
        file.write_text(first.replace("spill", word))
        report = imported(store, home)
        assert imported(store, home).updated == 0
        return report.updated

    def shown(store: memlog.Store) -> str:
        return store.conversations.window(f"claude-code:{SESSION}", last=99).messages[0].content

    with memlog.open(tmp_path / "store") as store:
        assert import_with("spill", store) == 0
        edited = import_with("drip", store)
        assert edited > 0
        assert "drip" in shown(store)
        assert import_with("spill", store) == 0  # an older copy
        assert "drip" in shown(store)
        store.append(
            [
                memlog.MessageUpdated(
                    channel="claude-code", chat_id=SESSION, message_id=name, content="By a person"
                )
            ]
        )
        assert import_with("drip", store) == 0
        assert shown(store) == "By a person"
        store.erasure.forget(name)
        assert import_with("leak", store) == edited - 1


def test_a_fork_that_goes_on_before_its_original_takes_nothing_of_it(tmp_path: Path) -> None:
    def line(uuid: str, minute: int, **more: object) -> str:
        at, told = f"2026-09-01T08:{minute:02d}:00Z", {"role": "user", "content": uuid}
        return json.dumps({"type": "user", "uuid": uuid, "timestamp": at, "message": told} | more) + "\n"

    home = tmp_path / "home"
    home.mkdir()
    common = line("u1", 1) + line("u2", 2)
    later = {"o": common + line("u9", 9), "f": common + line("v3", 3, forkedFrom={"sessionId": "o"})}
    digests = []
    for name, steps in {"whole": [later], "grown": [{"o": common}, later]}.items():
        with memlog.open(tmp_path / name) as store:
            for files in steps:
                for session, text in files.items():
                    (home / f"{session}.jsonl").write_text(text)
                imported(store, home)
            assert chats(store) == {"o": 3, "f": 1}
            digests.append(store.maintenance.digest(content=True))
        shutil.rmtree(home)
        home.mkdir()
    assert digests[0] == digests[1]


def test_a_key_in_a_folder_or_a_name_is_masked(tmp_path: Path, home: Path) -> None:
    key = "sk-ant-" + "api03-" + "A" * 24
    file = next(home.glob(f"projects/*/{SESSION}.jsonl"))
    text = file.read_text().replace("/home/mia/src/teapot", f"/home/{key}").replace('"main"', f'"{key}"')
    file.write_text(text.replace("Fix the spilling", key))
    file.rename(file.with_name(f"{key}.jsonl"))
    with memlog.open(tmp_path / "store") as store:
        assert imported(store, home).described == 5
        (titled,) = [each for each in store.conversations.sessions() if each.title]
        assert titled.messages == 11
    stored = (path for path in (tmp_path / "store/log").rglob("*"))
    assert not any(key in str(path) or key.encode() in path.read_bytes() for path in stored if path.is_file())


def change(at: int, line: dict[str, Any] | bytes) -> Callable[[list[bytes]], None]:
    data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
    return lambda lines: lines.insert(at, data)


HOSTILE: dict[str, tuple[Callable[[list[bytes]], None], tuple[int, int]]] = {
    "a byte order mark": (lambda lines: lines.__setitem__(0, b"\xef\xbb\xbf" + lines[0]), (20, 0)),
    "a line that is no JSON": (change(3, b"{nonsense\n"), (20, 1)),
    "a line that is no object": (change(3, b"[1]\n"), (20, 1)),
    "ids that are no text": (
        lambda lines: lines.extend(
            json.dumps({"type": "user", "uuid": each, "message": {"content": "x"}}).encode() + b"\n"
            for each in ([], {}, None, 5)
        ),
        (20, 4),
    ),
    "a type of next year": (change(3, {"type": "dream", "uuid": "d"}), (20, 0)),
    "a block of next year": (
        change(3, {"type": "user", "uuid": "d", "message": {"content": [{"type": "smell"}]}}),
        (20, 0),
    ),
    "content of another shape": (
        change(3, {"type": "user", "uuid": "d", "message": {"content": 7}}),
        (20, 1),
    ),
    "lone surrogates and NUL": (
        change(
            3,
            b'{"type":"user","uuid":"b\\ud800","sessionId":"\\udfff","timestamp":"2026-09-01T08:00:00Z",'
            b'"message":{"content":"\\ud800x\\u0000"}}\n',
        ),
        (21, 0),
    ),
    "what looks like a command in an answer": (
        change(
            3,
            {
                "type": "assistant",
                "uuid": "d",
                "timestamp": "2026-09-01T08:00:00Z",
                "message": {"content": "A <command-name>/x</command-name> " + "<ide_selection>" * 9000},
            },
        ),
        (21, 0),
    ),
    "a time of 2262": (
        change(
            3, {"type": "user", "uuid": "d", "timestamp": "2262-01-01T00:00:00Z", "message": {"content": "x"}}
        ),
        (21, 0),
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_bad_line_costs_no_other(tmp_path: Path, home: Path, case: str) -> None:
    spoil, expected = HOSTILE[case]
    file = next(home.glob(f"projects/*/{SESSION}.jsonl"))
    lines = file.read_bytes().splitlines(keepends=True)
    spoil(lines)
    file.write_bytes(b"".join(lines))
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, home)
        assert (report.appended, report.unreadable) == expected
        assert (report.unknown_columns != {}) == ("next year" in case)


def test_what_was_forgotten_does_not_come_back_from_the_history_and_half_a_key_is_masked(
    tmp_path: Path, home: Path
) -> None:
    key = "sk-ant-" + "api03-" + "A" * 24
    file = next(home.glob(f"projects/*/{SESSION}.jsonl"))
    given = {"type": "tool_result", "tool_use_id": "x", "content": f"{'a ' * 6135}{key} {'b ' * 4500}"}
    line = {"type": "user", "uuid": "d", "timestamp": "2026-09-01T08:00:00Z", "message": {"content": [given]}}
    lines = file.read_bytes().splitlines(keepends=True)
    change(3, line)(lines)
    file.write_bytes(b"".join(lines))
    with memlog.open(tmp_path / "store") as store:
        imported(store, home)
        store.erasure.forget("claude-code/a0000000-0000-4000-8000-000000000001/1")
        file.unlink()
        assert imported(store, home).appended == 0
        found = store.search("picture", mode="text").hits
        assert not any("See the picture" in each.content for each in found)
    assert (
        key[:18]
        not in b"".join(path.read_bytes() for path in (tmp_path / "store/log").rglob("*.jsonl")).decode()
    )


def test_a_file_of_which_nothing_is_understood_is_an_error(tmp_path: Path, home: Path) -> None:
    shutil.rmtree(home / "projects")
    (home / "projects").mkdir()
    (home / "projects/new.jsonl").write_text('{"type":"dream"}\n' * 3)
    with memlog.open(tmp_path / "store") as store:
        report = imported(store, home)
    assert [each.why for each in report.problems] == ["no line is of a known type"]


@pytest.mark.parametrize("format", ["claude-code", "codex", "pi", "gemini-cli", "opencode"])
def test_what_two_machines_imported_is_one_copy_once_merged(tmp_path: Path, format: str) -> None:
    for name in ("one", "other"):
        home = sample(format, tmp_path / name / "home")
        with memlog.open(tmp_path / name / "store") as store:
            store.exchange.import_from(format, [home])
    shutil.copytree(tmp_path / "other/store/log", tmp_path / "one/store/log", dirs_exist_ok=True)
    with memlog.open(tmp_path / "one/store") as merged, memlog.open(tmp_path / "other/store") as single:
        assert merged.conversations.sessions() == single.conversations.sessions()
        assert merged.maintenance.stats().events_by_type == single.maintenance.stats().events_by_type
        assert merged.maintenance.verify().conflicts == 0
        assert merged.exchange.import_from(format, [tmp_path / "one/home"]).appended == 0

"""Names: the folder of a conversation, what a folder made by hand names, and the names of segments."""

import errno
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memlog.eventlog.events import (
    CoreMemoryDeleted,
    CoreMemoryUpdated,
    MemorySaved,
    Message,
    Redacted,
    SessionBreak,
)
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.streams import (
    SegmentName,
    chat_of_stream,
    conversation_stream,
    encode_name,
    list_segments,
    may_be_in_stream,
    select_current_segments,
    stream_of,
)
from memlog.eventlog.log.tail import is_conflict_copy

FOLDER_LIMIT = 120

OWN = partial(SegmentName, writer="k7f3qz")


def message(channel: str, chat_id: str) -> Message:
    return Message(channel=channel, chat_id=chat_id, role="user", content="x")


def test_a_conversations_folder() -> None:
    for channel, chat_id, folder in [
        ("telegram", "123456", "telegram_123456"),
        ("telegram", "-100.5", "telegram_-100.5"),
        ("telegram", "../../etc", "telegram_..%2f..%2fetc"),
        ("..", "..", ".._.."),
        ("/", "/etc/passwd", "%2f_%2fetc%2fpasswd"),
        ("Telegram", "ABC", "%54elegram_%41%42%43"),
        ("a_b", "c_d", "a%5fb_c%5fd"),
        ("caf\u00e9", "\u8336", "caf%c3%a9_%e8%8c%b6"),
        ("cafe\u0301", "1", "cafe%cc%81_1"),
        ("x", "a:b", "x_a%3ab"),
        ("x", "a b\nc\td", "x_a%20b%0ac%09d"),
        ("x", "a\x00b", "x_a%00b"),
        ("x", "100%", "x_100%25"),
        ("x", "~", "x_%7e"),
        ("x", "\u202eabc", "x_%e2%80%aeabc"),
    ]:
        assert conversation_stream(channel, chat_id) == f"conversations/{folder}", channel
        assert chat_of_stream(f"conversations/{folder}") == (channel, chat_id), channel


def folder_of(channel: str, chat_id: str) -> str:
    return conversation_stream(channel, chat_id).removeprefix("conversations/")


def test_a_folder_of_120_bytes_is_written_out() -> None:
    folder = folder_of("telegram", "a" * (FOLDER_LIMIT - len("telegram_")))
    assert folder == "telegram_" + "a" * 111


def test_a_longer_one_is_cut_and_ends_with_a_hash() -> None:
    folder = folder_of("telegram", "a" * 112)
    assert folder == "telegram_" + "a" * 71 + "~ac482617b87b603d"
    assert chat_of_stream(f"conversations/{folder}") is None


def test_long_names_that_begin_alike_have_folders_of_their_own() -> None:
    folders = {folder_of("telegram", "a" * 300 + str(number)) for number in range(100)}
    assert len(folders) == 100
    assert all(len(folder) <= FOLDER_LIMIT for folder in folders)


def test_a_long_channel_leaves_the_event_in_its_stream() -> None:
    event = message("c" * 300, "1")
    assert may_be_in_stream(event, stream_of(event))


_names = st.text(min_size=1, max_size=400)


@given(channel=_names, chat_id=_names)
@example("..", "..")
@example(".", "/")
@example("\x00", "\n")
@example("." * 300, "x")
def test_everything_stays_below_the_log(channel: str, chat_id: str) -> None:
    conversations = Path("/store/log/conversations")
    stream = conversation_stream(channel, chat_id)
    folder = stream.removeprefix("conversations/")
    resolved = (conversations.parent / stream).resolve()
    assert resolved.parent == conversations
    assert len(folder.encode()) <= FOLDER_LIMIT
    assert set(folder) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.%~_")


@given(channel=_names, chat_id=_names)
def test_a_folder_that_is_not_cut_names_its_chat(channel: str, chat_id: str) -> None:
    stream = conversation_stream(channel, chat_id)
    assert chat_of_stream(stream) in ((channel, chat_id), None)
    assert may_be_in_stream(message(channel, chat_id), stream)


@given(one=st.tuples(_names, _names), other=st.tuples(_names, _names))
@example(("a_b", "c"), ("a", "b_c"))
@example(("a", "%5f"), ("a", "_"))
@example(("a", "A"), ("a", "a"))
def test_two_chats_never_share_a_folder(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (conversation_stream(*one) == conversation_stream(*other)) == (one == other)


@given(st.text(max_size=100))
def test_an_encoded_name_is_plain(name: str) -> None:
    assert set(encode_name(name)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.%")


def test_what_a_folder_made_by_hand_names() -> None:
    for folder, chat in [
        ("telegram_7", ("telegram", "7")),
        ("telegram_a_b", ("telegram", "a_b")),
        ("telegram_a%5fb", ("telegram", "a_b")),
        ("telegram_a%5Fb", ("telegram", "a_b")),
        ("Telegram_Ann", ("Telegram", "Ann")),
        ("t\u00e9l\u00e9_\u8336", ("t\u00e9l\u00e9", "\u8336")),
        ("telegram_100%", ("telegram", "100%")),
        ("telegram_%zz", ("telegram", "%zz")),
        ("a_..", ("a", "..")),
        ("telegram", None),
        ("telegram_%ff", None),
        ("telegram_" + "a" * 71 + "~0123456789abcdef", None),
        ("telegram_" + "a" * 70 + "~0123456789abcdef", ("telegram", "a" * 70 + "~0123456789abcdef")),
    ]:
        assert chat_of_stream(f"conversations/{folder}") == chat, folder


def test_only_a_conversations_folder_names_a_chat() -> None:
    for stream in ["memory", "core_memory", "other/telegram_7", "telegram_7"]:
        assert chat_of_stream(stream) is None, stream


def test_the_type_decides_the_stream() -> None:
    for event, stream in [
        (message("telegram", "7"), "conversations/telegram_7"),
        (SessionBreak(channel="telegram", chat_id="7"), "conversations/telegram_7"),
        (MemorySaved(content="x", chat_id="telegram:7"), "memory"),
        (CoreMemoryUpdated(section="user", key="k", value="v"), "core"),
        (CoreMemoryDeleted(section="user", key="k"), "core"),
    ]:
        assert stream_of(event) == stream, event


def test_a_redaction_leads_to_no_folder_that_is_no_stream() -> None:
    for name in (
        *("", "other", "../memory", "memory/", "conversations", "conversations/x", "conversations/../a_b"),
        *("conversations/a_b/c", "conversations/a_\n", "/memory", "conversations//a_b"),
    ):
        try:
            stream = stream_of(Redacted(target_id="x", stream=name))
        except BadLine as bad:
            assert "stream must be" in str(bad), name  # noqa: PT017 - what leads somewhere fails with its name
        else:
            pytest.fail(f"{name!r} leads to {stream}")


def test_a_redaction_goes_where_it_says() -> None:
    for name in ["memory", "core", "facts", "documents", "conversations/telegram_a_b"]:
        assert stream_of(Redacted(target_id="x", stream=name)) == name, name


def test_a_redaction_may_stand_in_every_stream() -> None:
    assert may_be_in_stream(Redacted(target_id="x"), "facts")
    assert not may_be_in_stream(Redacted(target_id="x", stream="memory"), "facts")


def test_a_folder_made_by_hand_is_right_for_the_chat_that_it_names() -> None:
    event = message("telegram", "a_b")
    assert may_be_in_stream(event, "conversations/telegram_a%5fb")
    assert may_be_in_stream(event, "conversations/telegram_a_b")
    assert not may_be_in_stream(event, "conversations/telegram_ab")
    assert not may_be_in_stream(event, "memory")


def test_a_memory_belongs_in_no_conversation() -> None:
    event = MemorySaved(content="x", chat_id="telegram:7")
    assert may_be_in_stream(event, "memory")
    assert not may_be_in_stream(event, "conversations/telegram_7")


def test_a_segments_name_is_its_day_writer_and_number() -> None:
    for filename, name in [
        ("2026-02-24.jsonl", SegmentName("2026-02-24", 0)),
        ("2026-02-24.0001.jsonl", SegmentName("2026-02-24", 1)),
        ("2024-02-29.9999.jsonl", SegmentName("2024-02-29", 9999)),
        ("0001-01-01.jsonl", SegmentName("0001-01-01", 0)),
        ("2026-11-23.k7f3qz.jsonl", SegmentName("2026-11-23", 0, "k7f3qz")),
        ("2026-11-23.k7f3qz.0001.jsonl", SegmentName("2026-11-23", 1, "k7f3qz")),
        ("2026-11-23.k7f3qz.10000.jsonl", SegmentName("2026-11-23", 10_000, "k7f3qz")),
        ("2026-11-23.234567.jsonl", SegmentName("2026-11-23", 234_567)),
    ]:
        assert SegmentName.parse(filename) == name, filename
        assert name.filename == filename, filename


def test_a_file_of_another_name_is_no_segment() -> None:
    for filename in [
        "2026-02-30.jsonl",
        "2026-13-01.jsonl",
        "2025-02-29.jsonl",
        "0000-01-01.jsonl",
        "20260224.jsonl",
        "2026-2-24.jsonl",
        "2026-02-24.json",
        "2026-02-24.jsonl.gz",
        "2026-02-24.jsonl\n",
        "2026-02-24.1.jsonl",
        "2026-02-24.00001.jsonl",
        "2026-02-24.-001.jsonl",
        "2026-02-24.k7f3q.jsonl",
        "2026-02-24.k7f3qz7.jsonl",
        "2026-02-24.7k7f3q.jsonl",
        "2026-02-24.k7f3q1.jsonl",
        "2026-02-24.K7F3QZ.jsonl",
        "2026-02-24.k7f3qz.0000.jsonl",
        "2026-02-24.0001.k7f3qz.jsonl",
        "2026-02-24.k7f3qz.sync-conflict-20260224-101500-ABCDEFG.jsonl",
        " 2026-02-24.jsonl",
        ".2026-02-24.jsonl.Ab3dEf",
        "2026-02-24.jsonl~",
        "notes.txt",
        "2026-02-24.\u0660\u0660\u0660\u0661.jsonl",
        "\uff12026-02-24.jsonl",
        "",
    ]:
        assert SegmentName.parse(filename) is None, filename


def test_a_number_0_that_is_written_out_is_no_segment() -> None:
    """2026-02-24.0000.jsonl would be a second name of 2026-02-24.jsonl."""
    assert SegmentName.parse("2026-02-24.0000.jsonl") is None


def test_segments_stand_in_the_order_of_day_and_number() -> None:
    names = [
        SegmentName("2025-12-31"),
        SegmentName("2026-02-24"),
        SegmentName("2026-02-24", 1),
        SegmentName("2026-02-24", 2),
        SegmentName("2026-02-24", 10),
        SegmentName("2026-02-25"),
        SegmentName("2026-02-25", 1, "k7f3qz"),
        SegmentName("2026-02-25", 1, "p7f3qz"),
        SegmentName("2026-02-25", 10_000, "k7f3qz"),
    ]
    assert all(one < other for one, other in pairwise(names))


def test_a_successor_has_the_true_day_and_the_next_number() -> None:
    for name, today, successor in [
        (OWN("2026-02-24"), "2026-02-25", OWN("2026-02-25", 1)),
        (OWN("2026-02-24", 3), "2026-02-24", OWN("2026-02-24", 4)),
        (OWN("2026-02-24", 9_999), "2026-02-24", OWN("2026-02-24", 10_000)),
        (OWN("2099-01-01", 7), "2026-02-24", OWN("2026-02-24", 8)),
    ]:
        assert name.next_segment_name(today) == successor, name
        assert successor.age_key > name.age_key, name


def test_the_current_segment_of_a_writer_has_its_greatest_number_whatever_the_day() -> None:
    names = [OWN("2099-01-01", 3), OWN("2026-02-24", 4), OWN("2026-02-25", 2), SegmentName("2026-02-24", 1)]
    names += [SegmentName("2026-02-25"), SegmentName("2026-01-01", 0, "zzzzzz")]
    assert select_current_segments(names) == {
        "k7f3qz": OWN("2026-02-24", 4),
        "": SegmentName("2026-02-25"),
        "zzzzzz": SegmentName("2026-01-01", 0, "zzzzzz"),
    }


def _touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_the_log_is_listed_by_stream_and_in_order(tmp_path: Path) -> None:
    for name in ("memory/2026-02-25", "memory/2026-02-24.0001", "memory/2026-02-24", "core/2026-02-24"):
        _touch(tmp_path / f"{name}.jsonl")
    _touch(tmp_path / "conversations/telegram_7/2026-02-24.jsonl")
    segments, strangers = list_segments(tmp_path)
    assert [(segment.stream, segment.name.filename, segment.is_newest) for segment in segments] == [
        ("conversations/telegram_7", "2026-02-24.jsonl", True),
        ("core", "2026-02-24.jsonl", True),
        ("memory", "2026-02-24.jsonl", False),
        ("memory", "2026-02-24.0001.jsonl", False),
        ("memory", "2026-02-25.jsonl", True),
    ]
    assert all(segment.path.is_file() for segment in segments)
    assert strangers == []


def test_what_is_no_part_of_the_log_is_listed_apart(tmp_path: Path) -> None:
    segment = _touch(tmp_path / "memory/2026-02-24.jsonl")
    strangers = [
        _touch(tmp_path / "notes.txt"),
        _touch(tmp_path / "memory/2026-02-24.jsonl.bak"),
        _touch(tmp_path / "conversations/loose.jsonl"),
    ]
    folder = tmp_path / "memory/2026-02-25.jsonl"
    folder.mkdir()
    link = tmp_path / "memory/2026-02-26.jsonl"
    link.symlink_to(segment)
    linked_folder = tmp_path / "core"
    linked_folder.symlink_to(tmp_path / "memory")
    segments, found = list_segments(tmp_path)
    assert [each.path for each in segments] == [segment]
    assert found == sorted([*strangers, folder, link, linked_folder])


def test_a_hidden_file_of_a_file_sync_is_left_alone(tmp_path: Path) -> None:
    """Syncthing and rsync write hidden files beside the one that arrives."""
    segment = _touch(tmp_path / "memory/2026-02-24.jsonl")
    _touch(tmp_path / "memory/.2026-02-25.jsonl.Xq3vTz")
    segments, strangers = list_segments(tmp_path)
    assert ([each.path for each in segments], strangers) == ([segment], [])


def test_a_conflict_copy_is_known_by_its_name() -> None:
    for filename, is_one in [
        ("2026-11-23.k7f3qz.sync-conflict-20261123-101500-ABCDEFG.jsonl", True),
        ("2026-11-23.k7f3qz (conflicted copy 2026-11-23).jsonl", True),
        ("2026-11-23 (Anna's Conflicted Copy).jsonl", True),
        ("seals.k7f3qz.sync-conflict-20261123-101500-ABCDEFG.jsonl", True),
        ("2026-11-23.k7f3qz.jsonl.bak", False),
        ("notes on a conflict.txt", False),
    ]:
        assert is_conflict_copy(filename) is is_one, filename
        assert SegmentName.parse(filename) is None, filename


def test_the_segments_of_a_stream_are_those_of_the_log(tmp_path: Path) -> None:
    _touch(tmp_path / "memory/2026-02-24.jsonl")
    _touch(tmp_path / "core/2026-02-24.jsonl")
    assert list_segments(tmp_path, ["memory"])[0] == list_segments(tmp_path)[0][1:]


def test_a_stream_whose_folder_is_gone_or_a_link_has_no_segments(tmp_path: Path) -> None:
    _touch(tmp_path / "memory/2026-02-24.jsonl")
    (tmp_path / "core").symlink_to(tmp_path / "memory")
    (tmp_path / "facts").touch()
    assert [list_segments(tmp_path, [stream])[0] for stream in ("core", "facts", "documents")] == [[], [], []]


def test_a_stream_whose_folder_cannot_be_read_is_an_error(tmp_path: Path, faulty_disk: Any) -> None:
    _touch(tmp_path / "memory/2026-02-24.jsonl")

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    faulty_disk.scan_folder = fail
    with pytest.raises(OSError, match="Input/output error"):
        list_segments(tmp_path, ["memory"])


def test_a_folder_whose_name_is_not_utf_8_is_no_stream(tmp_path: Path) -> None:
    folder = tmp_path / "caf\udce9"
    try:
        _touch(folder / "2026-02-24.jsonl")
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    assert list_segments(tmp_path) == ([], [folder])


def test_a_log_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    assert list_segments(tmp_path / "log") == ([], [])


def test_the_repository_of_a_log_under_git_is_no_stream(tmp_path: Path) -> None:
    """A log is made to be kept with git and copied with rsync."""
    _touch(tmp_path / "memory/2026-02-24.jsonl")
    _touch(tmp_path / ".git/HEAD")
    assert list_segments(tmp_path)[1] == []

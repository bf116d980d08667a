"""Lines of the foreign shape become today's events on reading."""

import json
from typing import Any

import pytest

from memlog.eventlog.codec.decode import decode_line
from memlog.eventlog.codec.upcast import Place, convert_foreign_members
from memlog.eventlog.events import Event, Message, SessionBreak
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.streams import SegmentName

SEGMENT = SegmentName("2026-02-24")
FOREIGN: dict[str, Any] = {
    "id": "a1",
    "ts": "2026-02-24T10:15:00Z",
    "role": "user",
    "content": "green tea",
    "type": None,
    "meta": {"channel": "telegram", "chat_id": "7"},
}


def place(stream: str = "conversations/telegram_7", offset: int = 1042) -> Place:
    return Place(stream, SEGMENT, offset)


def read(line: dict[str, Any], at: Place | None = None) -> Event:
    return decode_line(json.dumps(line).encode(), at or place())


def bad_line(line: dict[str, Any], at: Place | None = None) -> BadLine:
    try:
        read(line, at)
    except BadLine as bad:
        return bad
    pytest.fail(f"read: {line}")


def reason_of(line: dict[str, Any], at: Place | None = None) -> str:
    return bad_line(line, at).reason


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in FOREIGN.items() if name not in names}


def test_a_turn_becomes_a_message() -> None:
    assert read(FOREIGN) == Message(
        id="a1",
        ts="2026-02-24T10:15:00.000Z",
        channel="telegram",
        chat_id="7",
        role="user",
        content="green tea",
        meta={"channel": "telegram", "chat_id": "7"},
    )


def test_a_line_without_type_is_a_turn() -> None:
    assert read(without("type")) == read(FOREIGN)


def test_a_subagents_result_is_a_message_of_that_kind() -> None:
    event = read(FOREIGN | {"type": "subagent_result", "role": "assistant"})
    assert isinstance(event, Message)
    assert (event.kind, event.role) == ("subagent_result", "assistant")


def test_a_session_break_needs_neither_role_nor_content() -> None:
    line = without("role", "content") | {"type": "session_break"}
    assert read(line) == SessionBreak(
        id="a1", ts="2026-02-24T10:15:00.000Z", channel="telegram", chat_id="7", model=None
    )


def test_a_session_breaks_model_stands_in_meta() -> None:
    line = without("role", "content") | {"type": "session_break", "meta": {"model": "haiku"}}
    event = read(line)
    assert isinstance(event, SessionBreak)
    assert event.model == "haiku"


def test_a_session_break_may_have_the_role_and_content_that_its_writer_gives_every_line() -> None:
    assert isinstance(read(FOREIGN | {"type": "session_break", "content": ""}), SessionBreak)


def test_a_line_without_id_is_known_by_its_position() -> None:
    for case, line in {
        "missing": without("id"),
        "null": FOREIGN | {"id": None},
    }.items():
        assert read(line).id == "2026-02-24.jsonl:1042", case


def test_the_position_has_the_segments_number() -> None:
    at = Place("conversations/telegram_7", SegmentName("2026-02-24", 3), 0)
    assert read(without("id"), at).id == "2026-02-24.0003.jsonl:0"


def test_a_line_without_ts_stands_at_the_start_of_its_segments_day() -> None:
    for case, line in {
        "missing": without("ts"),
        "null": FOREIGN | {"ts": None},
    }.items():
        assert read(line).ts == "2026-02-24T00:00:00.000Z", case


def test_a_foreign_ts_without_offset_is_utc() -> None:
    for ts, stored in [
        ("2026-02-24T10:15:00", "2026-02-24T10:15:00.000Z"),
        ("2026-02-24T10:15:00.123456", "2026-02-24T10:15:00.123Z"),
        ("2026-02-24 10:15", "2026-02-24T10:15:00.000Z"),
        ("2026-02-24T10:15:00.999+03:00", "2026-02-24T07:15:00.999Z"),
        ("1999-12-31T23:59:59Z", "1999-12-31T23:59:59.000Z"),
    ]:
        assert read(FOREIGN | {"ts": ts}).ts == stored, ts


def test_a_ts_that_is_no_time_quarantines_its_line_and_is_named() -> None:
    for ts in ["yesterday", "2026-02-24", "", 1772000000, 1772000000.5, ["2026"]]:
        bad = bad_line(FOREIGN | {"ts": ts})
        assert bad.reason == "invalid", ts
        assert repr(ts) in bad.detail, ts
        assert "is not text" in bad.detail or "invalid timestamp" in bad.detail, ts


def test_channel_and_chat_come_from_the_folder_where_meta_lacks_them() -> None:
    for meta in [
        *(None, {}, {"chat_id": "7"}, {"channel": "telegram"}, {"model": "m"}),
        {"channel": None, "chat_id": None},
    ]:
        event = read(FOREIGN | {"meta": meta})
        assert isinstance(event, Message), meta
        assert (event.channel, event.chat_id) == ("telegram", "7"), meta


def test_a_chat_is_taken_from_a_folder_made_by_hand() -> None:
    event = read(without("meta"), place("conversations/scheduler_daily_report"))
    assert isinstance(event, Message)
    assert (event.channel, event.chat_id) == ("scheduler", "daily_report")


def test_members_of_todays_shape_come_before_meta() -> None:
    line = FOREIGN | {"channel": "cli", "chat_id": "9"}
    event = read(line, place("conversations/cli_9"))
    assert isinstance(event, Message)
    assert (event.channel, event.chat_id) == ("cli", "9")


def test_meta_comes_before_the_folder_and_must_agree_with_it() -> None:
    assert reason_of(FOREIGN, place("conversations/telegram_8")) == "wrong_stream"


def test_a_chat_id_that_is_a_number_becomes_text() -> None:
    for chat_id in [7, -1001234567890, 2**63 - 1]:
        line = FOREIGN | {"meta": {"channel": "telegram", "chat_id": chat_id}}
        event = read(line, place(f"conversations/telegram_{chat_id}"))
        assert isinstance(event, Message), chat_id
        assert event.chat_id == str(chat_id), chat_id


def test_a_chat_id_that_is_no_text_and_no_number_is_refused() -> None:
    line = FOREIGN | {"meta": {"channel": "telegram", "chat_id": True}}
    assert reason_of(line, place("conversations/telegram_%54rue")) == "invalid"


def test_a_folder_that_names_no_chat_gives_none() -> None:
    assert reason_of(without("meta"), place("conversations/loose")) == "invalid"


def test_a_line_whose_folder_was_shortened_needs_its_chat_in_meta() -> None:
    folder = "conversations/telegram_" + "a" * 71 + "~ac482617b87b603d"
    assert reason_of(without("meta"), place(folder)) == "invalid"
    event = read(FOREIGN | {"meta": {"channel": "telegram", "chat_id": "a" * 112}}, place(folder))
    assert isinstance(event, Message)
    assert event.chat_id == "a" * 112


def test_the_whole_meta_stays_with_the_message() -> None:
    meta = FOREIGN["meta"] | {
        "tokens_in": 3,
        "source": "scheduler",
        "task_name": "daily",
        "x": [1, {"y": None}],
    }
    event = read(FOREIGN | {"meta": meta})
    assert isinstance(event, Message)
    assert event.meta == meta


def test_tool_content_is_text_like_any_other() -> None:
    for role in ["user", "assistant", "system", "tool"]:
        event = read(FOREIGN | {"role": role, "content": '{"result": [1, 2]}'})
        assert isinstance(event, Message), role
        assert event.content == '{"result": [1, 2]}', role


def test_a_foreign_line_that_is_not_whole_is_quarantined() -> None:
    for line in [
        without("role"),
        without("content"),
        FOREIGN | {"role": "robot"},
        FOREIGN | {"role": None},
        FOREIGN | {"content": None},
        FOREIGN | {"content": {"text": "x"}},
        FOREIGN | {"meta": "telegram"},
        FOREIGN | {"meta": {"channel": "a:b", "chat_id": "7"}},
        FOREIGN | {"meta": {"channel": "telegram", "chat_id": ""}},
        FOREIGN | {"id": 5},
        {},
    ]:
        assert reason_of(line) == "invalid", line


def test_a_foreign_line_in_the_memory_belongs_to_no_chat() -> None:
    assert reason_of(FOREIGN, place("memory")) == "wrong_stream"


def test_a_foreign_line_of_another_type_is_of_a_newer_memlog() -> None:
    assert reason_of(FOREIGN | {"type": "reaction"}) == "unknown_type"


def test_what_is_read_is_not_changed() -> None:
    given = json.loads(json.dumps(FOREIGN))
    convert_foreign_members(given, place())
    assert given == FOREIGN

"""Lines of the foreign shape become today's events on reading."""

import json
from typing import Any

import pytest

from memlog.eventlog.decode import decode
from memlog.eventlog.events import Event, Message, SessionBreak
from memlog.eventlog.quarantine import BadLine
from memlog.eventlog.streams import SegmentName
from memlog.eventlog.upcast import Place, upcast

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
    return decode(json.dumps(line).encode(), at or place())


def reason_of(line: dict[str, Any], at: Place | None = None) -> str:
    with pytest.raises(BadLine) as bad:
        read(line, at)
    return bad.value.reason


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


@pytest.mark.parametrize("line", [without("id"), FOREIGN | {"id": None}], ids=["missing", "null"])
def test_a_line_without_id_is_known_by_its_position(line: dict[str, Any]) -> None:
    assert read(line).id == "2026-02-24.jsonl:1042"


def test_the_position_has_the_segments_number() -> None:
    at = Place("conversations/telegram_7", SegmentName("2026-02-24", 3), 0)
    assert read(without("id"), at).id == "2026-02-24.0003.jsonl:0"


@pytest.mark.parametrize("line", [without("ts"), FOREIGN | {"ts": None}], ids=["missing", "null"])
def test_a_line_without_ts_stands_at_the_start_of_its_segments_day(line: dict[str, Any]) -> None:
    assert read(line).ts == "2026-02-24T00:00:00.000Z"


@pytest.mark.parametrize(
    ("ts", "stored"),
    [
        ("2026-02-24T10:15:00", "2026-02-24T10:15:00.000Z"),
        ("2026-02-24T10:15:00.123456", "2026-02-24T10:15:00.123Z"),
        ("2026-02-24 10:15", "2026-02-24T10:15:00.000Z"),
        ("2026-02-24T10:15:00.999+03:00", "2026-02-24T07:15:00.999Z"),
        ("1999-12-31T23:59:59Z", "1999-12-31T23:59:59.000Z"),
    ],
)
def test_a_foreign_ts_without_offset_is_utc(ts: str, stored: str) -> None:
    assert read(FOREIGN | {"ts": ts}).ts == stored


@pytest.mark.parametrize("ts", ["yesterday", "2026-02-24", "", 1772000000, 1772000000.5, ["2026"]])
def test_a_ts_that_is_no_time_quarantines_its_line_and_is_named(ts: object) -> None:
    with pytest.raises(BadLine, match=r"is no text|is not a time") as bad:
        read(FOREIGN | {"ts": ts})
    assert bad.value.reason == "invalid"
    assert repr(ts) in bad.value.detail


@pytest.mark.parametrize(
    "meta", [None, {}, {"chat_id": "7"}, {"channel": "telegram"}, {"model": "m"}], ids=json.dumps
)
def test_channel_and_chat_come_from_the_folder_where_meta_lacks_them(meta: object) -> None:
    event = read(FOREIGN | {"meta": meta})
    assert isinstance(event, Message)
    assert (event.channel, event.chat_id) == ("telegram", "7")


def test_channel_and_chat_come_from_the_folder_where_meta_has_null() -> None:
    event = read(FOREIGN | {"meta": {"channel": None, "chat_id": None}})
    assert isinstance(event, Message)
    assert (event.channel, event.chat_id) == ("telegram", "7")


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


@pytest.mark.parametrize("chat_id", [7, -1001234567890, 2**63 - 1])
def test_a_chat_id_that_is_a_number_becomes_text(chat_id: int) -> None:
    line = FOREIGN | {"meta": {"channel": "telegram", "chat_id": chat_id}}
    event = read(line, place(f"conversations/telegram_{chat_id}"))
    assert isinstance(event, Message)
    assert event.chat_id == str(chat_id)


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


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_tool_content_is_text_like_any_other(role: str) -> None:
    event = read(FOREIGN | {"role": role, "content": '{"result": [1, 2]}'})
    assert isinstance(event, Message)
    assert event.content == '{"result": [1, 2]}'


@pytest.mark.parametrize(
    "line",
    [
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
    ],
    ids=lambda line: json.dumps(line)[:60],
)
def test_a_foreign_line_that_is_not_whole_is_quarantined(line: dict[str, Any]) -> None:
    assert reason_of(line) == "invalid"


def test_a_foreign_line_in_the_memory_belongs_to_no_chat() -> None:
    assert reason_of(FOREIGN, place("memory")) == "wrong_stream"


def test_a_foreign_line_of_another_type_is_of_a_newer_memlog() -> None:
    assert reason_of(FOREIGN | {"type": "reaction"}) == "unknown_type"


def test_what_is_read_is_not_changed() -> None:
    given = json.loads(json.dumps(FOREIGN))
    upcast(given, place())
    assert given == FOREIGN

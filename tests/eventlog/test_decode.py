"""The grammar of a line: what memlog writes, what it accepts, what it refuses and why."""

import json
import re
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlog.eventlog.codec.content_ids import content_hash
from memlog.eventlog.codec.decode import decode_line, is_blank_line
from memlog.eventlog.codec.encode import draft_event, make_event_id
from memlog.eventlog.codec.upcast import Place
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import (
    CoreMemoryDeleted,
    CoreMemoryUpdated,
    Event,
    MemorySaved,
    Message,
    SessionBreak,
)
from memlog.eventlog.log.quarantine import DAMAGE, HINTS, MAX_DEPTH, MAX_LINE, BadLine
from memlog.eventlog.log.streams import SegmentName, stream_of
from tests.support.examples import examples

TS = "2026-02-24T10:15:00.000Z"
AT = "2026-02-24T10:15:00.250Z"
TRAILER = len(',"crc":"00000000"}')

EVENTS = {
    "message": Message(
        id="m-1",
        ts=TS,
        channel="telegram",
        chat_id="7",
        role="assistant",
        name="Ann",
        content='grünes Tee 喝茶 "quoted" \\ \n \u2028 \x85 \x0c \x00 😀',
        kind="subagent_result",
        meta={"model": "m", "tokens_in": 3, "deep": [1.5, None, {"a": True}]},
    ),
    "empty message": Message(id="m-2", ts=TS, channel="c", chat_id="1", role="user", content=""),
    "session_break": SessionBreak(id="s-1", ts=TS, channel="telegram", chat_id="7", model="m"),
    "memory_saved": MemorySaved(
        id="y-1",
        ts=TS,
        content="likes tea",
        memory_id="tea",
        title="Tea",
        category="preferences",
        kind="preference",
        importance=0.75,
        source="migration",
        topic="drinks",
        chat_id="telegram:7",
        tags=["a", "b"],
    ),
    "core_memory_updated": CoreMemoryUpdated(id="c-1", ts=TS, section="user", key="name", value="Ann"),
    "core_memory_deleted": CoreMemoryDeleted(id="c-2", ts=TS, section="agent", key="rules"),
}

GOLDEN = (
    b'{"type":"message","id":"m-1","ts":"2026-02-24T10:15:00.000Z","at":"2026-02-24T10:15:00.250Z","v":1,'
    b'"channel":"telegram","chat_id":"7","role":"user","content":"green tea","crc":"a2073689"}'
)


def written(event: Event | dict[str, Any] | bytes) -> bytes:
    """The line that memlog writes for `event`, without its newline."""
    return draft_event(event).build_line(AT).removesuffix(b"\n")


def place_of(event: Event, offset: int = 0) -> Place:
    return Place(stream_of(event), SegmentName("2026-02-24"), offset)


def read(line: bytes, stream: str = "memory", offset: int = 100) -> Event:
    return decode_line(line, Place(stream, SegmentName("2026-02-24"), offset))


def reason_of(line: bytes, stream: str = "memory", offset: int = 100) -> str:
    try:
        read(line, stream, offset)
    except BadLine as bad:
        return bad.reason
    pytest.fail(f"read: {line[:200]!r}")


def refusal(event: Any) -> BadInput:
    try:
        draft_event(event)
    except BadInput as refused:
        return refused
    pytest.fail(f"accepted: {str(event)[:200]}")


def with_crc(body: bytes) -> bytes:
    """A line whose crc is right, made without memlog."""
    return body + b',"crc":"%08x"}' % zlib.crc32(body)


def memory_json(**members: Any) -> bytes:
    return json.dumps({"type": "memory_saved", "content": "tea"} | members).encode()


def test_what_memlog_writes_is_read_back_the_same() -> None:
    for case, event in EVENTS.items():
        back = decode_line(written(event), place_of(event))
        assert back.at == AT, case
        back.at = None
        assert back == event, case


@given(content=st.text(), name=st.none() | st.text(), chat=st.text(min_size=1))
def test_any_text_is_read_back_the_same(content: str, name: str | None, chat: str) -> None:
    event = Message(id="m", ts=TS, channel="x", chat_id=chat, role="user", name=name, content=content)
    line = written(event)
    back = decode_line(line, place_of(event))
    assert b"\n" not in line
    assert (back.content, back.name, back.chat_id) == (content, name, chat)


def test_a_line_has_these_bytes() -> None:
    event = Message(id="m-1", ts=TS, channel="telegram", chat_id="7", role="user", content="green tea")
    assert written(event) == GOLDEN


def test_crc_is_the_last_member_and_covers_the_bytes_before_it() -> None:
    for case, event in EVENTS.items():
        line = written(event)
        body, trailer = line[:-TRAILER], line[-TRAILER:]
        assert list(json.loads(line))[-1] == "crc", case
        assert trailer == b',"crc":"%08x"}' % zlib.crc32(body), case


def test_the_envelope_comes_first() -> None:
    assert list(json.loads(written(EVENTS["message"])))[:5] == ["type", "id", "ts", "at", "v"]


def test_every_flipped_bit_of_a_line_is_found() -> None:
    for name in ["message", "memory_saved", "core_memory_deleted"]:
        line, place = written(EVENTS[name]), place_of(EVENTS[name])
        unnoticed = []
        for bit in range(len(line) * 8):
            damaged = bytearray(line)
            damaged[bit // 8] ^= 1 << bit % 8
            try:
                decode_line(bytes(damaged), place)
            except BadLine as bad:
                assert bad.reason in DAMAGE, name  # noqa: PT017 - a flip that raises nothing is what is counted
            else:
                unnoticed.append(bit)
        assert unnoticed == [], name


def test_a_flipped_bit_of_the_text_says_that_the_crc_is_wrong() -> None:
    assert reason_of(GOLDEN.replace(b"green", b"greeo"), "conversations/telegram_7") == "bad_crc"


def test_a_byte_of_the_crc_itself_that_has_changed_is_damage() -> None:
    for changed in [b"x", b"0", b"\xff", b"\\"]:
        for number in range(1, len(b',"crc":"a2073689"}') + 1):
            line = bytearray(GOLDEN)
            if line[-number] == changed[0]:
                continue
            line[-number] = changed[0]
            assert reason_of(bytes(line), "conversations/telegram_7") in DAMAGE, number


def test_every_beginning_of_a_line_is_found() -> None:
    cuts = range(1, len(GOLDEN))
    assert [cut for cut in cuts if reason_of(GOLDEN[:cut], "conversations/telegram_7") != "torn"] == []


def test_two_lines_in_one_are_found() -> None:
    for glue in [b"", b" ", b"\x00\x00", b"xx"]:
        assert reason_of(GOLDEN + glue + GOLDEN, "conversations/telegram_7") == "bad_crc", glue


def test_a_fragment_glued_to_a_line_is_found() -> None:
    assert reason_of(GOLDEN[:50] + GOLDEN, "conversations/telegram_7") == "bad_crc"


def test_a_line_with_at_needs_a_crc() -> None:
    assert reason_of(memory_json(id="y", ts=TS, at=AT)) == "missing_crc"


def test_a_line_whose_at_is_null_is_foreign() -> None:
    assert read(memory_json(at=None)).at is None


def test_what_says_that_other_bytes_stand_there_than_were_written_is_damage() -> None:
    assert DAMAGE == ("bad_crc", "missing_crc", "conflict_marker")


def test_a_crc_stands_directly_before_the_brace_and_is_right() -> None:
    for case, line in {
        "first": b'{"crc":"00000000","type":"memory_saved","content":"tea"}',
        "in the middle": with_crc(b'{"type":"memory_saved","content":"tea"')[:-1] + b',"more":1}',
        "before a blank": with_crc(b'{"type":"memory_saved","content":"tea"')[:-1] + b" }",
        "upper case": b'{"type":"memory_saved","content":"tea","crc":"ABCDEF01"}',
        "after a blank": b'{"type":"memory_saved","content":"tea","crc": "00000000"}',
        "null": b'{"type":"memory_saved","content":"tea","crc":null}',
        "wrong": b'{"type":"memory_saved","content":"tea","crc":"00000000"}',
    }.items():
        assert reason_of(line) == "bad_crc", case
        assert refusal(line).code == "bad_crc", case


def test_a_foreign_line_may_have_a_crc() -> None:
    line = with_crc(b'{"type":"memory_saved","content":"tea"')
    assert read(line).content == "tea"
    assert reason_of(line.replace(b"tea", b"ten")) == "bad_crc"


def test_unknown_members_are_kept_byte_for_byte() -> None:
    strange = rb'"later": {"a" :1.50e0,"b":"\u00e9\/ \\n","c":[ ]}'
    line = written(b'{"type":"memory_saved","content":"tea",' + strange + b"}")
    assert strange.partition(b": ")[2] in line
    assert read(line).content == "tea"


def test_known_members_are_kept_byte_for_byte_too() -> None:
    assert rb'"content":"t\u0065a"' in written(rb'{"content":"t\u0065a", "type":"memory_saved"}')


def test_white_space_between_members_never_breaks_a_line() -> None:
    line = written(b'{\r\n"type":"memory_saved",\n\t"content":"tea",\n"x":[1,\r\n2]\n}')
    assert b"\n" not in line
    assert b"\r" not in line
    assert json.loads(line)["x"] == [1, 2]


def test_at_and_crc_of_an_input_are_set_anew() -> None:
    again = draft_event(GOLDEN).build_line("2030-01-01T00:00:00.000Z").removesuffix(b"\n")
    back = decode_line(again, Place("conversations/telegram_7", SegmentName("2026-02-24"), 0))
    assert back.at == "2030-01-01T00:00:00.000Z"
    assert again.count(b'"at":') == again.count(b'"crc":') == 1
    assert json.loads(again) | {"at": 0, "crc": 0} == json.loads(GOLDEN) | {"at": 0, "crc": 0}


def test_an_input_with_a_wrong_crc_is_refused() -> None:
    with pytest.raises(BadInput, match="bad crc"):
        draft_event(GOLDEN.replace(b"green", b"great"))


def test_an_input_with_at_and_no_crc_is_accepted_and_its_at_dropped() -> None:
    line = written(memory_json(at="2001-01-01T00:00:00Z"))
    assert b"2001" not in line


def test_an_input_whose_at_is_no_time_is_refused() -> None:
    with pytest.raises(BadInput, match="invalid timestamp: 'never'"):
        draft_event(memory_json(at="never"))


def test_a_ts_becomes_utc_with_milliseconds() -> None:
    for given_ts, stored in [
        ("2026-02-24T10:15:00Z", "2026-02-24T10:15:00.000Z"),
        ("2026-02-24 10:15:00Z", "2026-02-24T10:15:00.000Z"),
        ("2026-02-24T10:15Z", "2026-02-24T10:15:00.000Z"),
        ("2026-02-24T10:15:00.5Z", "2026-02-24T10:15:00.500Z"),
        ("2026-02-24T10:15:00.999999999Z", "2026-02-24T10:15:00.999Z"),
        ("2026-02-24T10:15:00+02:00", "2026-02-24T08:15:00.000Z"),
        ("2026-02-24T00:15:00.250+05:30", "2026-02-23T18:45:00.250Z"),
        ("2026-12-31T23:59:59-00:30", "2027-01-01T00:29:59.000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ]:
        assert read(written(memory_json(ts=given_ts))).ts == stored, given_ts


def test_a_ts_that_is_no_time_of_known_offset_is_refused() -> None:
    for ts in [
        "yesterday",
        "",
        "2026-02-24",
        "2026-02-24T10:15:00",
        "2026-02-30T10:15:00Z",
        "2026-02-24T25:15:00Z",
        "2026-02-24T10:15:00Z\n",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
    ]:
        refused = refusal(memory_json(ts=ts))
        assert refused.code == "invalid", ts
        assert refused.message.startswith("invalid: ts: "), ts


def test_a_ts_is_refused_by_its_value() -> None:
    for ts in ("yesterday", "", "2026-02-24T10:15:00"):
        assert repr(ts) in refusal(memory_json(ts=ts)).message


def test_a_ts_may_be_in_lower_case() -> None:
    assert read(written(memory_json(ts="2026-02-24t10:15:00z"))).ts == "2026-02-24T10:15:00.000Z"


def test_a_ts_that_is_a_number_is_refused_by_its_value() -> None:
    with pytest.raises(BadInput, match="1772000000"):
        draft_event(memory_json(ts=1772000000))


def test_an_event_without_ts_and_id_is_given_both() -> None:
    before = time.time()
    event = read(written(memory_json(ts=None, id=None)))
    after = time.time()
    stamp = int(str(event.id).replace("-", "")[:12], 16) / 1000
    assert before - 0.001 <= stamp <= after
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(event.ts))


def test_ids_are_uuids_of_version_7() -> None:
    form = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
    assert all(form.fullmatch(make_event_id()) for _ in range(200))


def test_ids_sort_by_the_time_of_their_making(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = []
    for milliseconds in (1, 2**32, 1_772_000_000_000, 1_772_000_000_001, 2**48 - 1):
        monkeypatch.setattr(time, "time_ns", lambda stamp=milliseconds: stamp * 1_000_000)
        ids.append(make_event_id())
    assert ids == sorted(ids)


def test_ids_of_one_millisecond_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_772_000_000_000_000_000)
    assert len({make_event_id() for _ in range(1000)}) == 1000


def test_an_id_that_is_given_is_kept() -> None:
    made = draft_event(memory_json(id="my own/id"))
    assert (made.id, read(made.build_line(AT)[:-1]).id) == ("my own/id", "my own/id")


def test_an_id_is_a_short_text_without_control_characters() -> None:
    for event_id in ["", "a\nb", "a\x00", "\x7f", "x" * 513, 5, ["a"]]:
        assert "id" in refusal(memory_json(id=event_id)).message, event_id


def test_an_id_is_refused_by_its_value() -> None:
    with pytest.raises(BadInput, match=re.escape(repr("a\nb"))):
        draft_event(memory_json(id="a\nb"))


def _changed(event: bytes) -> bytes:
    """The line that memlog writes for a change, without its newline."""
    return draft_event(event).build_line(AT, AT, AT).removesuffix(b"\n")


def _memory_of(length: int) -> bytes:
    """An input whose line is `length` bytes long, without its newline."""
    shortest = len(_changed(memory_json(id="y", ts=TS, content="x")))
    return memory_json(id="y", ts=TS, content="x" * (length - shortest + 1))


def test_a_line_of_exactly_16_mib_is_written_and_read() -> None:
    line = _changed(_memory_of(MAX_LINE))
    assert len(line) == 16 * 1024 * 1024
    assert read(line).id == "y"


def test_a_line_of_one_byte_more_is_refused() -> None:
    with pytest.raises(BadInput) as refused:
        draft_event(_memory_of(MAX_LINE + 1))
    assert refused.value.code == "too_long"
    assert "16,777,217 bytes" in refused.value.message


REASONS: dict[str, tuple[bytes, str]] = {
    "invalid UTF-8": (b'{"type":"memory_saved","content":"\xff"}', "not_utf8"),
    "an overlong encoding": (b'{"type":"memory_saved","content":"\xc0\xaf"}', "not_utf8"),
    "a surrogate in UTF-8": (b'{"type":"memory_saved","content":"\xed\xa0\x80"}', "not_utf8"),
    "invalid UTF-8 where nobody looks": (b'{"type":"memory_saved","content":"a","x":"\xff"}', "not_utf8"),
    "UTF-16": ('{"type":"memory_saved","content":"a"}'.encode("utf-16"), "not_utf8"),
    "a lone surrogate": (rb'{"type":"memory_saved","content":"\ud800"}', "lone_surrogate"),
    "a lone low surrogate": (rb'{"type":"memory_saved","content":"\udc00"}', "lone_surrogate"),
    "a lone surrogate where nobody looks": (
        rb'{"type":"memory_saved","content":"a","x":["\uDBFF"]}',
        "lone_surrogate",
    ),
    "a NUL byte": (b'{"type":"memory_saved","content":"a\x00b"}', "not_json"),
    "a run of NUL bytes": (b"\x00" * 64, "not_json"),
    "NaN": (b'{"type":"memory_saved","content":"a","importance":NaN}', "not_json"),
    "Infinity": (b'{"type":"memory_saved","content":"a","x":-Infinity}', "not_json"),
    "a number out of range": (b'{"type":"memory_saved","content":"a","x":1e999}', "invalid"),
    "a string in single quotes": (b"{'type':'memory_saved'}", "not_json"),
    "a comma too many": (b'{"type":"memory_saved","content":"a",}', "not_json"),
    "a brace too many": (b'{"type":"memory_saved","content":"a"}}', "not_json"),
    "two objects": (b'{"type":"memory_saved","content":"a"}{}', "not_json"),
    "a line feed in a string": (b'{"type":"memory_saved","content":"a\nb"}', "not_json"),
    "an array": (b"[]", "invalid"),
    "a number": (b"5", "invalid"),
    "plain text": (b"hello", "not_json"),
    "git's marker of one side": (b"<<<<<<< HEAD", "conflict_marker"),
    "git's marker of the other side": (b">>>>>>> 1234567 (a message)", "conflict_marker"),
    "git's marker of what was before": (b"||||||| merged common ancestors", "conflict_marker"),
    "git's marker between them": (b"=======", "conflict_marker"),
    "git's marker with a carriage return": (b"=======\r", "conflict_marker"),
    "a heading in plain text": (b"======= notes", "not_json"),
    "an arrow": (b"<<<<<<<", "not_json"),
    "a nested bomb": (b'{"type":"memory_saved","x":' + b"[" * 100_000, "too_deep"),
    "a member twice": (b'{"type":"memory_saved","content":"a","content":"b"}', "duplicate_key"),
    "a member twice, once with an escape": (
        rb'{"type":"memory_saved","content":"a","c\u006fntent":"a"}',
        "duplicate_key",
    ),
    "a member twice where nobody looks": (
        b'{"type":"memory_saved","content":"a","x":[{"y":{"z" :1,"z":1}}]}',
        "duplicate_key",
    ),
    "an integer above 64 bits": (b'{"type":"memory_saved","content":"a","x":9223372036854775808}', "invalid"),
    "an integer below 64 bits": (
        b'{"type":"memory_saved","content":"a","x":-9223372036854775809}',
        "invalid",
    ),
    "half an object": (b'{"type":"memory_saved","content":"a"', "torn"),
    "half a string": (b'{"type":"memory_saved","content":"a', "torn"),
    "half an escape": (b'{"type":"memory_saved","content":"a\\', "torn"),
    "half a character": (b'{"type":"memory_saved","content":"\xc3', "torn"),
    "half an object with a bad byte in it": (b'{"type":"memory_saved","content":"\xff and', "not_utf8"),
    "an empty content": (b'{"type":"memory_saved","content":""}', "invalid"),
    "a content of another type": (b'{"type":"memory_saved","content":5}', "invalid"),
    "an importance above 1": (b'{"type":"memory_saved","content":"a","importance":1.5}', "invalid"),
    "a missing member": (b'{"type":"memory_saved"}', "invalid"),
    "version 0": (b'{"type":"memory_saved","content":"a","v":0}', "invalid"),
    "a version that is text": (b'{"type":"memory_saved","content":"a","v":"1"}', "invalid"),
    "a newer version": (b'{"type":"memory_saved","v":2,"text":"of tomorrow"}', "newer_version"),
    "an unknown type": (b'{"type":"memory_dreamt","content":"a"}', "unknown_type"),
    "a type that is a number": (b'{"type":5,"content":"a"}', "invalid"),
}


def test_a_bad_line_is_quarantined_with_its_reason() -> None:
    found = {case: reason_of(line) for case, (line, _) in REASONS.items()}
    assert found == {case: reason for case, (_, reason) in REASONS.items()}


def test_a_bad_input_is_refused_with_the_same_reason_and_a_hint() -> None:
    for case, (line, reason) in REASONS.items():
        refused = refusal(line)
        assert (refused.code, refused.hint) == (reason, HINTS[reason]), case
        assert refused.message.startswith(reason.replace("_", " ")), case


def test_a_refusal_names_what_is_wrong() -> None:
    for line, named in [
        (b'{"type":"memory_dreamt"}', "'memory_dreamt'"),
        (b'{"type":5}', "5"),
        (b'{"content":"a"}', "type is missing"),
        (b'{"type":"memory_saved"}', "`content`"),
        (b'{"type":"memory_saved","content":"a","v":7}', "version 7 of memory_saved"),
        (b'{"type":"memory_saved","content":5}', "`$.content`"),
        (b'{"type":"memory_saved","content":"a","kind":"rumour"}', "'rumour'"),
        (b'{"type":"memory_saved","content":"a","importance":1.5}', "`$.importance`"),
        (rb'{"type":"memory_saved","content":"\ud83d"}', r"\ud83d"),
        (b'{"type":"memory_saved","content":"\xff"}', "byte 34"),
    ]:
        assert named in refusal(line).message, line


def test_what_is_no_lone_surrogate_is_not_called_one() -> None:
    for case, line in {
        "a whole pair": rb'{"type":"memory_saved","content":"\ud83d\ude00"} and more',
        "an escaped backslash": rb'{"type":"memory_saved","content":"\\ud83d",}',
    }.items():
        assert reason_of(line) == "not_json", case


def test_a_long_torn_line_is_told_apart_in_little_memory() -> None:
    """16 MiB of it take 9 s and 2 GB: a writer killed within one long event is enough."""
    line = b'{"type":"memory_saved","content":"' + b"x" * 1024 * 1024
    tracemalloc.start()
    try:
        assert reason_of(line) == "torn"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * len(line)


def _nested(depth: int) -> bytes:
    """A line of so many objects and lists within each other."""
    inner = depth - 1
    return b'{"type":"memory_saved","content":"tea","x":' + b"[" * inner + b"]" * inner + b"}"


def _deeper(frames: int, call: Callable[[], Any]) -> Any:
    return call() if frames == 0 else _deeper(frames - 1, call)


def test_how_deep_a_line_may_be_nested_is_a_constant() -> None:
    """Python's own limit depends on its caller's stack: a rebuild would have other rows than a catch-up."""
    assert MAX_DEPTH == 64
    line = written(_nested(64))
    assert _deeper(500, lambda: read(line)).content == "tea"
    for frames in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit()):
        try:
            assert _deeper(frames, lambda: read(line)).content == "tea"
        except RecursionError:  # the caller's own; never a line that is quarantined for it
            break
    else:
        pytest.fail("the stack was not deep enough to try it")
    assert reason_of(_nested(65)) == "too_deep"
    with pytest.raises(BadInput, match="64") as refused:
        draft_event(_nested(65))
    assert refused.value.code == "too_deep"


def test_a_line_too_deep_is_told_so_whole_or_torn() -> None:
    for shut in [b"", b"]", b"]" * 100, b"]}" * 100]:
        assert reason_of(b'{"x":' + b"[" * 100 + shut) == "too_deep", shut


def test_brackets_within_a_text_are_no_nesting() -> None:
    text = '{["\\' * 200
    assert read(written(MemorySaved(content=text))).content == text


def test_brackets_within_a_line_that_is_no_object_are_a_bad_line() -> None:
    for case, line in {
        "one text": b'"' + b"{" * 65 + b'"',
        "many texts": b'"[" ' * 65,
    }.items():
        assert reason_of(line) in ("invalid", "not_json"), case


def test_a_carriage_return_before_the_newline_is_no_part_of_a_line() -> None:
    assert read(GOLDEN + b"\r", "conversations/telegram_7").id == "m-1"
    assert read(memory_json() + b"\r").content == "tea"


def test_a_byte_order_mark_before_a_line_is_no_part_of_it() -> None:
    for marks in (b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 2):
        for offset in (0, 1):
            assert read(marks + memory_json(), offset=offset).content == "tea"
            assert read(marks + GOLDEN + b"\r", "conversations/telegram_7", offset=offset).id == "m-1"
    assert reason_of(memory_json()[:5] + b"\xef\xbb\xbf" + memory_json()[5:]) == "invalid"


def test_a_line_that_holds_nothing_is_blank() -> None:
    for line in [b"", b"\r", b"  \t", b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf\r"]:
        assert is_blank_line(line), line


def test_a_line_that_holds_anything_is_not_blank() -> None:
    for line in [b"{}", b"\x00", b"0"]:
        assert not is_blank_line(line), line


def test_an_event_in_another_stream_is_quarantined_and_says_where_it_belongs() -> None:
    with pytest.raises(BadLine, match="belongs in conversations/telegram_7") as bad:
        read(GOLDEN, "conversations/telegram_8")
    assert bad.value.reason == "wrong_stream"
    assert reason_of(memory_json(), "core") == "wrong_stream"


def test_a_foreign_line_of_todays_shape_lacks_only_its_envelope() -> None:
    event = read(memory_json())
    assert (event.id, event.ts, event.at) == ("2026-02-24.jsonl:100", "2026-02-24T00:00:00.000Z", None)


def test_a_native_line_whose_ts_was_written_by_another_is_quarantined() -> None:
    line = with_crc(GOLDEN[:-TRAILER].replace(b"2026-02-24T10:15:00.000Z", b"2026-02-24T10:15:00Z"))
    assert reason_of(line, "conversations/telegram_7") == "invalid"


def test_the_envelope_is_no_part_of_what_an_event_says() -> None:
    one = MemorySaved(id="a", ts=TS, at=AT, content="tea")
    two = MemorySaved(id="b", ts="2030-01-01T00:00:00.000Z", content="tea")
    assert content_hash(one) == content_hash(two)
    assert one.id == "a"


def test_events_that_say_something_else_have_another_hash() -> None:
    for other in [
        MemorySaved(content="tea "),
        MemorySaved(content="tea", title="tea"),
        MemorySaved(content="tea", importance=0.6),
        CoreMemoryUpdated(section="user", key="tea", value="tea"),
    ]:
        assert content_hash(other) != content_hash(MemorySaved(content="tea")), other


def test_meta_in_another_order_says_the_same() -> None:
    one, two = (
        Message(channel="c", chat_id="1", role="user", content="x", meta=meta)
        for meta in ({"a": 1, "b": {"c": 1, "d": 2}}, {"b": {"d": 2, "c": 1}, "a": 1})
    )
    assert content_hash(one) == content_hash(two)


def test_a_member_that_is_null_says_the_same_as_none() -> None:
    assert content_hash(read(memory_json(title=None))) == content_hash(read(memory_json()))


def test_a_member_that_is_the_default_says_the_same_as_none() -> None:
    """A struct leaves its defaults out, a dict may spell them: one event, whoever sent it."""
    spelt = read(memory_json(importance=0.5, category="other", source="manual"))
    assert content_hash(spelt) == content_hash(read(memory_json()))


def test_what_is_no_event_is_refused() -> None:
    for event in [5, "text", ["a"], None, {"type": "memory_saved", "content": {1, 2}.pop}]:
        refusal(event)


def test_a_dict_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(BadInput, match="surrogates not allowed"):
        draft_event({"type": "memory_saved", "content": "\ud800"})


def test_an_integer_of_64_bits_is_kept() -> None:
    for number in [2**63 - 1, -(2**63)]:
        assert b'"x":%d' % number in written({"type": "memory_saved", "content": "tea", "x": number}), number


def test_an_integer_beyond_64_bits_is_refused() -> None:
    for number in [2**63, -(2**63) - 1, 2**70]:
        refused = refusal({"type": "memory_saved", "content": "tea", "x": number})
        assert f"{number} is an integer outside 64 bits" in refused.message, number


def test_an_integer_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(BadInput):
        draft_event({"type": "memory_saved", "content": "tea", "x": 10**5000})


def test_a_number_that_json_cannot_carry_is_refused() -> None:
    for number in [float("nan"), float("inf")]:
        refusal(Message(channel="c", chat_id="1", role="user", content="x", meta={"score": number}))


@settings(max_examples=examples(25))
@given(st.binary(max_size=200) | st.text(max_size=50).map(str.encode))
def test_whatever_the_bytes_nothing_but_a_bad_line_is_raised(line: bytes) -> None:
    with pytest.raises(BadLine):
        read(line)
    with pytest.raises(BadInput):
        draft_event(line)


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_names = st.sampled_from(
    ["type", "id", "ts", "at", "v", "crc", "content", "role", "channel", "chat_id", "meta", "importance", "x"]
)
_values = _json | st.sampled_from(["message", "memory_saved", "user", TS, 1])


@settings(max_examples=examples(25))
@given(st.dictionaries(_names, _values, max_size=8))
def test_whatever_the_members_a_line_is_an_event_or_a_bad_line(members: dict[str, Any]) -> None:
    line = json.dumps(members).encode()
    for stream in ("memory", "conversations/telegram_7"):
        try:
            assert read(line, stream).id is not None
        except BadLine as bad:
            assert bad.reason in HINTS  # noqa: PT017 - both outcomes are right
    try:
        made = draft_event(line)
    except BadInput as refused:
        assert refused.code in HINTS  # noqa: PT017
    else:
        assert (
            decode_line(made.build_line(AT)[:-1], Place(made.stream, SegmentName("2026-02-24"), 0)).id
            == made.id
        )

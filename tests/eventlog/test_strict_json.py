"""A key twice, an integer beyond 64 bits: found in every line, by a proof that most lines make cheap."""

import json
import zlib
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from memlog.eventlog.codec.decode import INTEGERS, decode_line, is_shortest_spelling, parse_members
from memlog.eventlog.codec.encode import draft_event
from memlog.eventlog.codec.upcast import Place
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import TYPES, MemorySaved, Message
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.streams import SegmentName, stream_of
from tests.support.examples import examples

AT = "2026-02-24T10:15:00.250Z"
ENVELOPE = b'"id":"y","ts":"%s","at":"%s"' % (AT.encode(), AT.encode())
NATIVE = b'{"type":"memory_saved",' + ENVELOPE


def has_a_key_twice(line: bytes) -> bool:
    """The reference: the standard library, object by object."""
    found = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        found.append(len({key for key, _ in pairs}) < len(pairs))

    json.loads(line, object_pairs_hook=look)
    return any(found)


def reason_of(line: bytes) -> str | None:
    try:
        decode_line(line, Place("memory", SegmentName("2026-02-24"), 100))
    except BadLine as bad:
        return bad.reason
    return None


def with_crc(body: bytes) -> bytes:
    return body + b',"crc":"%08x"}' % zlib.crc32(body)


_blanks = st.sampled_from(["", "", "", " ", "\t", "\r", "  "])
_letters = st.sampled_from(
    ["a", "b", r"\u0061", "é", r"\u00e9", r"\\", r"\"", ":", r"\":", r"\\\":", " :", "{", ","]
)
_texts = st.lists(_letters, max_size=3).map(lambda letters: f'"{"".join(letters)}"')
_scalars = _texts | st.sampled_from(["1", "0.5", "1e3", "-0", "null", "true", "{}", "[]"])


@st.composite
def _spaced(draw: Any, inner: Any) -> str:
    """An object, with blanks wherever JSON allows them."""
    members = draw(st.lists(st.tuples(_texts, inner), max_size=4))
    said = [
        f"{draw(_blanks)}{key}{draw(_blanks)}:{draw(_blanks)}{value}{draw(_blanks)}" for key, value in members
    ]
    return "{" + ",".join(said) + "}"


_values = st.recursive(
    _scalars,
    lambda inner: _spaced(inner) | st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
    max_leaves=6,
)
_objects = _spaced(_values).map(str.encode)


@settings(max_examples=examples(25))
@example(rb'{"a":1,"\u0061":1}')
@example(b'{"a" :1,"a":1}')
@example(rb'{"a\\":1,"x":"\":"}')
@example(rb'{"x":"\\","a":1,"a":1}')
@given(_objects)
def test_any_object_is_refused_where_the_reference_finds_a_key_twice(line: bytes) -> None:
    if not has_a_key_twice(line):
        assert parse_members(line) == json.loads(line)
        return
    with pytest.raises(BadLine) as bad:
        parse_members(line)
    assert bad.value.reason == "duplicate_key"


@settings(max_examples=examples(25))
@given(
    _objects,
    st.sampled_from([b"", b'"v":1,', b'"v":1,"v":1,', b'"ts":"",', b'"id":"z",', b'"importance":1,']),
    st.sampled_from([b'"tea"', b'"tea","content":"tea"', b'"say \\"a\\": 1"']),
)
def test_a_line_with_a_right_crc_is_no_exception(members: bytes, more: bytes, content: bytes) -> None:
    extra = b"," + members[1:-1] if members[1:-1].strip() else b""
    line = with_crc(b'{"type":"memory_saved",' + more + ENVELOPE + b',"content":' + content + extra)
    found = has_a_key_twice(line)
    assert (reason_of(line) == "duplicate_key") == found
    if not found:
        assert reason_of(line) is None


@settings(max_examples=examples(25))
@given(_objects)
def test_nor_is_what_stands_in_meta(meta: bytes) -> None:
    said = b'{"type":"message","channel":"c","chat_id":"1","role":"user","content":"x","meta":' + meta + b"}"
    if has_a_key_twice(meta):
        with pytest.raises(BadInput) as refused:
            draft_event(said)
        assert refused.value.code == "duplicate_key"
        return
    event = decode_line(
        draft_event(said).build_line(AT)[:-1], Place("conversations/c_1", SegmentName("2026-02-24"), 0)
    )
    assert isinstance(event, Message)
    assert event.meta == json.loads(meta)


def test_a_line_of_memlog_needs_no_second_look() -> None:
    for event in [
        Message(
            channel="c", chat_id="1", role="user", name="Ann", content='a "quote" : é 喝茶 \n \x01 {"a":1}'
        ),
        Message(
            channel="c", chat_id="1", role="user", content="", meta={"model": "m", "tokens": 3, "ok": True}
        ),
        MemorySaved(content="tea", title="Tea", tags=["a", "b"]),
    ]:
        made = draft_event(event)
        line = made.build_line(AT)[:-1]
        assert is_shortest_spelling(
            line, decode_line(line, Place(made.stream, SegmentName("2026-02-24"), 0))
        ), event


def test_text_that_looks_like_a_key_needs_no_look_at_each_object(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(line: bytes) -> None:
        raise AssertionError(line)

    monkeypatch.setattr("memlog.eventlog.codec.decode._check_each_key", look)
    assert parse_members(rb'{"content":"{\"a\": 1, \"a\": 2}", "meta": {"a": 1}}')["meta"] == {"a": 1}


def test_the_key_that_stands_twice_is_named() -> None:
    with pytest.raises(BadInput, match="duplicate key: 'content' occurs twice in one object") as refused:
        draft_event(b'{"type":"memory_saved","content":"a","content":"b"}')
    assert refused.value.hint == "remove the duplicate member"


def test_a_dict_whose_keys_are_one_in_json_is_refused() -> None:
    with pytest.raises(BadInput, match="'1' occurs twice"):
        draft_event({"type": "memory_saved", "content": "a", "x": {1: "one", "1": "uno"}})


def test_an_integer_beyond_64_bits_is_found_behind_a_right_crc() -> None:
    for case, where in {
        "alone": b"%d",
        "list": b"[1,[%d]]",
        "object": b'{"a":{"b":%d}}',
    }.items():
        for number in [2**63, 2**64, 2**70, -(2**63) - 1]:
            assert (
                reason_of(with_crc(NATIVE + b',"v":1,"content":"tea","x":' + where % number)) == "invalid"
            ), (case, number)


def test_an_integer_of_64_bits_is_none() -> None:
    for number in [INTEGERS[0], INTEGERS[-1], 0]:
        assert reason_of(with_crc(NATIVE + b',"v":1,"content":"tea","x":[%d]' % number)) is None, number


def test_every_number_that_an_event_has_is_bounded() -> None:
    """One beyond 64 bits would stop SQLite, which is asked only after the line was accepted."""
    for kind in TYPES.values():
        info = inspect.type_info(kind)
        assert isinstance(info, inspect.StructType)
        for field in info.fields:
            for each in getattr(field.type, "types", [field.type]):
                if isinstance(each, inspect.IntType) and field.name != "v":
                    assert each.ge is not None, f"{kind.__name__}.{field.name}"
                    assert each.le is not None, f"{kind.__name__}.{field.name}"


def test_a_version_beyond_64_bits_is_of_a_newer_memlog() -> None:
    assert reason_of(with_crc(NATIVE + b',"content":"tea","v":%d' % 2**70)) in ("newer_version", "invalid")


def test_what_an_event_says_is_not_changed_by_the_look() -> None:
    line = with_crc(NATIVE + b',"v":1,"content":"tea","importance":1')
    event = decode_line(line, Place("memory", SegmentName("2026-02-24"), 0))
    assert isinstance(event, MemorySaved)
    assert (event.importance, stream_of(event)) == (1.0, "memory")

"""Redactions name one event or many of a stream, and positions are read as they are written."""

import msgspec
import pytest

from memlog.eventlog.codec.encode import build_redactions, draft_event
from memlog.eventlog.codec.upcast import Place, parse_line_id
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import Redacted
from memlog.eventlog.fields import MAX_TARGETS
from memlog.eventlog.log.streams import SegmentName

TARGETS = [("memory", "m1"), ("conversations/cli_1", 'odd "id" \\ ü'), ("memory", "2026-02-24.jsonl:1042")]


def test_events_of_one_stream_are_named_in_one_line() -> None:
    made = list(build_redactions(TARGETS, "she asked"))
    assert [(each.stream, each.targets) for each in made] == [
        ("memory", ["m1", "2026-02-24.jsonl:1042"]),
        ("conversations/cli_1", ['odd "id" \\ ü']),
    ]
    assert {each.reason for each in made} == {"she asked"}


def test_more_events_than_a_line_may_name_take_several() -> None:
    ids = [f"m{number}" for number in range(2 * MAX_TARGETS + 1)]
    made = list(build_redactions((("memory", each) for each in ids), None))
    assert [len(each.targets) for each in made] == [MAX_TARGETS, MAX_TARGETS, 1]
    assert [target for each in made for target in each.targets] == ids
    for each in made:
        draft_event(each)


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"target_ids": []},
        {"target_id": "m1", "target_ids": ["m2"]},
        {"target_ids": [""]},
        {"target_ids": [f"m{number}" for number in range(MAX_TARGETS + 1)]},
    ],
    ids=["none", "an empty list", "both", "an empty id", "too many"],
)
def test_a_redaction_names_events_in_one_way(members: dict[str, object]) -> None:
    line = {"type": "redacted", "stream": "memory"} | members
    with pytest.raises(BadInput):
        draft_event(msgspec.json.encode(line))


def test_events_of_several_streams_take_several_redactions() -> None:
    event = Redacted(target_ids=["m1", "m2"])
    with pytest.raises(BadInput, match="several streams: memory, facts"):
        draft_event(event, {"m1": "memory", "m2": "facts"}.__getitem__)
    found = draft_event(Redacted(target_ids=["m1", "m2"]), lambda _: "memory")
    assert found.stream == "memory"


def test_ids_are_not_masked() -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    with pytest.raises(BadInput):
        draft_event(Redacted(target_ids=["m1", key], stream="memory"), redact=True)


def test_a_position_is_read_as_it_is_written() -> None:
    for offset in [0, 1, 1042, 10**17]:
        place = Place("memory", SegmentName("2026-02-24", 3), offset)
        assert parse_line_id(place.line_id) == ("2026-02-24.0003.jsonl", offset), offset


def test_another_id_is_no_position() -> None:
    odd = ["m1", "", ":", "a:", "a:007", "a:-1", "a:+1", "a: 1", "a:1 ", "a:٣", "a:1e3", "a:" + "9" * 30]
    assert [name for name in odd if parse_line_id(name) is not None] == []

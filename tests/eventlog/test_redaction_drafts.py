"""Redactions of many events are made as one at a time is, and positions are read as they are written."""

import pytest

from memlog.eventlog.draft import draft, redaction_drafts
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import Redacted
from memlog.eventlog.streams import SegmentName
from memlog.eventlog.upcast import Place, place_of

TARGETS = [("memory", "m1"), ("conversations/cli_1", 'odd "id" \\ ü'), ("memory", "2026-02-24.jsonl:1042")]


@pytest.mark.parametrize("reason", [None, "", 'she "asked" for it'])
def test_a_redaction_among_many_has_the_bytes_of_a_single_one(reason: str | None) -> None:
    made = list(redaction_drafts(TARGETS, reason))
    for one, (stream, target_id) in zip(made, TARGETS, strict=True):
        alone = draft(Redacted(target_id=target_id, stream=stream, reason=reason))
        assert (one.stream, one.tail) == (alone.stream, alone.tail)
        assert one.head.partition(b',"id"')[0] == alone.head.partition(b',"id"')[0]
    assert len({one.id for one in made}) == len(TARGETS)


def test_a_reason_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(BadInput):
        list(redaction_drafts(TARGETS, "\ud800"))


def test_keys_are_masked_in_every_redaction() -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    made = list(redaction_drafts(TARGETS, f"her key {key}", redact=True))
    assert [key.encode() in one.tail for one in made] == [False] * len(TARGETS)


@pytest.mark.parametrize("offset", [0, 1, 1042, 10**17])
def test_a_position_is_read_as_it_is_written(offset: int) -> None:
    place = Place("memory", SegmentName("2026-02-24", 3), offset)
    assert place_of(place.id) == ("2026-02-24.0003.jsonl", offset)


@pytest.mark.parametrize(
    "name", ["m1", "", ":", "a:", "a:007", "a:-1", "a:+1", "a: 1", "a:1 ", "a:٣", "a:1e3", "a:" + "9" * 30]
)
def test_another_id_is_no_position(name: str) -> None:
    assert place_of(name) is None

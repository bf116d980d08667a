"""Daily events as a Python program uses them: `store.daily`."""

import pytest

import memlog
from tests.support.refusals import refused


@pytest.fixture
def store(tmp_path):
    (tmp_path / "store" / "log").mkdir(parents=True)
    with memlog.open(tmp_path / "store", durability="os") as opened:
        yield opened


@pytest.fixture
def daily(store):
    return store.daily


def ids(found):
    return [event.id for event in found]


def test_a_daily_event_has_all_that_was_given(daily):
    ts = "2026-02-25T01:30:00.000Z"
    position = daily.record(
        "Twelve guests",
        date="2026-02-24",
        channel="telegram",
        sender_id="anna",
        raw_tokens=1200,
        event_id="e1",
        ts=ts,
    )
    (found,) = daily.list()
    assert found == memlog.DailyEvent(
        id="e1",
        event_date="2026-02-24",
        channel="telegram",
        sender_id="anna",
        chat=None,
        summary="Twelve guests",
        raw_tokens=1200,
        created_at=ts,
        compressed_at=None,
        memory_ids=[],
        position=found.position,
    )
    assert (found.position.stream, found.position.offset) == (position.stream, position.offset)


def test_the_day_is_the_utc_day_of_its_time_where_none_is_given(daily):
    daily.record("Twelve guests", ts="2026-02-24T23:30:00-02:00")
    assert [event.event_date for event in daily.list()] == ["2026-02-25"]


def test_a_record_that_is_tried_again_counts_once(daily):
    for _ in range(2):
        daily.record("Twelve guests", event_id="e1", ts="2026-02-24T08:00:00Z")
    assert ids(daily.list()) == ["e1"]


def test_a_summary_that_says_nothing_is_refused(daily):
    for summary in ("", " ", "\n\t"):
        with refused(summary, match="the summary must not be blank"):
            daily.record(summary)
        assert daily.list() == [], summary


NO_DAYS = [
    "2026-02-30",
    "2025-02-29",
    "2026-13-01",
    "0000-01-01",
    "2026-2-3",
    "20260224",
    "2026-W09-2",
    "today",
]
NO_DAYS += ["", "2026-02-24T10:15:00Z", " 2026-02-24", "2026-02-24\n", "٢٠٢٦-٠٢-٢٤"]


def test_a_day_that_no_calendar_has_is_refused(daily):
    for day in NO_DAYS:
        with refused(day, match="invalid date|not a calendar day"):
            daily.record("Twelve guests", date=day)
        for asked in ("date", "since", "until"):
            with refused(day, match="invalid date|not a calendar day"):
                daily.list(**{asked: day})
        assert daily.list() == [], day


def test_a_number_of_tokens_below_nothing_is_refused(daily):
    with pytest.raises(memlog.BadInput):
        daily.record("Twelve guests", raw_tokens=-1)


@pytest.fixture
def three_days(daily):
    for number, (day, channel) in enumerate([(26, "x"), (24, "x"), (25, "y"), (24, None)]):
        daily.record(f"event {number}", date=f"2026-02-{day}", channel=channel, event_id=f"e{number}")
    return daily


def test_daily_events_are_listed_by_day_and_then_as_they_were_recorded(three_days):
    assert ids(three_days.list()) == ["e1", "e3", "e2", "e0"]


def test_a_list_holds_what_was_asked_for_alone(three_days):
    for asked, found in [
        ({"date": "2026-02-24"}, ["e1", "e3"]),
        ({"date": "2026-02-24", "channel": "x"}, ["e1"]),
        ({"since": "2026-02-25"}, ["e2", "e0"]),
        ({"until": "2026-02-24"}, ["e1", "e3"]),
        ({"since": "2026-02-25", "until": "2026-02-25"}, ["e2"]),
        ({"channel": "x"}, ["e1", "e0"]),
        ({"date": "2027-01-01"}, []),
    ]:
        assert ids(three_days.list(**asked)) == found, asked


def test_one_day_and_a_stretch_of_days_are_not_asked_for_at_once(daily):
    for bound in ("since", "until"):
        with refused(bound, match="date cannot be combined with"):
            daily.list(date="2026-02-24", **{bound: "2026-02-25"})


def test_what_was_compressed_says_when_and_into_what(store, three_days):
    for name in ("tea", "cake"):
        store.memories.save(name, memory_id=name)
    three_days.compress("e1", "e3", "e1", memory_ids=["tea", "cake", "tea"])
    found = {event.id: event for event in three_days.list()}
    assert found["e1"].memory_ids == found["e3"].memory_ids == ["cake", "tea"]
    assert found["e1"].compressed_at is not None
    assert (found["e2"].compressed_at, found["e2"].memory_ids) == (None, [])
    assert ids(three_days.list(uncompressed=True)) == ["e2", "e0"]


def test_a_daily_event_may_be_compressed_into_nothing_and_again_into_more(store, three_days):
    three_days.compress("e0")
    (first,) = three_days.list(date="2026-02-26")
    store.memories.save("tea", memory_id="tea")
    three_days.compress("e0", memory_ids=["tea"])
    (again,) = three_days.list(date="2026-02-26")
    assert (first.memory_ids, again.memory_ids) == ([], ["tea"])
    assert first.compressed_at == again.compressed_at


def test_a_mark_that_is_tried_again_counts_once(store, three_days):
    for _ in range(2):
        three_days.compress("e0", event_id="c1")
    store.maintenance.project(embed=False)
    assert store.maintenance.verify().duplicates == 1


def test_unknown_daily_events_and_memories_are_named_and_nothing_is_marked(three_days):
    with pytest.raises(memlog.NotFound, match="no daily event 'nowhere', 'never'") as unknown:
        three_days.compress("e0", "nowhere", "never")
    assert unknown.value.code == "daily_event_not_found"
    with pytest.raises(memlog.NotFound, match="no memory 'm'") as unknown:
        three_days.compress("e0", memory_ids=["m"])
    assert unknown.value.code == "memory_not_found"
    assert len(three_days.list(uncompressed=True)) == 4


def test_nothing_to_compress_is_refused(daily):
    with pytest.raises(memlog.BadInput, match="no daily events were given"):
        daily.compress()


def test_a_forgotten_daily_event_is_unknown(store, three_days):
    three_days.compress("e1")
    store.erasure.forget("e1")
    assert ids(three_days.list()) == ["e3", "e2", "e0"]
    with pytest.raises(memlog.NotFound):
        three_days.compress("e1")


def test_a_forgotten_mark_no_longer_counts(store, three_days):
    store.erasure.forget(three_days.compress("e1").id)
    assert len(three_days.list(uncompressed=True)) == 4

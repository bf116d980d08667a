"""How relevant a memory is on a day, and that the page tells it as the code has it."""

import re

from hypothesis import given
from hypothesis import strategies as st

from memlog.eventlog.categories import CATEGORIES
from memlog.eventlog.settings import DEFAULTS
from memlog.query.memories import age_in_days, compute_freshness, compute_relevance
from tests.support.places import ROOT

PAGE = (ROOT / "docs/memory/salience.md").read_text()
GIVEN = {"decisions": 1.0, "summaries": 0.99, "context": 0.9, "other": 1.0}
OF_AN_ASSISTANT = ["identity", "config", "credential", "solution", "event", "conversation", "temp", "debug"]

units = st.floats(0, 1)
ages = st.integers(0, 4_000_000)


# The table


def test_the_page_has_the_table_of_the_code():
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| (\d+) \| ([\d.]+) \| .{20,} \|$", PAGE, re.MULTILINE)
    assert rows == [
        (name, str(each.rate), str(each.half_life), str(each.floor)) for name, each in CATEGORIES.items()
    ]


def test_there_are_the_categories_that_are_promised_with_the_rates_that_are_given():
    assert [*CATEGORIES] == ["decisions", "summaries", "context", *OF_AN_ASSISTANT, "other"]
    assert {name: CATEGORIES[name].rate for name in GIVEN} == GIVEN


def test_each_category_has_a_curve_of_its_own_within_its_limits():
    curves = {(each.rate, each.half_life, each.floor) for each in CATEGORIES.values()}
    assert len(curves) == len(CATEGORIES)
    assert all(
        0 < each.rate <= 1 and each.half_life >= 1 and 0 <= each.floor < 1 for each in CATEGORIES.values()
    )


def first_day_of_pruning(category, rate):
    """When a memory of importance 0.5 has faded to the threshold, with a decay of `rate` a day."""
    return next(
        day
        for day in range(999)
        if compute_relevance(0.5, rate**day, category, day) <= DEFAULTS.archive_threshold
    )


def test_the_page_tells_when_temp_and_debug_can_be_pruned():
    decayed = [first_day_of_pruning(name, CATEGORIES[name].rate) for name in ("temp", "debug")]
    aged = [first_day_of_pruning(name, 1.0) for name in ("temp", "debug")]
    told = re.search(
        r"pruned after (\d+) days, a `debug` one after (\d+); without any decay after (\d+) and\s+(\d+)", PAGE
    )
    assert told is not None
    assert [*map(int, told.groups())] == decayed + aged


# The curve


def test_age_halves_freshness_every_half_life_down_to_the_floor():
    for category, curve in CATEGORIES.items():
        assert compute_freshness(category, 0) == 1.0, category
        for halvings in range(1, 9):
            halved = compute_freshness(category, halvings * curve.half_life)
            assert halved == max(0.5**halvings, curve.floor), category
        assert compute_freshness(category, 4_000_000) == curve.floor, category


@given(units, units, st.sampled_from([*CATEGORIES, "recipes"]), ages)
def test_relevance_is_importance_times_salience_times_freshness_and_never_leaves_0_to_1(
    importance, salience, category, age
):
    found = compute_relevance(importance, salience, category, age)
    assert found == importance * salience * compute_freshness(category, age)
    assert 0 <= found <= 1
    assert compute_relevance(importance, salience, category, age + 1) <= found


def test_a_category_that_is_not_known_ages_as_other():
    assert (
        compute_freshness("recipes", 100)
        == compute_freshness("other", 100)
        != compute_freshness("context", 100)
    )


def test_decision_ages_as_decisions():
    assert (
        compute_freshness("decision", 300)
        == compute_freshness("decisions", 300)
        != compute_freshness("other", 300)
    )


# Age


AGES = [
    ("2026-02-24T00:00:00.000Z", "2026-02-24", 0),
    ("2026-02-24T23:59:59.999Z", "2026-02-25", 1),
    ("2024-02-28T12:00:00.000Z", "2024-03-01", 2),
    ("2026-02-25T00:00:00.000Z", "2026-02-24", 0),
    ("0001-01-01T00:00:00.000Z", "9999-12-31", 3652058),
]


def test_age_is_counted_in_days_of_the_calendar_and_the_future_has_none():
    for since, today, days in AGES:
        assert age_in_days(since, today) == days, since

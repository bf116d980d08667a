"""Parses times in words, such as "last week" or "on Friday", in the languages whose files have `times`.

A prompt may be about the future, so "on Friday" counts only in a sentence about the past. A filter such as
`--since yesterday` is nothing but a time.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta, tzinfo
from functools import cache
from itertools import chain
from typing import Literal, NamedTuple, get_args

import msgspec

from memlog.eventlog import timestamps
from memlog.projector.text import language_files
from memlog.projector.text.language_files import TimeWords, Unit, split_phrases

_LONGEST = 300
"""The most characters of a prompt that may name a time, since long pasted texts are full of dates."""


class NamedTime(msgspec.Struct, frozen=True):
    """A time named in words, from `since` up to but excluding `until`."""

    words: str
    since: str
    until: str


class Days(NamedTuple):
    """A range of days. end: the day after the last. words: the words that name it."""

    first: date
    end: date
    words: str


_NUMERIC_DATES = (
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)",
    r"(?<![.\d])(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
)
"""Dates in any language."""

_OTHER_TIME = re.compile(r"(?i) (?:before|prior to|until|до|перед|ennen) .*\d")
"""Words after a time that change its meaning."""

_Reader = Callable[[re.Match[str], date, bool], "tuple[date, date] | None"]


class _Rule(NamedTuple):
    """A pattern, its reader, and the language its sentence must be in; None for any.

    needs_past: whether it needs a sentence about the past.
    """

    pattern: re.Pattern[str]
    read: _Reader
    language: TimeWords | None
    needs_past: bool

    def days_of_match(self, match: re.Match[str], today: date, *, is_past: bool) -> tuple[date, date] | None:
        """Return the first day of a match and the day after its last; None for an impossible date."""
        try:
            return self.read(match, today, is_past)
        except (ValueError, OverflowError):
            return None


def find_past_time(text: str, zone: tzinfo | None) -> NamedTime | None:
    """Return the past time named in a prompt, or None.

    zone: the time zone of days; None for the system's.
    """
    return _days_to_named_time(find_past_days, text, zone)


def parse_time(text: str, zone: tzinfo | None) -> NamedTime | None:
    """Parse `text` as a time; return None unless the whole text is a time.

    zone: see `find_past_time`.
    """
    return _days_to_named_time(parse_days, text, zone)


def _days_to_named_time(
    find: Callable[[str, date], Days | None], text: str, zone: tzinfo | None
) -> NamedTime | None:
    days = find(text, timestamps.convert_to_zone(timestamps.now(), zone).date())
    if days is None:
        return None
    first, end = (timestamps.parse_day_or_time(day.isoformat(), zone) for day in days[:2])
    return NamedTime(days.words, first, end)


def find_past_days(text: str, today: date) -> Days | None:
    """Return the past days named in a prompt, or None."""
    if len(text) > _LONGEST:
        return None
    found = _choose_most_precise_time(_find_times(text, today))
    return (
        None
        if found is None or found.first > today
        else found._replace(end=min(found.end, _compute_day_after(today)))
    )


def parse_days(text: str, today: date) -> Days | None:
    """Parse `text` as a range of days; return None unless the whole text is one."""
    text = text.strip()
    for written in (text, f"on {text}", f"in {text}", f"в {text}", f"{text}na", f"{text}ssa"):
        for rule in _load_rules():
            match = rule.pattern.fullmatch(written)
            days = match and rule.days_of_match(match, today, is_past=True)
            if days:
                return Days(*days, text)
    return None


def _choose_most_precise_time(found: Iterator[tuple[Days, _Reader]]) -> Days | None:
    """Return the most precise time. A weekday is in the named week, if any; dates are joined into a range."""
    known = [*found]
    if not known:
        return None
    first, read = known[0]
    week = next((each for each, _ in known if (each.end - each.first).days == 7), None)
    if read is _read_weekday and week is not None:
        day = week.first + timedelta(first.first.weekday())
        return Days(day, _compute_day_after(day), f"{first.words}, {week.words}")
    if read is _read_date:
        dates = [each for each, of_date in known if of_date is _read_date]
        words = " - ".join(each.words for each in dates)
        return Days(min(each.first for each in dates), max(each.end for each in dates), words)
    return first


def _find_times(text: str, today: date) -> Iterator[tuple[Days, _Reader]]:
    """Yield the times named in a prompt, most precise first."""
    taken: list[tuple[int, int]] = []
    for rule in _load_rules():
        for match in rule.pattern.finditer(text):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            is_past = _is_about_past(rule.language, text)
            is_clear = {"last", "year"} & {name for name, word in match.groupdict().items() if word}
            if rule.needs_past and not (is_past or is_clear):
                continue
            if rule.language is not None and _is_bound_or_has_one(rule.language, text, match):
                continue
            days = rule.days_of_match(match, today, is_past=is_past)
            if days is not None:
                taken.append(match.span())
                yield Days(*days, match[0]), rule.read


def _is_about_past(language: TimeWords | None, text: str) -> bool:
    if language is None:
        return True
    return (
        _word_pattern(language.past.replace("\n", "")).search(text) is not None
        and _word_pattern(language.future.replace("\n", "")).search(text) is None
    )


def _is_bound_or_has_one(language: TimeWords, text: str, match: re.Match[str]) -> bool:
    """Whether a time is only a bound ("before last week") or has one ("the weekend before 5 June")."""
    before, behind = text[: match.start()], text[match.end() :]
    is_bound = re.search(rf"\b(?:{language.bounds})(?: the)? $", before, re.IGNORECASE)
    return bool(is_bound or _OTHER_TIME.match(behind))


@cache
def _word_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


@cache
def _load_time_words() -> list[TimeWords]:
    languages = language_files.load_languages_with_table("times").values()
    return [language.times for language in languages if language.times is not None]


@cache
def _load_rules() -> tuple[_Rule, ...]:
    rules = [_Rule(_word_pattern(pattern), _read_date, None, needs_past=False) for pattern in _NUMERIC_DATES]
    rules += chain.from_iterable(map(_rules_of, _load_time_words()))
    order: list[_Reader] = [
        _read_date,
        _read_time_ago,
        _read_rolling_period,
        _read_weekday,
        _read_weekend,
        _read_month,
    ]
    return tuple(sorted(rules, key=lambda rule: order.index(rule.read) if rule.read in order else len(order)))


def _rules_of(language: TimeWords) -> Iterator[_Rule]:
    parts = {
        "number": "|".join([r"\d{1,3}", *split_phrases(language.numbers)]),
        "unit": "|".join(split_phrases(language.units)),
        "weekday": "|".join(split_phrases(language.weekdays)),
        "month": "|".join(split_phrases(language.months)),
        "ordinal": "|".join(split_phrases(language.ordinals)),
    }

    def make_rule(pattern: str, read: _Reader, *, needs_past: bool = True) -> _Rule:
        return _Rule(_word_pattern(pattern % parts), read, language, needs_past)

    for pattern in language.date.splitlines():
        yield make_rule(pattern, _read_date)
    yield make_rule(language.ago, _read_time_ago, needs_past=False)
    yield make_rule(language.rolling, _read_rolling_period, needs_past=False)
    yield make_rule(language.weekday, _read_weekday)
    yield make_rule(language.weekend, _read_weekend)
    yield make_rule(language.month, _read_month)
    yield make_rule(language.year, _read_year)
    for unit, patterns in language.calendar.items():
        for back, pattern in zip(range(len(patterns) - 1, -1, -1), patterns, strict=True):
            yield make_rule(pattern, _make_calendar_reader(unit, back), needs_past=back == 0)


def _compute_day_after(day: date) -> date:
    return day + timedelta(1)


def _make_calendar_reader(unit: Unit, back: int) -> _Reader:
    return lambda _, today, __: _first_and_next_day_of_unit(unit, back, today)


def _first_and_next_day_of_unit(unit: Unit, back: int, today: date) -> tuple[date, date]:
    """Return the first day, and the day after the last, of the unit `back` units before the current one."""
    if unit == "day":
        return today - timedelta(back), today - timedelta(back - 1)
    if unit == "week":
        monday = today - timedelta(today.weekday() + 7 * back)
        return monday, monday + timedelta(7)
    if unit == "year":
        return date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1)
    months = today.year * 12 + today.month - 1 - back
    return _month_start(months), _month_start(months + 1)


def _month_start(months: int) -> date:
    return date(months // 12, months % 12 + 1, 1)


def _parse_unit_and_number(match: re.Match[str]) -> tuple[Unit, int]:
    names = (zip(split_phrases(each.units), get_args(Unit), strict=True) for each in _load_time_words())
    units = (unit for name, unit in chain.from_iterable(names) if re.match(name, match["unit"], re.I))
    number = match["number"] or "1"
    return next(units), int(number) if number.isdigit() else _find_place_in_vocabulary("numbers", number) + 1


def _find_place_in_vocabulary(field: Literal["numbers", "weekdays", "months", "ordinals"], word: str) -> int:
    every = (enumerate(split_phrases(getattr(language, field))) for language in _load_time_words())
    return next(place for names in every for place, name in names if re.fullmatch(name, word, re.IGNORECASE))


def _read_time_ago(match: re.Match[str], today: date, _: bool) -> tuple[date, date] | None:
    return _first_and_next_day_of_unit(*_parse_unit_and_number(match), today)


def _read_rolling_period(match: re.Match[str], today: date, _: bool) -> tuple[date, date] | None:
    unit, number = _parse_unit_and_number(match)
    days: Mapping[Unit, int] = {"day": 1, "week": 7, "month": 30, "year": 365}
    return today - timedelta(days[unit] * number), _compute_day_after(today)


def _read_weekday(match: re.Match[str], today: date, _: bool) -> tuple[date, date] | None:
    back = (today.weekday() - _find_place_in_vocabulary("weekdays", match["weekday"])) % 7 or 7
    return _first_and_next_day_of_unit("day", back, today)


def _read_weekend(_: re.Match[str], today: date, __: bool) -> tuple[date, date] | None:
    monday, _end = _first_and_next_day_of_unit("week", 0, today)
    return monday - timedelta(2), monday


def _read_date(match: re.Match[str], today: date, is_past: bool) -> tuple[date, date] | None:
    """Read a date. Without a year, in a sentence about the past, take the last such date up to today."""
    named = match["day"]
    day = int(named) if named.isdigit() else _find_place_in_vocabulary("ordinals", named) + 1
    month = (
        int(match["month"])
        if match["month"].isdigit()
        else _find_place_in_vocabulary("months", match["month"]) + 1
    )
    year = int(match["year"] or today.year)
    found = date(year, month, day)
    if found > today and is_past and not match["year"]:
        found = date(year - 1, month, day)
    return found, _compute_day_after(found)


def _read_month(match: re.Match[str], today: date, _: bool) -> tuple[date, date] | None:
    month = _find_place_in_vocabulary("months", match["month"])
    year = int(match["year"] or today.year - (month >= today.month))
    return _month_start(year * 12 + month), _month_start(year * 12 + month + 1)


def _read_year(match: re.Match[str], _: date, __: bool) -> tuple[date, date] | None:
    return date(int(match["year"]), 1, 1), date(int(match["year"]) + 1, 1, 1)

"""Parses times in words, such as "last week" or "on Friday", in English, Russian and Finnish.

A prompt may be about the future, so "on Friday" counts only in a sentence about the past. A filter such as
`--since yesterday` is nothing but a time.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta, tzinfo
from functools import cache
from typing import Literal, NamedTuple

import msgspec

from memlog.eventlog import timestamps

Unit = Literal["day", "week", "month", "year"]

_LONGEST = 300
"""The most characters of a prompt that may name a time: a pasted text is full of dates."""


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


class _Grammar(NamedTuple):
    """A language's words and patterns for times. Patterns have the named groups that their readers use.

    past, future: words that mark a sentence as being about the past, or the future.
    bounds: words that make the time after them a mere bound.
    fixed: by pattern, the unit, how many units ago, and whether it needs a sentence about the past.
    numbers: the words for one, two, … units. units: by the beginning of the word for the unit.
    weekdays, months: from Monday, and from January.
    """

    past: str
    future: str
    bounds: str
    fixed: Mapping[str, tuple[Unit, int, bool]]
    numbers: tuple[str, ...]
    units: Mapping[str, Unit]
    ago: str
    rolling: str
    weekdays: tuple[str, ...]
    weekday: str
    weekend: str
    months: tuple[str, ...]
    date: tuple[str, ...]
    month: str
    year: str


_YEAR = r"(?:,? ?(?P<year>\d{{4}}))?"
_PREPOSITION = "(?P<last>of |from )?"
_DAY = r"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
_MONTHS = (
    *("jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?", "aug(?:ust)?"),
    *("sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?"),
)

_ENGLISH = _Grammar(
    past=r"did|didn['’]t|was|wasn['’]t|were|had|last|ago|happened"
    # Not in "the reduced rate".
    r"|(?!need|indeed|speed|exceed|proceed)(?<!the )(?<!['’]s )\w{3,}ed"
    r"|said|told|went|bought|sold|got|made|took|left|came|saw|met|wrote|sent|paid|found|thought|spent|broke"
    r"|chose|ran|ate|gave|began|lost|held|kept|built|felt|heard|knew|drove|won|slept|taught|done|been",
    future=r"will|\w+['’]ll|shall|going to|tomorrow|next",
    bounds=r"before|until|till|by|prior to|after|since",
    fixed={
        "(?:the )?day before yesterday": ("day", 2, False),
        "yesterday|last night": ("day", 1, False),
        "(?:earlier )?today|this (?:morning|afternoon)": ("day", 0, True),
        "(?:the )?week before last": ("week", 2, False),
        "(?:last|previous) week(?! of)": ("week", 1, False),
        "this week": ("week", 0, True),
        "(?:last|previous) month(?! of)": ("month", 1, False),
        "this month": ("month", 0, True),
        "(?:last|previous) year(?! of)": ("year", 1, False),
        "this year": ("year", 0, True),
    },
    numbers=("an?|one", "two|a couple of", *"three four five six seven eight nine ten".split()),
    units={"day": "day", "week": "week", "month": "month", "year": "year"},
    ago=r"(?P<number>{number}) (?P<unit>{unit})s? ago",
    rolling=r"(?:in|over|during|for) the (?:last|past) (?:(?P<number>{number}) )?(?P<unit>{unit})s?(?! of)",
    weekdays=tuple("monday tuesday wednesday thursday friday saturday sunday".split()),
    weekday=r"(?:(?P<last>last|this past)|on|this) (?P<weekday>{weekday})",
    weekend=r"(?:(?P<last>last|this past)|(?:at|on|over) the|this) weekend",
    months=_MONTHS,
    date=(
        rf"{_PREPOSITION}{_DAY}(?: of)? (?P<month>{{month}}){_YEAR}",
        rf"{_PREPOSITION}(?P<month>{{month}}) {_DAY}(?![\d:]){_YEAR}",
    ),
    month=r"(?:(?P<last>last)|in|during)(?: early| late| mid)? (?P<month>{month})(?:,? ?(?P<year>\d{{4}}))?",
    year=r"(?:in|during) (?P<year>20\d\d)",
)

_RUSSIAN = _Grammar(
    past=r"(?!если|недели|дел[ао]|стол|школ|зал|угол|цел[иь]|числ[ао]|пол|мол)\w{2,}л[аио]?(?:с[ья])?|шел|шёл"
    r"|\w*(?:шёл|шел|шла|шли|мог|нёс|вёз|вез)|ел[аи]?|прошл\w+|назад",
    future=r"буд(?:ет|у|ем|ут|ешь|ете)|завтра|следующ\w+|надо|нужно|давай\w*",
    bounds=r"до|перед|к|после|раньше|со?",
    fixed={
        "позавчера": ("day", 2, False),
        "вчера|вчерашн\\w+": ("day", 1, False),
        "сегодня": ("day", 0, True),
        "(?:на )?позапрошлой недел[еи]": ("week", 2, False),
        "(?:на )?прошлой недел[еи]|прошлую неделю|прошлая неделя": ("week", 1, False),
        "на этой неделе": ("week", 0, True),
        "(?:в )?прошл(?:ом|ого|ый) месяц[еа]?": ("month", 1, False),
        "в этом месяце": ("month", 0, True),
        "(?:в )?прошл(?:ом|ого|ый) год[уа]?": ("year", 1, False),
        "в этом году": ("year", 0, True),
    },
    numbers=(
        *("один|одну|одного", "два|две|двух|пару", "три|трёх|трех", "четыре|четырёх", "пять|пяти"),
        *("шесть|шести", "семь|семи", "восемь|восьми", "девять|девяти", "десять|десяти"),
    ),
    units={"де?н": "day", "недел": "week", "месяц": "month", "год|лет": "year"},
    ago=r"(?:(?P<number>{number}) )?(?P<unit>{unit})\w* назад",
    rolling=r"за последн\w+ (?:(?P<number>{number}) )?(?P<unit>{unit})\w*",
    weekdays=("понедельник", "вторник", "сред[уа]", "четверг", "пятниц[уа]", "суббот[уа]", "воскресенье"),
    weekday=r"во? (?:(?P<last>прошл\w+)|эт\w+)? ?(?P<weekday>{weekday})",
    weekend=r"(?:на|в) (?:(?P<last>прошлы[ех])|эти)? ?выходны[ех]",
    months=(
        *("январ[ьяе]", "феврал[ьяе]", "март[ае]?", "апрел[ьяе]", "ма[йяе]", "июн[ьяе]", "июл[ьяе]"),
        *("август[ае]?", "сентябр[ьяе]", "октябр[ьяе]", "ноябр[ьяе]", "декабр[ьяе]"),
    ),
    date=(
        r"(?P<last>от |за )?(?P<day>\d{{1,2}}|{ordinal})(?:-?го)? (?P<month>{month})(?: (?P<year>\d{{4}}))?",
    ),
    month=r"в (?:начале |конце |середине )?(?P<last>прошл\w+ )?(?P<month>{month})(?: (?P<year>\d{{4}}))?",
    year=r"в (?P<year>20\d\d)(?:-м)? году",
)

_ONES = "перв втор треть четв[её]рт пят шест седьм восьм девят".split()
_ORDINALS = (
    *(f"{stem}ого|{stem}его" for stem in _ONES),
    *(f"{stem}ого" for stem in "десят одиннадцат двенадцат тринадцат четырнадцат пятнадцат".split()),
    *(f"{stem}ого" for stem in "шестнадцат семнадцат восемнадцат девятнадцат двадцат".split()),
    *(f"двадцать (?:{stem}ого|{stem}его)" for stem in _ONES),
    *("тридцатого", "тридцать первого"),
)
"""The Russian words for the days of a month."""

_FINNISH = _Grammar(
    past=r"oli\w{0,3}|teki\w{0,3}|tei(?:n|t|mme|tte)|kävi\w{0,3}|söi\w{0,3}|näki\w{0,3}|lähti\w{0,3}"
    r"|\w{2,}(?:tiin|nut|nyt|neet|imme|itte|ivat|ivät)|viime|tulin|menin|panin|kuulin|hain|sain"
    # Not names: the genitive of Pentti ends like them. So do the other words.
    r"|(?!(?:uusi|viisi|kuusi|yksi|kaksi|vuosi|tosi|koti|posti|kortti|taksi|heti|asti|noin|näin|voit|voi)\b)"
    r"(?-i:[a-zäö])\w+(?:[stoöuyäevdj]in|[ost]it|oi|ti|si)",
    future=r"huomenna|ensi|\w{3,}(?:[dt]aan|[dt]ään|llaan|llään)|tulee|pitää|pitäisi|aion|voi(?:t?ko|tte|siko)?"
    r"|on(?:ko)?|muistuta|varaa|\w{3,}(?:aa|ää|ee|oo|uu|yy)k[oö]",
    bounds=r"ennen|jälkeen|asti|mennessä",
    fixed={
        "toissa ?päivänä": ("day", 2, False),
        "eilen|eilis\\w+|viime yönä": ("day", 1, False),
        "tänään|tänä aamuna": ("day", 0, True),
        "toissa viikolla": ("week", 2, False),
        "viime viiko(?:lla|n|sta)|viime viikko": ("week", 1, False),
        "tällä viikolla": ("week", 0, True),
        "viime kuu(?:ssa|n)?": ("month", 1, False),
        "tässä kuussa": ("month", 0, True),
        "viime vuo(?:nna|den)|viime vuosi": ("year", 1, False),
        "tänä vuonna": ("year", 0, True),
    },
    numbers=(
        *("yksi|yhden", "kaksi|kahden|pari", "kolme|kolmen", "neljä|neljän", "viisi|viiden", "kuusi|kuuden"),
        *("seitsemän", "kahdeksan", "yhdeksän", "kymmenen"),
    ),
    units={"päiv": "day", "viik": "week", "kuuka|kuu(?=n)": "month", "vuo": "year"},
    ago=r"(?:(?P<number>{number}) )?(?P<unit>{unit})\w* sitten",
    rolling=r"viime(?:isen|isten|isimmän)? (?:(?P<number>{number}) )?(?P<unit>{unit})\w* aikana",
    weekdays=tuple("maanantai tiistai keskiviikko torstai perjantai lauantai sunnuntai".split()),
    weekday=r"(?P<last>viime )?(?P<weekday>{weekday})(?:na|-iltana|-aamuna)",
    weekend=r"(?P<last>viime )?viikonloppuna",
    months=tuple("tammi helmi maalis huhti touko kesä heinä elo syys loka marras joulu".split()),
    date=(r"(?P<day>\d{{1,2}})\.? (?P<month>{month})kuu(?:ta|n|na)?(?: (?P<year>\d{{4}}))?",),
    month=r"(?P<last>viime )?(?P<month>{month})kuussa(?: (?P<year>\d{{4}}))?",
    year=r"vuonna (?P<year>20\d\d)",
)

_LANGUAGES = (_ENGLISH, _RUSSIAN, _FINNISH)
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
    language: _Grammar | None
    needs_past: bool

    def days(self, match: re.Match[str], today: date, *, is_past: bool) -> tuple[date, date] | None:
        """Return the first day of a match and the day after its last; None for an impossible date."""
        try:
            return self.read(match, today, is_past)
        except (ValueError, OverflowError):
            return None


def find_past_time(text: str, zone: tzinfo | None) -> NamedTime | None:
    """Return the past time named in a prompt, or None.

    zone: the time zone of days; None for the system's.
    """
    return _to_named_time(find_past_days(text, _today(zone)), zone)


def parse_time(text: str, zone: tzinfo | None) -> NamedTime | None:
    """Parse `text` as a time; None unless all of it is one.

    zone: see `find_past_time`.
    """
    return _to_named_time(parse_days(text, _today(zone)), zone)


def _today(zone: tzinfo | None) -> date:
    return timestamps.in_zone(timestamps.now(), zone).date()


def _to_named_time(days: Days | None, zone: tzinfo | None) -> NamedTime | None:
    if days is None:
        return None
    first, end = (timestamps.parse_day_or_time(day.isoformat(), zone) for day in days[:2])
    return NamedTime(days.words, first, end)


def find_past_days(text: str, today: date) -> Days | None:
    """Return the past days named in a prompt, or None."""
    if len(text) > _LONGEST:
        return None
    found = _most_precise(_find_times(text, today))
    return (
        None
        if found is None or found.first > today
        else found._replace(end=min(found.end, _day_after(today)))
    )


def parse_days(text: str, today: date) -> Days | None:
    """Parse `text` as a range of days; None unless all of it is one."""
    text = text.strip()
    for written in (text, f"on {text}", f"in {text}", f"в {text}", f"{text}na", f"{text}ssa"):
        for rule in _rules():
            match = rule.pattern.fullmatch(written)
            days = match and rule.days(match, today, is_past=True)
            if days:
                return Days(*days, text)
    return None


def _most_precise(found: Iterator[tuple[Days, _Reader]]) -> Days | None:
    """Return the most precise time, taking a weekday from a week also named, and joining dates."""
    known = [*found]
    if not known:
        return None
    first, read = known[0]
    week = next((each for each, _ in known if (each.end - each.first).days == 7), None)
    if read is _read_weekday and week is not None:
        day = week.first + timedelta(first.first.weekday())
        return Days(day, _day_after(day), f"{first.words}, {week.words}")
    if read is _read_date:
        dates = [each for each, of_date in known if of_date is _read_date]
        words = " - ".join(each.words for each in dates)
        return Days(min(each.first for each in dates), max(each.end for each in dates), words)
    return first


def _find_times(text: str, today: date) -> Iterator[tuple[Days, _Reader]]:
    """Yield the times named in a prompt, most precise first."""
    taken: list[tuple[int, int]] = []
    for rule in _rules():
        for match in rule.pattern.finditer(text):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            is_past = _is_about_past(rule.language, text)
            is_clear = {"last", "year"} & {name for name, word in match.groupdict().items() if word}
            if rule.needs_past and not (is_past or is_clear):
                continue
            if rule.language is not None and _is_bound(rule.language, text, match):
                continue
            days = rule.days(match, today, is_past=is_past)
            if days is not None:
                taken.append(match.span())
                yield Days(*days, match[0]), rule.read


def _is_about_past(language: _Grammar | None, text: str) -> bool:
    if language is None:
        return True
    return (
        _word_pattern(language.past).search(text) is not None
        and _word_pattern(language.future).search(text) is None
    )


def _is_bound(language: _Grammar, text: str, match: re.Match[str]) -> bool:
    """Whether a time is only a bound ("before last week") or has one ("the weekend before 5 June")."""
    before, behind = text[: match.start()], text[match.end() :]
    is_bound = re.search(rf"\b(?:{language.bounds})(?: the)? $", before, re.IGNORECASE)
    return bool(is_bound or _OTHER_TIME.match(behind))


@cache
def _word_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


@cache
def _rules() -> tuple[_Rule, ...]:
    rules = [_Rule(_word_pattern(pattern), _read_date, None, needs_past=False) for pattern in _NUMERIC_DATES]
    of_languages = [[*_rules_of(language)] for language in _LANGUAGES]
    rules += [rule for each in of_languages for rule in each]
    order: list[_Reader] = [_read_date, _read_ago, _read_rolling, _read_weekday, _read_weekend, _read_month]
    return tuple(sorted(rules, key=lambda rule: order.index(rule.read) if rule.read in order else len(order)))


def _rules_of(language: _Grammar) -> Iterator[_Rule]:
    parts = {
        "number": "|".join([r"\d{1,3}", *language.numbers]),
        "unit": "|".join(language.units),
        "weekday": "|".join(language.weekdays),
        "month": "|".join(language.months),
        "ordinal": "|".join(_ORDINALS),
    }

    def rule(pattern: str, read: _Reader, *, needs_past: bool) -> _Rule:
        return _Rule(_word_pattern(pattern.format(**parts)), read, language, needs_past)

    for pattern in language.date:
        yield rule(pattern, _read_date, needs_past=True)
    yield rule(language.ago, _read_ago, needs_past=False)
    yield rule(language.rolling, _read_rolling, needs_past=False)
    yield rule(language.weekday, _read_weekday, needs_past=True)
    yield rule(language.weekend, _read_weekend, needs_past=True)
    yield rule(language.month, _read_month, needs_past=True)
    yield rule(language.year.replace("{", "{{").replace("}", "}}"), _read_year, needs_past=True)
    for pattern, (unit, back, needs_past) in language.fixed.items():
        yield _Rule(_word_pattern(pattern), _fixed_reader(unit, back), language, needs_past)


def _day_after(day: date) -> date:
    return day + timedelta(1)


def _fixed_reader(unit: Unit, back: int) -> _Reader:
    return lambda _, today, __: _calendar_unit(unit, back, today)


def _calendar_unit(unit: Unit, back: int, today: date) -> tuple[date, date]:
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


def _unit_and_number(match: re.Match[str]) -> tuple[Unit, int]:
    units = (
        unit
        for each in _LANGUAGES
        for name, unit in each.units.items()
        if re.match(name, match["unit"], re.I)
    )
    number = match["number"] or "1"
    return next(units), int(number) if number.isdigit() else _index_of_word("numbers", number) + 1


def _index_of_word(field: Literal["numbers", "weekdays", "months"], word: str) -> int:
    every = (enumerate(getattr(language, field)) for language in _LANGUAGES)
    return next(place for names in every for place, name in names if re.fullmatch(name, word, re.IGNORECASE))


def _read_ago(match: re.Match[str], today: date, _: bool) -> tuple[date, date] | None:
    return _calendar_unit(*_unit_and_number(match), today)


def _read_rolling(match: re.Match[str], today: date, _: bool) -> tuple[date, date] | None:
    unit, number = _unit_and_number(match)
    days: Mapping[Unit, int] = {"day": 1, "week": 7, "month": 30, "year": 365}
    return today - timedelta(days[unit] * number), _day_after(today)


def _read_weekday(match: re.Match[str], today: date, _: bool) -> tuple[date, date] | None:
    back = (today.weekday() - _index_of_word("weekdays", match["weekday"])) % 7 or 7
    return _calendar_unit("day", back, today)


def _read_weekend(_: re.Match[str], today: date, __: bool) -> tuple[date, date] | None:
    monday, _end = _calendar_unit("week", 0, today)
    return monday - timedelta(2), monday


def _read_date(match: re.Match[str], today: date, is_past: bool) -> tuple[date, date] | None:
    """Read a date. Without a year, in a sentence about the past, take the last such date up to today."""
    named = match["day"]
    ordinals = (
        place for place, name in enumerate(_ORDINALS, start=1) if re.fullmatch(name, named, re.IGNORECASE)
    )
    day = int(named) if named.isdigit() else next(ordinals)
    month = int(match["month"]) if match["month"].isdigit() else _index_of_word("months", match["month"]) + 1
    year = int(match["year"] or today.year)
    found = date(year, month, day)
    if found > today and is_past and not match["year"]:
        found = date(year - 1, month, day)
    return found, _day_after(found)


def _read_month(match: re.Match[str], today: date, _: bool) -> tuple[date, date] | None:
    month = _index_of_word("months", match["month"])
    year = int(match["year"] or today.year - (month >= today.month))
    return _month_start(year * 12 + month), _month_start(year * 12 + month + 1)


def _read_year(match: re.Match[str], _: date, __: bool) -> tuple[date, date] | None:
    return date(int(match["year"]), 1, 1), date(int(match["year"]) + 1, 1, 1)

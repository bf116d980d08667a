"""Extracts the ranked list of its author's favourites from a text.

`My favourite colours are 1) Blue, 2) Green, 3) Black` has one. Both the topic and the list must be certain;
docs/memory/facts.md describes when they are.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.projector.text.language_files import ListWords, phrases
from memlog.query.facts.ordinals import number_of, ordinal_words
from memlog.query.facts.topic_keys import built_in, fact_words, key_of, without_owner

LONGEST = 100_000
"""Characters; longer texts are not read."""

_LONGEST_VALUE = 100


class RankedList(msgspec.Struct, frozen=True):
    """A ranked list, or why there is none.

    topic_key: the key of the topic; None without a list. values: from rank 1 on.
    why: why no list is certain; None with a list.
    """

    topic_key: str | None
    values: Sequence[str]
    why: str | None


class _Doubt(Exception):
    """Why no list is certain."""


# Citation marks and the signs of Markdown. `re` compiles these when a text is first read.
_CLEANED = (
    (r"[ \t\u00a0]+", " "),
    (r"(?s)(`{3,}|~{3,}).*?(?:\1|\Z)", " "),
    (r"【[^】\n]{0,100}】|\[\^?\d{1,4}(?: ?[,;–-] ?\d{1,4}){0,20}\](?!\()|[⁰¹²³⁴-⁹]+", ""),
    (r"!?\[([^\]\n]{0,200})\]\([^()\n]{0,500}\)", r"\1"),
    (r"(?m)^ ?#{1,6} | #+ ?$", ""),
    (r"\*\*|__|`|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)|~~", ""),
    (r"(?m)(?<! ) ++$", ""),
)

_WORD = r"[^\W\d_][\w'’-]*"
_TOPIC = rf"(?P<topic>{_WORD}(?: {_WORD}){{0,2}}?)"
_BEGINS = r"(?:^|(?<=[.!?] ))"
_LISTS = r"(?:[:–—-](?= |$)|$)"

_NUMBERED = r"(?:(?<=[\s,;])|^)(?:\(?#?(\d{1,3})(?:\)|[.:](?=\s))) *"
_NUMBERED_LINE = r"(?m)^[ \t]*\(?(\d{1,3})[.)][ \t]+"
_SENTENCE_ENDS = r"(?P<before>\w{0,3})[.!?…]{1,5}(?P<after>\s+|$)"
_ASIDE = r",\s|\s[-–—]\s|\((?:(?![()])[\W\d_])*+[^\W\d_]"
_CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"
_SHORTEST_END = 3
_QUOTES = ' "“”«»'
_QUOTED_AFTER = (":", '"', "“", "«", "„", "'", ">")


def ranked_list(text: str) -> RankedList:
    """Extracts the ranked list of its author's favourites from `text`."""
    try:
        return _ranked_list(text)
    except _Doubt as doubt:
        return RankedList(None, [], str(doubt))


def cleaned(text: str) -> str:
    """`text` without citation marks, fenced code, and the signs of Markdown."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for pattern, instead in _CLEANED:
        text = re.sub(pattern, instead, text)
    return text


def _ranked_list(text: str) -> RankedList:
    if len(text) > LONGEST:
        raise _Doubt(f"the text has more than {LONGEST} characters")
    said = cleaned(text)
    statements = list(_statements(said))
    if len(statements) != 1:
        raise _Doubt("several lists" if statements else "no topic that is certainly the author's own")
    ((language, match),) = statements
    if said[: match.start()].rstrip().endswith(_QUOTED_AFTER):
        raise _Doubt("it may be somebody else's words")
    key = _key(language, match)
    values, end = _values(said[match.end() :], language, match["topic"])
    count = match.groupdict().get("count")
    if count and number_of(count.casefold(), language) != len(values):
        raise _Doubt(f"{len(values)} values where {count} are told")
    others = said[: match.end()] + " " + said[match.end() + end :]
    if doubt := _doubts().search(others):
        raise _Doubt(f"{doubt[0]!r} is beside the list")
    return RankedList(key, values, None)


def _statements(said: str) -> Iterator[tuple[str, re.Match[str]]]:
    for language in _lists():
        for pattern in _said_patterns(language):
            for match in pattern.finditer(said):
                yield language, match


def _key(language: str, match: re.Match[str]) -> str:
    words = match["topic"].casefold().split()
    if odd := next((word for word in words if word in _no_topic()), None):
        raise _Doubt(f"{odd!r} is in no topic's name")
    words[-1] = without_owner(words[-1], language)
    if key := built_in(words, language):
        return key
    lists = _lists()[language]
    if not set(lists.inflected.split()).isdisjoint(match[0].casefold().split()):
        raise _Doubt("the topic's name is inflected")
    try:
        return key_of(lists.name % {"topic": " ".join(words)})
    except BadInput as error:
        raise _Doubt(error.message) from error


# The list


def _values(body: str, language: str, topic: str) -> tuple[list[str], int]:
    """The values of the list at the beginning of `body`, and the place where it ends."""
    on_lines = body.startswith("\n")
    start = len(body) - len(body.lstrip())
    region = body[start:] if on_lines else body[start:].split("\n\n")[0]
    marks = _marks(region, language, topic, on_lines=on_lines)
    _check_ranks([rank for rank, _ in marks])
    items = [region[match.end() : after.start()] for (_, match), (_, after) in pairwise(marks)]
    last = region[marks[-1][1].end() :]
    end = (_line_ends if on_lines else _sentence_ends)(last)
    values = [_value(item, on_line=on_lines) for item in (*items, last[:end])]
    if len({value.casefold() for value in values}) < len(values):
        raise _Doubt("a value is listed twice")
    return values, start + marks[-1][1].end() + end


def _marks(region: str, language: str, topic: str, *, on_lines: bool) -> list[tuple[int, re.Match[str]]]:
    """The ranks in a list, which begins with one, each with its place."""
    numbered = _NUMBERED_LINE if on_lines else _NUMBERED
    if re.match(numbered, region):
        return [(int(match[1]), match) for match in re.finditer(numbered, region)]
    ordinal = _ordinal_pattern(language, topic)
    if not on_lines and ordinal.match(region):
        numbers = ordinal_words(language)
        return [(numbers[match[1].casefold()], match) for match in ordinal.finditer(region)]
    raise _Doubt("no list with ranks follows the topic")


def _check_ranks(ranks: Sequence[int]) -> None:
    if len(set(ranks)) < len(ranks):
        raise _Doubt("two values have one rank")
    if [*ranks] != [*range(1, len(ranks) + 1)]:
        raise _Doubt(f"the ranks are {', '.join(map(str, ranks))}")
    if len(ranks) == 1:
        raise _Doubt("a list of one")


def _value(item: str, *, on_line: bool) -> str:
    """A value of the list, without what joins it to the next one.

    on_line: whether it has a line of its own; then the whole line belongs to it.
    """
    item = item.strip()
    if "\n" in item or len(item) > _LONGEST_VALUE:
        raise _Doubt(f"a value is long: {item[:30]!r}…")
    value = _without_joints(item).strip(_QUOTES)
    if not value:
        raise _Doubt("a rank has no value")
    if re.search(_CONTROL, value):
        raise _Doubt("a value has a control character")
    if "?" in value or _open().search(value) or value.count("(") != value.count(")"):
        raise _Doubt(f"a value is left open: {value!r}")
    has_more = any(len(match["before"]) == _SHORTEST_END for match in re.finditer(_SENTENCE_ENDS, value[:-1]))
    if has_more or (not on_line and re.search(_ASIDE, value)):
        raise _Doubt(f"a value has a remark: {value!r}")
    return value


def _without_joints(item: str) -> str:
    """`item` without the commas and words at its end that join it to the next one."""
    end = len(item)
    longest = max(map(len, _words("joints"))) + 1
    while joint := _last_joint().search(item, max(0, end - longest), end):
        end = joint.start()
    return item[:end]


def _line_ends(last: str) -> int:
    """The end of the last line of a list. A line that follows at once may belong to it."""
    line, newline, following = last.partition("\n")
    if newline and following and (following[0].isspace() != following.startswith("\n")):
        raise _Doubt("where the list ends is not certain")
    if following[:1].islower():
        raise _Doubt("where the list ends is not certain")
    return len(line)


def _sentence_ends(last: str) -> int:
    """The end of the last value's sentence."""
    for match in re.finditer(_SENTENCE_ENDS, last):
        following = last[match.end() :]
        if not following.strip():
            return match.start("after")
        if len(match["before"]) < _SHORTEST_END or not following[0].isupper():
            raise _Doubt("where the list ends is not certain")
        return match.start("after")
    return len(last)


# The patterns


@cache
def _lists() -> Mapping[str, ListWords]:
    return {name: said.lists for name, said in fact_words().items() if said.lists}


def _words(table: str) -> list[str]:
    return " ".join(getattr(said, table) for said in _lists().values()).split()


@cache
def _no_topic() -> frozenset[str]:
    return frozenset(_words("no_topic"))


@cache
def _doubts() -> re.Pattern[str]:
    return re.compile(_any_of("doubts"), re.IGNORECASE)


@cache
def _open() -> re.Pattern[str]:
    return re.compile(_any_of("open"), re.IGNORECASE)


def _any_of(table: str) -> str:
    """A regular expression for the phrases of all languages."""
    said = [phrase for lists in _lists().values() for phrase in phrases(getattr(lists, table))]
    endings = [re.escape(phrase[1:]) for phrase in said if phrase.startswith("*")]
    whole = [re.escape(phrase) for phrase in said if not phrase.startswith("*")]
    return rf"(?:{'|'.join(endings)})\b|\b(?:{'|'.join(whole)})\b"


@cache
def _last_joint() -> re.Pattern[str]:
    return re.compile(rf"(?:[,;.]|(?:^|\s)(?:{'|'.join(_words('joints'))}))\Z", re.IGNORECASE)


@cache
def _said_patterns(language: str) -> tuple[re.Pattern[str], ...]:
    said = _lists()[language]
    numbers = fact_words()[language].numbers.cardinals.split()[2:]
    words = {
        "begins": _BEGINS,
        "topic": _TOPIC,
        "lists": _LISTS,
        "favorite": "|".join(said.favorite.split()),
        "number": "|".join(forms.partition("/")[0] for forms in numbers),
    }
    return tuple(
        re.compile(table.replace("\n", "") % words, re.IGNORECASE | re.MULTILINE)
        for table in (said.statement, said.ranked_statement)
    )


@lru_cache(maxsize=64)  # a topic is anybody's text
def _ordinal_pattern(language: str, topic: str) -> re.Pattern[str]:
    words = "|".join(sorted(map(re.escape, ordinal_words(language)), key=len, reverse=True))
    table = _lists()[language].ordinal.replace("\n", "")
    pattern = table % {"ordinal": words, "topic": re.escape(topic)}
    return re.compile(rf"(?<!\w){pattern}", re.IGNORECASE)

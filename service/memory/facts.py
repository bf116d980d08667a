"""The operations of `store.facts`, and the search for a ranked list in a text."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from memlog.eventlog.errors import BadInput, NotFound
from memlog.eventlog.events import Event, FactRemoved, FactStored
from memlog.eventlog.fields import FactKind
from memlog.eventlog.positions import AppendWarning, Position, collect_warnings
from memlog.eventlog.secrets.detection import mask_event
from memlog.eventlog.settings import MOST
from memlog.projector.text.language_files import ListWords, split_phrases
from memlog.query.facts.answers import (
    Fact,
    FactAnswer,
    Topic,
    all_topics,
    answer_by_key,
    answer_question,
    describe_place,
    missing_rank_message,
    topic_with_key,
    topics_of_chat,
)
from memlog.query.facts.question_parser import load_ordinal_words, parse_number
from memlog.query.facts.topic_keys import (
    find_built_in_topic_key,
    load_fact_words,
    make_topic_key,
    strip_possessive,
)
from memlog.service.engine.operation import OperationGroup, operation
from memlog.service.engine.requests import OnlyChat, Scope, check_chat_unless_found, format_chat

# `My favourite colours are 1) Blue, 2) Green, 3) Black` states a ranked list. Both the topic and the list
# must be
# certain; docs/memory/facts.md describes when they are.

LONGEST = 100_000
"""The maximum number of characters in a text; longer texts are not searched for a list."""

_LONGEST_VALUE = 100


class NoCertainList(Exception):
    """The error for a text that does not certainly state a ranked list; its message says why."""


_CITATION = r"(?:【[^】\n]{0,100}】|\[[\^M]?\d{1,4}(?: ?[,;–-] ?M?\d{1,4}){0,20}\](?!\()|[⁰¹²³⁴-⁹]+)"

# Citation marks and the signs of Markdown. `re` compiles these when a text is first read.
_CLEANED = (
    (r"[ \t\u00a0]+", " "),
    (r"(?s)(`{3,}|~{3,}).*?(?:\1|\Z)", " "),
    (rf"(?m)^(?:{_CITATION} ?)+| ?{_CITATION}", ""),
    (r"!?\[([^\]\n]{0,200})\]\([^()\n]{0,500}\)", r"\1"),
    (r"(?m)^ ?#{1,6} +| #+ ?$", ""),
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


def parse_ranked_list(text: str) -> tuple[str, list[str]]:
    """Return the topic key and the ranked values of the author's list of favourites in `text`.

    Raises:
        NoCertainList: the topic or the list is not certain.
    """
    text = text.removeprefix("\ufeff")  # of a file that a program has read
    if len(text) > LONGEST:
        raise NoCertainList(f"the text has more than {LONGEST} characters")
    cleaned_text = strip_markup(text)
    statements = [
        (language, match)
        for language in _list_words()
        for pattern in _statement_patterns(language)
        for match in pattern.finditer(cleaned_text)
    ]
    if len(statements) != 1:
        raise NoCertainList(
            "the text has several lists" if statements else "the topic may not be the author's own"
        )
    ((language, match),) = statements
    if cleaned_text[: match.start()].rstrip().endswith(_QUOTED_AFTER):
        raise NoCertainList("the text may quote somebody else")
    key = _parse_topic_key(language, match)
    values, end = _parse_list(cleaned_text[match.end() :], language, match["topic"])
    count = match.groupdict().get("count")
    if count and parse_number(count.casefold(), language) != len(values):
        raise NoCertainList(f"the text announces {count} values but lists {len(values)}")
    others = cleaned_text[: match.end()] + " " + cleaned_text[match.end() + end :]
    if doubt := _phrase_pattern("doubts").search(others):
        raise NoCertainList(f"{doubt[0]!r} next to the list makes it uncertain")
    return key, values


def strip_markup(text: str) -> str:
    """Return `text` without citation marks, fenced code, and the characters of Markdown."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    for pattern, instead in _CLEANED:
        text = re.sub(pattern, instead, text)
    return text


def _parse_topic_key(language: str, match: re.Match[str]) -> str:
    words = match["topic"].casefold().split()
    if odd := next((word for word in words if word in _all_words("no_topic")), None):
        raise NoCertainList(f"a topic name cannot contain {odd!r}")
    words[-1] = strip_possessive(words[-1], language)
    if key := find_built_in_topic_key(words, language):
        return key
    lists = _list_words()[language]
    if not set(lists.inflected.split()).isdisjoint(match[0].casefold().split()):
        raise NoCertainList("the topic's name is inflected")
    try:
        return make_topic_key(lists.name % {"topic": " ".join(words)})
    except BadInput as error:
        raise NoCertainList(error.message) from error


# The list


def _parse_list(body: str, language: str, topic: str) -> tuple[list[str], int]:
    """Return the values of the list at the beginning of `body`, and the position where the list ends."""
    on_lines = body.startswith("\n")
    start = len(body) - len(body.lstrip())
    region = body[start:] if on_lines else body[start:].split("\n\n")[0]
    marks = _find_ranks(region, language, topic, on_lines=on_lines)
    _check_ranks([rank for rank, _ in marks])
    items = [region[match.end() : after.start()] for (_, match), (_, after) in pairwise(marks)]
    last = region[marks[-1][1].end() :]
    end = (_find_end_of_line if on_lines else _find_end_of_sentence)(last)
    values = [_parse_value(item, on_line=on_lines) for item in (*items, last[:end])]
    if len({value.casefold() for value in values}) < len(values):
        raise NoCertainList("a value is listed twice")
    return values, start + marks[-1][1].end() + end


def _find_ranks(region: str, language: str, topic: str, *, on_lines: bool) -> list[tuple[int, re.Match[str]]]:
    """Return the ranks in `region`, each with its match; raise NoCertainList unless it begins with a rank."""
    numbered = _NUMBERED_LINE if on_lines else _NUMBERED
    if re.match(numbered, region):
        return [(int(match[1]), match) for match in re.finditer(numbered, region)]
    ordinal = _ordinal_pattern(language, topic)
    if not on_lines and ordinal.match(region):
        numbers = load_ordinal_words(language)
        return [(numbers[match[1].casefold()], match) for match in ordinal.finditer(region)]
    raise NoCertainList("no list with ranks follows the topic")


def _check_ranks(ranks: Sequence[int]) -> None:
    if len(set(ranks)) < len(ranks):
        raise NoCertainList("two values have the same rank")
    if [*ranks] != [*range(1, len(ranks) + 1)]:
        raise NoCertainList(f"the ranks are {', '.join(map(str, ranks))}")
    if len(ranks) == 1:
        raise NoCertainList("the list has only one value")


def _parse_value(item: str, *, on_line: bool) -> str:
    """Return the value in `item`, without the commas and words that join it to the next item.

    on_line: whether the item has its own line, which belongs entirely to the value.
    """
    item = item.strip()
    if "\n" in item or len(item) > _LONGEST_VALUE:
        raise NoCertainList(f"a value is too long: {item[:30]!r}…")
    value = _strip_joints(item).strip(_QUOTES)
    if not value:
        raise NoCertainList("a rank has no value")
    if re.search(_CONTROL, value):
        raise NoCertainList("a value contains a control character")
    if "?" in value or _phrase_pattern("open").search(value) or value.count("(") != value.count(")"):
        raise NoCertainList(f"a value is incomplete: {value!r}")
    has_more = any(len(match["before"]) == _SHORTEST_END for match in re.finditer(_SENTENCE_ENDS, value[:-1]))
    if has_more or (not on_line and re.search(_ASIDE, value)):
        raise NoCertainList(f"a remark follows a value: {value!r}")
    return value


def _strip_joints(item: str) -> str:
    """Return `item` without the commas and words at its end that join it to the next item."""
    end = len(item)
    longest = max(map(len, _all_words("joints"))) + 1
    while joint := _joint_pattern().search(item, max(0, end - longest), end):
        end = joint.start()
    return item[:end]


def _find_end_of_line(last: str) -> int:
    """Return the length of the first line. Raise NoCertainList if the list may continue below it."""
    line, _, following = last.partition("\n")
    is_indented = following[:1].isspace() and following[0] != "\n"
    if is_indented or following[:1].islower():
        raise NoCertainList("it is not clear where the list ends")
    return len(line)


def _find_end_of_sentence(last: str) -> int:
    match = re.search(_SENTENCE_ENDS, last)
    if match is None:
        return len(last)
    following = last[match.end() :]
    if following.strip() and (len(match["before"]) < _SHORTEST_END or not following[0].isupper()):
        raise NoCertainList("it is not clear where the list ends")
    return match.start("after")


# The patterns


@cache
def _list_words() -> Mapping[str, ListWords]:
    return {name: table.lists for name, table in load_fact_words().items() if table.lists}


@cache
def _all_words(table: str) -> list[str]:
    return " ".join(getattr(table_of, table) for table_of in _list_words().values()).split()


@cache
def _phrase_pattern(table: str) -> re.Pattern[str]:
    all_phrases = [
        phrase for lists in _list_words().values() for phrase in split_phrases(getattr(lists, table))
    ]
    endings = [re.escape(phrase[1:]) for phrase in all_phrases if phrase.startswith("*")]
    whole = [re.escape(phrase) for phrase in all_phrases if not phrase.startswith("*")]
    return re.compile(rf"(?:{'|'.join(endings)})\b|\b(?:{'|'.join(whole)})\b", re.IGNORECASE)


@cache
def _joint_pattern() -> re.Pattern[str]:
    return re.compile(rf"(?:[,;.]|(?:^|\s)(?:{'|'.join(_all_words('joints'))}))\Z", re.IGNORECASE)


@cache
def _statement_patterns(language: str) -> tuple[re.Pattern[str], ...]:
    own = _list_words()[language]
    numbers = load_fact_words()[language].numbers.cardinals.split()[2:]
    words = {
        "begins": _BEGINS,
        "topic": _TOPIC,
        "lists": _LISTS,
        "favorite": "|".join(own.favorite.split()),
        "number": "|".join(forms.partition("/")[0] for forms in numbers),
    }
    return tuple(
        re.compile(table.replace("\n", "") % words, re.IGNORECASE | re.MULTILINE)
        for table in (own.statement, own.ranked_statement)
    )


@lru_cache(maxsize=64)  # bounded, since a topic can be any text
def _ordinal_pattern(language: str, topic: str) -> re.Pattern[str]:
    words = "|".join(sorted(map(re.escape, load_ordinal_words(language)), key=len, reverse=True))
    table = _list_words()[language].ordinal.replace("\n", "")
    pattern = table % {"ordinal": words, "topic": re.escape(topic)}
    return re.compile(rf"(?<!\w){pattern}", re.IGNORECASE)


LONGEST_VALUE = 1000
"""The maximum number of characters in a value."""

TopicName = Annotated[str, Meta(title="KEY"), "The name of the topic, in any spelling."]
Rank = Annotated[int, Meta(ge=1, le=MOST)]
"""A place in a list, counted from 1."""

AnyChat = Annotated[bool, "If the chat has no such topic, use the topic of the chat that set it last."]

_Facts = list[Fact]
"""An alias for use in the class, where `list` is a method."""


class FactUpdate(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The values that were set.

    topic_key: the stored key of the topic.
    ranks: the rank of each of `values`; 0 for a single value.
    chat: `<channel>:<chat_id>`; None for the store's own scope.
    positions, warnings: of the appended events: one for a list or a single value, else one per rank.
    """

    topic_key: str
    kind: FactKind
    ranks: list[int]
    values: list[str]
    chat: str | None
    positions: list[Position]
    warnings: list[AppendWarning] = []


class FactExtraction(msgspec.Struct, kw_only=True):
    """The ranked list in a text, and whether it was stored.

    topic_key, values: the list, from rank 1 on; None and [] if the text does not certainly state a list.
    chat: `<channel>:<chat_id>`; None for the store's own scope.
    why: why the text states no certain list; None if it states one.
    position: the position of the event, with its warnings; None if nothing was stored.
    """

    stored: bool = False
    topic_key: str | None = None
    values: list[str] = []
    chat: str | None
    why: str | None = None
    position: Position | None = None


def _check_is_single_value(given: Any) -> None:  # noqa: ANN401 - the request
    if given.single and given.ranks:
        raise BadInput("single cannot be combined with ranks", hint="omit one of them")


class Facts(OperationGroup):
    """A store's facts, each under a topic: ranked lists, such as favourite colours, or single values."""

    @operation("append", check=_check_is_single_value)
    def set(
        self,
        topic: TopicName,
        *values: Annotated[str, Meta(title="VALUE"), "The values."],
        single: Annotated[bool, "Store a single value instead of a list."] = False,
        ranks: Annotated[
            Sequence[Rank] | None, "Set only these ranks of the list: one for each value, without a gap."
        ] = None,
        source_message_id: Annotated[str | None, "The id of the message that states it."] = None,
        chat: Scope = None,
    ) -> FactUpdate:
        """Set the ranked list of a topic, replacing any earlier list; the first value has rank 1.

        The topic may have any spelling: favourite_colours and `my favorite color` both mean favorite_colors.

        Raises:
            BadInput: the topic, a value or a rank cannot be stored.
            BadInput, Busy, LogError: as `Store.append`.
        """
        key, scope = make_topic_key(topic), chat and format_chat(chat)
        check_values(values)
        fact = FactStored(topic_key=key, value=values[0], chat_id=scope, source_message_id=source_message_id)
        if single:
            if len(values) > 1:
                raise BadInput(f"{len(values)} values for a single fact", hint="quote a value with spaces")
            events = [fact]
        elif ranks is None:
            events = [replace(fact, kind="ranked", rank=1, rest=[*values[1:]])]
        else:
            self._check_ranks(key, scope, values, ranks)
            pairs = zip(ranks, values, strict=True)
            events = [replace(fact, kind="ranked", rank=rank, value=value) for rank, value in pairs]
        positions = self._append([*events])
        stored = events
        if self._engine.redact:  # as the log has them
            masked = (mask_event(msgspec.json.encode(event)) for event in events)
            stored = [msgspec.json.decode(event, type=FactStored) for event in masked]
        return FactUpdate(
            topic_key=key,
            kind=events[0].kind,
            ranks=[0] if single else [*(ranks or range(1, len(values) + 1))],
            values=[value for event in stored for value in (event.value, *(event.rest or ()))],
            chat=scope,
            positions=positions,
            warnings=collect_warnings(positions),
        )

    @operation("read")
    def get(
        self,
        topic: TopicName,
        *,
        rank: Annotated[Rank | None, "Only the value at this rank of the list."] = None,
        any_chat: AnyChat = False,
        chat: Scope = None,
    ) -> FactAnswer:
        """Show the values of a topic, or the value at a rank of its list.

        Raises:
            BadInput: the name of the topic is invalid.
        """
        key, scope = make_topic_key(topic), chat and format_chat(chat)
        return self._read(lambda db: answer_by_key(db, key, rank=rank, chat=scope, any_chat=any_chat))

    @operation("read")
    def ask(
        self,
        question: Annotated[str, Meta(title="TEXT"), "The question."],
        *,
        any_chat: AnyChat = False,
        chat: Scope = None,
    ) -> FactAnswer:
        """Answer a question from facts, by fixed rules, without a model.

        Questions are in English, Finnish, German, Russian, Spanish or Swedish: `second favourite colour`,
        `list my favourite colours`, `what is my city`. If the fact is not stored, or the question is not
        certainly understood, the answer is "I don't have that stored yet". A question without a topic is
        about the topic that was set last.
        """
        scope = chat and format_chat(chat)
        return self._read(lambda db: answer_question(db, question, chat=scope, any_chat=any_chat))

    @operation("append")
    def extract(
        self,
        text: Annotated[str, "The text."],
        *,
        source_message_id: Annotated[str | None, "The id of the message with the text."] = None,
        dry_run: Annotated[bool, "Store nothing; only report what would be stored."] = False,
        chat: Scope = None,
    ) -> FactExtraction:
        """Find a ranked list of the author's favourites in a text, without a model, and store it.

        Texts are in English, Russian or Finnish: `My favourite colours are 1) Blue, 2) Green`. If the topic
        or the list is uncertain, nothing is stored, and the answer says why.

        Raises:
            BadInput: a value cannot be stored. BadInput, Busy, LogError: as `Store.append`.
        """
        scope = chat and format_chat(chat)
        try:
            key, values = parse_ranked_list(text)
        except NoCertainList as doubt:
            return FactExtraction(chat=scope, why=str(doubt))
        found = FactExtraction(topic_key=key, values=values, chat=scope)
        if dry_run:
            return found
        done = self.set(key, *values, chat=scope, source_message_id=source_message_id)
        return replace(found, stored=True, values=done.values, position=done.positions[0])

    @operation("append")
    def remove(
        self,
        topic: TopicName,
        *,
        rank: Annotated[Rank | None, "Remove only this rank; the others keep their ranks."] = None,
        chat: Scope = None,
    ) -> list[Position]:
        """Remove the values of a topic, or one rank of its list. The events stay in the log.

        Raises:
            NotFound: there is no such topic or rank.
            BadInput: as `get`. BadInput, Busy, LogError: as `Store.append`.
        """
        key, scope = make_topic_key(topic), chat and format_chat(chat)
        standing = self._decide(lambda db: topic_with_key(topics_of_chat(db, scope), [key]))
        if standing is None:
            raise unknown_fact_error(f"no topic {key} {describe_place(scope, any_chat=False)}")
        if rank is not None and standing.find_fact_at_rank(rank) is None:
            raise unknown_fact_error(missing_rank_message(standing, rank))
        return self._append(_removal_events(standing, rank))

    @operation("read")
    def list(self, *, chat: OnlyChat = None) -> _Facts:
        """List facts by topic, most recently set first, and by rank."""
        scope = chat and format_chat(chat)
        found = self._read(lambda db: all_topics(db) if scope is None else topics_of_chat(db, scope))
        check_chat_unless_found(chat, found)
        return [fact for topic in found for fact in topic.facts]

    def _check_ranks(self, key: str, chat: str | None, values: Sequence[str], ranks: Sequence[int]) -> None:
        if len(ranks) != len(values):
            raise BadInput(
                f"{len(values)} values but {len(ranks)} ranks", hint="use one rank for each value, or none"
            )
        twice = next((rank for rank, count in Counter(ranks).items() if count > 1), None)
        if twice is not None:
            raise BadInput(f"two values have rank {twice}", hint="use each rank once")
        # A refused rank must not create a store.
        is_there = self._engine.exists
        standing = (
            self._decide(lambda db: topic_with_key(topics_of_chat(db, chat), [key])) if is_there else None
        )
        last = standing.facts[-1].rank if standing and standing.kind == "ranked" else 0
        for rank in sorted(ranks):
            if rank > last + 1:
                raise BadInput(f"rank {rank} of {key} would leave a gap", hint=f"use rank {last + 1}")
            last = max(last, rank)


def check_values(values: Sequence[str]) -> None:
    """Raise BadInput if a value cannot be stored."""
    if not values:
        raise BadInput("no values were given", hint="specify at least one value")
    for value in values:
        if not value.strip():
            raise BadInput("a value must not be empty", hint="use store.facts.remove() to remove a value")
        odd = next((letter for letter in value if unicodedata.category(letter) in ("Cc", "Zl", "Zp")), None)
        if odd is not None:
            raise BadInput(
                f"a value contains the control character U+{ord(odd):04X}",
                hint="use one line per value, or store.memories.save() for longer texts",
            )
        if len(value) > LONGEST_VALUE:
            raise BadInput(
                f"a value has {len(value)} characters",
                hint=f"use at most {LONGEST_VALUE}, or store.memories.save() for longer texts",
            )


def _removal_events(standing: Topic, rank: int | None) -> list[Event]:
    """Return the event that removes a rank; for a whole topic, one event for each spelling of its key.

    Removing the only rank removes the whole topic, including its older kinds and spellings.
    """
    if rank is None or len(standing.facts) == 1:
        return [FactRemoved(topic_key=key, chat_id=standing.chat) for key in standing.keys]
    key = standing.facts[0].topic_key
    return [FactRemoved(topic_key=key, kind="ranked", rank=rank, chat_id=standing.chat)]


def unknown_fact_error(what: str) -> NotFound:
    """Return the error for a fact that is not stored, with `what` as its message."""
    return NotFound(what, hint="store.facts.list() lists the facts", code="fact_not_found")

"""Keeps the profiles: core memory that a language model derives from memories.

Each group of chats that share a scope has its own profile, derived only from the group's memories. Values
that a person has set or removed are left alone. A value names its source memories, and disappears with them.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from memlog.eventlog.codec.content_ids import fold_content
from memlog.eventlog.codec.encode import draft, new_id
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import CoreMemoryDeleted, CoreMemoryUpdated, Extraction, ProfileRefreshed
from memlog.eventlog.secrets.detection import is_secret_name, kinds_in
from memlog.eventlog.secrets.outgoing import SentText, is_private, mask_parts
from memlog.projector.sqlite import Connection
from memlog.projector.subjects.facts import PROFILE
from memlog.projector.text.stemming import stop_words_in
from memlog.projector.text.tokens import is_cjk
from memlog.query.conflicts import compared_events, contested_memories
from memlog.query.context.scope import ChatGroup, chat_groups, chats_of_memories, chats_of_profiles
from memlog.query.memories import Memory, memories
from memlog.query.records import CoreValueSource, RejectedValue, core_sources, profile_keys, rejected_values
from memlog.query.sendable import mask_memories
from memlog.service.engine.engine import Engine
from memlog.service.engine.prompts import PROFILE as PROMPT
from memlog.service.engine.prompts import read_prompt
from memlog.service.llm.answers import LONGEST, Listed, parse_list
from memlog.service.llm.task import Items, Outcome, Questions, entry_size, set_aside_note, withheld_note
from memlog.service.llm.tasks.merge import memory_entry
from memlog.service.memory.compared_text import Text, is_in_dictionary, negates
from memlog.service.memory.core_markdown import is_about_project, is_fact_of_project
from memlog.service.memory.duplicates import similarity
from memlog.service.memory.placeholders import is_denial, is_placeholder

_MONTHS = [
    "jan|янв|tammi",
    "feb|фев|helmi",
    "mar(?!ras)|мар|maalis|mär",
    "apr|апр|huhti",
    "may|ма[йя]|touko|mai",
    "jun|июн|kesä",
    "jul|июл|heinä",
    "aug|авг|elo",
    "sep|сен|syys",
    "oct|окт|loka|okt",
    "nov|ноя|marras",
    "dec|дек|joulu|dez",
]
"""Patterns for the beginnings of the names of months."""

_YEAR = r"(?P<y>\d{4})"
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th|\.)?"
_DAYS = [
    re.compile(rf"\b{_YEAR}[-/.年 ]+(?P<m>\d{{1,2}})[-/.月 ]+(?P<d>\d{{1,2}})(?!\d)"),
    re.compile(rf"\b(?P<d>\d{{1,2}})[-/. ]+(?P<m>\d{{1,2}})[-/. ]+{_YEAR}\b"),
    re.compile(rf"\b(?P<m>\d{{1,2}})[-/]+(?P<d>\d{{1,2}})[-/]+{_YEAR}\b"),
    re.compile(rf"\b{_DAY}(?: of)? (?P<name>[^\W\d]+)\.?,? {_YEAR}\b"),
    re.compile(rf"\b(?P<name>[^\W\d]+)\.? {_DAY},? {_YEAR}\b"),
]

_PHONE = re.compile(r"\+?\(?\d[\d ()./-]{5,}\d")
_OWN_DIGITS = 7
"""How many last digits of a telephone number all its notations share."""

_NUMBERS = {
    word: str(number)
    for number, words in enumerate(
        [
            "zero ноль nolla 零",
            "one один одна yksi 一",
            "two два две двое kaksi 二 两 兩",
            "three три трое kolme 三",
            "four четыре четверо neljä 四",
            "five пять viisi 五",
            "six шесть kuusi 六",
            "seven семь seitsemän 七",
            "eight восемь kahdeksan 八",
            "nine девять yhdeksän 九",
            "ten десять kymmenen 十",
            "eleven одиннадцать yksitoista 十一",
            "twelve двенадцать kaksitoista 十二",
        ]
    )
    for word in words.split()
}


def to_digits(word: str) -> str:
    """Return the digits of a small number word, such as `2` for `two`; any other word unchanged."""
    return _NUMBERS.get(word, word)


def find_days(text: str) -> set[tuple[int, int, int]]:
    """Return the days in a folded text as (year, month, day); both readings of an ambiguous date."""
    found = (match.groupdict() for pattern in _DAYS for match in pattern.finditer(text))
    return {
        (int(each["y"]), month, int(each["d"]))
        for each in found
        for month in _parse_months(each.get("m"), each.get("name") or "")
    }


def find_phones(text: str) -> set[str]:
    """Return the last digits of the telephone numbers in a text."""
    bare = (re.sub(r"\D", "", match[0]) for match in _PHONE.finditer(text) if not find_days(match[0]))
    return {digits[-_OWN_DIGITS:] for digits in bare if len(digits) >= _OWN_DIGITS}


def _parse_months(number: str | None, name: str) -> list[int]:
    if number is not None:
        return [int(number)] if 1 <= int(number) <= len(_MONTHS) else []
    return [at for at, begins in enumerate(_MONTHS, 1) if re.match(begins, name)]


_STEM = 5
"""How many leading letters the forms of a word share: smoker, smokes; allergies, allergic."""

_SHORTEST = 3
"""The fewest letters of a meaningful word in a key."""

_MOST_MORE = 3
"""How many words a value may add or omit, under a similar key, and still say the same."""

_LEAST_PART = 0.5
"""The fraction of a rejected value's words that says the same under any key."""

_ANSWER = re.compile(r"yes|no|true|false|none|\d|да|нет|是|否|有|无|没有|kyllä|ei|on")
"""Matches values that mean nothing without their key."""

_LIGHT = frozenset(
    "user lives living resides resident based works working likes loves prefers speaks uses has drinks eats"
    " wants near city suffers suffering diagnosed married since home"
    " asuu tykkää käyttää puhuu живет живёт любит работает 住 在 喜 欢 户 用".split()
)
"""Words that often surround a value in a sentence."""

_PAST = re.compile(
    r"\b(?:moved|left|former(?:ly)?|previous(?:ly)?|until|earlier|переехал\w*|раньше|бывш\w*|muutti\w*|entinen"
    r"|aiemmin)\b|搬|以前|曾"
)
"""Matches words that put a value in the past, and so make it a different one."""

_CASES = re.compile(r"(?:ss[aä]|st[aä]|ll[aä]|lt[aä]|lle|un)$")
"""Matches Finnish endings that change the stem: Turku, Turussa."""

_LONG_STEM, _SHORT_STEM = 8, 4

_SUBJECT = re.compile(
    r"(?:the )?(\w+) (?:is|has|lives|works|likes|loves|prefers|speaks|uses|drinks|eats|wants)\b"
)


def is_rejected(key: str, value: str, rejected: Iterable[RejectedValue]) -> bool:
    """Whether a person has rejected this value, a similar value, or a value that this value contains."""
    return any(_is_same_value(key, value, each) for each in rejected)


def _is_same_value(key: str, value: str, old: RejectedValue) -> bool:
    are_alike = any(
        this.startswith(that[:_STEM]) or that.startswith(this[:_STEM])
        for this in _split_key(key)
        for that in _split_key(old.key)
        if min(len(this), len(that)) >= _SHORTEST
    )
    if len(old.value) > LONGEST:
        return fold_content(value) == fold_content(old.value)
    if _is_same_notation(value, old.value) or _has_all_significant_words(value, old):
        return True
    new_words, old_words = _token_words(value), _token_words(old.value)
    if new_words == old_words:
        return are_alike or not _is_answer(value)
    if not new_words or not old_words:
        return False
    if _is_answer(old.value):
        return are_alike and old_words <= new_words
    new, was = Text(value), Text(old.value)
    if similarity(new, was) is not None or similarity(was, new) is not None:
        return True
    added, missing = new_words - old_words, old_words - new_words
    if any(negates(word) or word.isdigit() for word in added | missing) or (added and missing):
        return False
    if are_alike and len(added | missing) <= _MOST_MORE:
        return True
    if missing:
        return are_alike or len(new_words) >= _LEAST_PART * len(old_words)
    subject = _SUBJECT.match(fold_content(value))
    light = (
        _LIGHT
        | stop_words_in(("english", "finnish"))
        | {*_split_key(key), *_split_key(old.key)}
        | ({subject[1]} if subject else set())
    )
    return added <= light


def _is_answer(value: str) -> bool:
    return _ANSWER.fullmatch(to_digits(fold_content(value).strip(" ."))) is not None


def _is_same_notation(value: str, old: str) -> bool:
    """Whether two values share a day or telephone number, or differ only in spaces and signs."""
    new, was = fold_content(value), fold_content(old)
    if not find_days(was).isdisjoint(find_days(new)) or not find_phones(was).isdisjoint(find_phones(new)):
        return True
    bare, bare_old = re.sub(r"[\W_\u00ad]+", "", new), re.sub(r"[\W_\u00ad]+", "", was)
    if not bare_old or _is_answer(old):
        return False
    is_cjk_name = len(bare_old) > 1 and all(map(is_cjk, bare_old))
    return bare == bare_old or (is_cjk_name and bare_old in bare and not _contradicts(value, old))


def _has_all_significant_words(value: str, old: RejectedValue) -> bool:
    """Whether `value` has all significant words of the old value, in any form.

    A single significant word must be a name or a number: a common word may occur in any sentence.
    """
    if _is_answer(old.value) or _contradicts(value, old.value):
        return False
    light = _LIGHT | stop_words_in(("english", "finnish"))
    telling = {word for word in _token_words(old.value) if word not in light and word.isalnum()}
    if len(telling) == 1:
        (word,) = telling
        is_name = not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", old.value) or not is_in_dictionary(word)
        if not is_name and not word.isdigit():
            return False
    words = _token_words(value)
    return bool(telling) and all(any(_is_word_form(each, word) for each in words) for word in telling)


def _contradicts(value: str, old: str) -> bool:
    """Whether a value negates the old value, or puts it in the past."""
    added = _token_words(value) - _token_words(old)
    return any(map(negates, added)) or (
        _PAST.search(fold_content(value)) is not None and not _PAST.search(fold_content(old))
    )


def _is_word_form(word: str, of: str) -> bool:
    """Whether a word is a form of the word `of`, as Oulussa is of Oulu."""
    if word == of:
        return True
    common = next((n for n, (one, other) in enumerate(zip(word, of, strict=False)) if one != other), None)
    common = min(len(word), len(of)) if common is None else common
    is_like = abs(len(word) - len(of)) <= _STEM and not of.isdigit() and len(of) >= _SHORT_STEM
    needed = len(of) - (3 if len(of) > _LONG_STEM else 2)
    if not is_like or common < needed:
        return False
    return common >= _SHORT_STEM or (common == _SHORTEST and _CASES.search(word) is not None)


def _token_words(text: str) -> set[str]:
    return {to_digits(token.word) for token in Text(text).tokens}


def _split_key(key: str) -> list[str]:
    return [part for part in fold_content(key).split("_") if part]


_Change = CoreMemoryUpdated | CoreMemoryDeleted

_SECTION: Literal["user"] = "user"
_LONGEST_KEY, _LONGEST_VALUE = 64, 500
_MOST = 40
"""The most values of a profile: every context contains all of them."""

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "entries": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "key": {"type": "string"},
                    "value": {"type": "string"},
                    "numbers": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["key", "value", "numbers"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["entries"],
    "additionalProperties": False,
}


class _ProfileEntry(msgspec.Struct):
    key: str
    value: str
    numbers: list[int]


class _ProfileState(NamedTuple):
    """The data from which a profile is refreshed.

    shown: the memories to send. values: the current values by key. compared: ids of content events that
    the model has already seen. stale: keys of obsolete values. kept: keys whose values may not be sent.
    """

    shown: list[Memory]
    values: dict[str, CoreValueSource]
    compared_events: set[str]
    stale: set[str]
    kept: set[str]


class Profile:
    """The profiles of a store, one for each group of chats.

    room: the most tokens of a request.
    """

    def __init__(self, engine: Engine, questions: Questions, room: int) -> None:
        self._engine, self._questions, self._room = engine, questions, room

    def refresh(self) -> Outcome:
        """Bring the profile of each group of chats up to date with its memories.

        Sends no request for a group whose memories have not changed.

        Raises:
            ProviderError: the model fails; profiles already refreshed stay.
        """
        groups = self._engine.decide(lambda db: chat_groups(db, self._engine.read_model.people))
        changed = self._remove_obsolete(groups)
        refused = 0
        items = self._questions.begin("profile")
        for group in groups:
            made, left_out = self._refresh(items, group)
            changed, refused = changed + made, refused + left_out
        notes = [f"{refused} entries refused"] if refused else []
        kept = self._engine.decide(lambda db: len(self._questions.withheld_memories(db, memories(db))))
        notes += filter(None, (set_aside_note([each.why for each in items.end()]), withheld_note(kept)))
        return Outcome(changed, "; ".join(notes) or None)

    def _refresh(self, items: Items, group: ChatGroup) -> tuple[int, int]:
        """Refresh the profile of a group; return the numbers of changed values and refused entries."""
        state = self._engine.decide(partial(self._read, group=group))
        shown, _, known, stale, _ = state
        if not shown:
            if stale:
                self._engine.append([_deletion_event(group.chat, key) for key in sorted(stale)])
            return len(stale), 0
        ids = [memory.event_id for memory in shown]
        if (not stale and known.issuperset(ids)) or items.is_set_aside(group.chat, ids):
            return 0, 0
        return items.attempt(group.chat, ids, partial(self._ask_for_values, group, state)) or (0, 0)

    def _ask_for_values(self, group: ChatGroup, state: _ProfileState) -> tuple[int, int]:
        shown, values, _, stale, kept = state
        used = read_prompt(PROMPT)
        standing = {
            key: each.value
            for key, each in values.items()
            if key not in stale | kept and each.value and not is_secret_name(key)
        }
        told = mask_parts([SentText(value, (key,)) for key, value in standing.items()])
        request = {
            "profile": dict(zip(standing, told, strict=True)),
            "memories": [
                memory_entry(number, memory, text)
                for number, (memory, text) in enumerate(zip(shown, mask_memories(shown), strict=True), 1)
            ],
        }
        answer, took = self._questions.ask(used.text, msgspec.json.encode(request).decode(), _SCHEMA, _read)
        origin = Extraction(new_id(), self._questions.model, used.id, chat_id=group.chat)
        changes, refused = self._select_changes(group, answer, shown, stale, origin)
        closing = ProfileRefreshed(
            id=origin.id,
            event_ids=[memory.event_id for memory in shown],
            model=origin.model,
            prompt=origin.prompt,
            chat_id=group.chat,
            tokens_in=took.tokens_in,
            tokens_out=took.tokens_out,
            refused=refused,
        )
        self._questions.append([*changes, closing])
        return len(changes), refused

    def _remove_obsolete(self, groups: list[ChatGroup]) -> int:
        """Remove the profiles of groups that no longer exist; return how many values they had."""
        chats = {group.chat for group in groups}
        keys = self._engine.decide(lambda db: profile_keys(db, _SECTION))
        gone = [_deletion_event(chat, key) for chat, key in keys if chat not in chats]
        if gone:
            self._engine.append(gone)
        return len(gone)

    def _read(self, db: Connection, group: ChatGroup) -> _ProfileState:
        values = core_sources(db, _SECTION, group.chat)
        own = {key: each for key, each in values.items() if each.source == PROFILE}
        sources = chats_of_profiles(db, {each.extraction_id for each in own.values() if each.extraction_id})
        private = {each.memory_id for each in memories(db) if is_private(each.category)}
        stale = {
            key
            for key, each in own.items()
            # An older version used credentials.
            if each.is_stale
            or not private.isdisjoint(each.memory_ids)
            # It was derived under another scope, from chats outside the group; or its sources are unknown.
            or (
                group.chats is not None
                and ((chats := sources.get(each.extraction_id or "")) is None or not group.has(chats))
            )
        }
        shown, known = self._select_memories(db, group, values), compared_events(db, "core", group.chat)
        return _ProfileState(shown, values, known, stale, self._withheld_keys(db, values))

    def _select_memories(
        self, db: Connection, group: ChatGroup, values: dict[str, CoreValueSource]
    ) -> list[Memory]:
        """Return the most relevant memories that fit into a request, sorted by last change.

        Omits memories in an open conflict.
        """
        room = self._room - entry_size(
            {"profile": {key: each.value for key, each in values.items()}, "memories": []}
        )
        chosen: list[Memory] = []
        contested = contested_memories(db)
        found = memories(db)
        sources = {} if group.chats is None else chats_of_memories(db, [each.memory_id for each in found])
        kept = self._questions.withheld_memories(db, found)
        own = (
            each
            for each in found
            if group.has(sources.get(each.memory_id, set()))
            and each.memory_id not in contested
            and not is_private(each.category)
            and each.memory_id not in kept
        )
        for memory in sorted(own, key=lambda memory: (-memory.relevance, memory.memory_id)):
            size = entry_size(memory_entry(len(chosen) + 1, memory, memory.content))
            if size <= room:
                room -= size
                chosen.append(memory)
        return sorted(chosen, key=lambda memory: (memory.updated_at, memory.memory_id))

    def _withheld_keys(self, db: Connection, values: dict[str, CoreValueSource]) -> set[str]:
        """Return the keys whose values may not be sent, because their sources or events were imported."""
        profiles = self._questions.withheld_profiles(
            db, {each.extraction_id for each in values.values() if each.extraction_id}
        )
        return {
            key
            for key, each in values.items()
            if each.extraction_id in profiles
            or not all(
                self._questions.may_be_sent(None, name)
                for name in filter(None, (each.event_id, *each.memory_ids))
            )
        }

    def _select_changes(
        self,
        group: ChatGroup,
        answer: Listed[_ProfileEntry],
        shown: list[Memory],
        stale: set[str],
        origin: Extraction,
    ) -> tuple[list[_Change], int]:
        """Return the events that set and remove values, and how many entries are refused."""
        # Read again: a person may have set a value while the model worked.
        values, rejected = self._engine.decide(
            lambda db: (
                core_sources(db, _SECTION, group.chat),
                rejected_values(db, self._engine.log_path, _SECTION),
            )
        )
        known = {key.casefold(): key for key in values}
        room = _MOST - sum(each.source == PROFILE for each in values.values())
        made: dict[str, _Change] = {}
        refused = answer.refused
        for entry in answer.entries:
            bare = re.sub(r"\W+", "_", entry.key.casefold()).strip("_")
            key = known.get(entry.key.strip().casefold()) or known.get(bare) or bare
            value, there = entry.value.strip(), values.get(key)
            if there is not None and (there.source != PROFILE or (there.value == value and key not in stale)):
                continue  # a person has set or removed it, or it is unchanged
            cited = [shown[number - 1] for number in entry.numbers if 0 < number <= len(shown)]
            event = CoreMemoryUpdated(
                id=new_id(),
                section=_SECTION,
                key=key,
                value=value,
                source=PROFILE,
                chat_id=group.chat,
                extraction=replace(origin, memory_ids=[*dict.fromkeys(each.memory_id for each in cited)]),
            )
            is_new = there is None and key not in made
            is_told = bool(cited) and _is_usable(event) and _is_about_person(key, value, cited)
            if not is_told or is_rejected(key, value, rejected) or (is_new and room <= 0):
                refused += 1
                continue
            room -= is_new
            made[key] = event
        for key in stale - made.keys():
            if values[key].source == PROFILE:
                made[key] = replace(_deletion_event(group.chat, key), extraction=origin)
        return [*made.values()], refused


def _deletion_event(chat: str | None, key: str) -> CoreMemoryDeleted:
    return CoreMemoryDeleted(id=new_id(), section=_SECTION, key=key, source=PROFILE, chat_id=chat)


def _is_about_person(key: str, value: str, cited: list[Memory]) -> bool:
    """Whether a value says anything about a person.

    A bare `none` does so only if a memory denies the topic of the key: "unknown" differs from "has none".
    """
    if is_fact_of_project(key, value) or is_about_project(value):
        return False
    return not is_placeholder(value) or (is_denial(value) and any(_denies_topic(each, key) for each in cited))


def _denies_topic(memory: Memory, key: str) -> bool:
    words = re.findall(r"\w+(?:['’]\w+)?", memory.content.casefold())
    stems = {word[:_STEM] for word in key.split("_") if len(word) >= _STEM}
    return any(map(negates, words)) and not stems.isdisjoint(word[:_STEM] for word in words)


def _is_usable(event: CoreMemoryUpdated) -> bool:
    if not event.value or len(event.key) > _LONGEST_KEY or len(event.value) > _LONGEST_VALUE:
        return False
    if kinds_in(f"{event.key}: {event.value}"):
        return False
    with suppress(BadInput):
        draft(event)
        return True
    return False


def _read(text: str) -> Listed[_ProfileEntry] | None:
    return parse_list(text, member="entries", kind=_ProfileEntry)

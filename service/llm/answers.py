"""Reads a language model's answer, whatever it contains.

If several objects are usable, the last one counts: earlier ones are drafts or examples.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo

from memlog.eventlog.categories import CATEGORIES, OTHER, resolve_alias
from memlog.eventlog.fields import MemoryKind
from memlog.eventlog.secrets.detection import list_key_kinds
from memlog.service.memory.core_markdown import is_about_project
from memlog.service.memory.placeholders import is_placeholder, says_nothing

UNRATED = 0.5
"""The importance of a memory that the model did not rate: above the threshold, since the model found it worth
an entry, and below whatever a model or a person has called important."""

_WORDS = {"high": 0.9, "medium": 0.6, "low": 0.3}
"""The importance of each rating word. The prompts explain them as: must never be forgotten, is often useful,
may be useful once."""

_NUMBER = re.compile(
    r"(?P<sign>-?)(?P<number>\d{1,9}(?:[.,]\d{1,20})?)"
    r"\s*(?:(?P<percent>%|percent)|(?:/|of|out of)\s*(?P<of>\d{1,9}))?",
    re.IGNORECASE,
)


def detect_scale(given: Iterable[Any]) -> int:
    """Return the upper end of the scale that an answer uses: 1, 10 or 100."""
    most = max((number for each in given if (number := _parse_unscaled(each)) is not None), default=0.0)
    return 1 if most <= 1 else 10 if most <= 10 else 100


def scaled_importance(given: Any, scale: int) -> float | None:  # noqa: ANN401 - a model's answer
    """Return a given importance on a scale from 0 to 1; None if it is invalid."""
    number: float | None = None
    if given is None:
        number = UNRATED
    elif (plain := _parse_unscaled(given)) is not None:
        number = plain / scale if plain >= 1 else plain
    elif isinstance(given, str):
        number = _parse_importance(given)
    return number if number is not None and 0 <= number <= 1 else None


def _parse_unscaled(given: Any) -> float | None:  # noqa: ANN401 - a model's answer
    """Return a number whose scale is unknown; None for a percentage, a fraction or no number."""
    if isinstance(given, str):
        found = _NUMBER.search(given)
        return _to_float(found) if found and not found["percent"] and not found["of"] else None
    return float(given) if isinstance(given, int | float) and not isinstance(given, bool) else None


def _parse_importance(given: str) -> float:
    if found := _NUMBER.search(given):
        return _to_float(found) / (100 if found["percent"] else max(1, int(found["of"])))
    text = given.lower()
    return next((number for word, number in _WORDS.items() if word in text), UNRATED)


def _to_float(found: re.Match[str]) -> float:
    return float(found["sign"] + found["number"].replace(",", "."))


_END_OF_THOUGHT = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)

_OPENING = re.compile(r"""\{\s*["}]|\[\s*[\[{"\]\-\dtfnNI]""")
"""Matches the beginning of an object or a list."""

_SKIPPED = re.compile(r"(?:[^{\[]*[{\[]){500}")
"""Matches the next 500 openings within a value nested deeper than any answer: objects there belong to it."""

_EFFORT = 20
"""How much is read to find the end of unterminated JSON, as a multiple of the text's length."""

_DECODER = json.JSONDecoder(strict=False)


class _Searched(str):
    """A text without line numbers in JSON errors: `json` would count all lines before each error."""

    __slots__ = ()

    def count(self, *_: object) -> int:
        return 0

    def rfind(self, *_: object) -> int:
        return 0


def find_json_values(text: str) -> Iterator[Any]:
    """Yield the JSON objects and lists in a text, in linear time, without those in the model's reasoning."""
    *_, last = _END_OF_THOUGHT.split(text)
    searched = _Searched(last if _OPENING.search(last) else text)
    at, effort = 0, _EFFORT * len(searched)
    while opening := _OPENING.search(searched, at):
        at = opening.start()
        try:
            value, at = _DECODER.raw_decode(searched, at)
        except json.JSONDecodeError as error:
            # An unterminated string was read to the end.
            reached = len(searched) if error.msg.startswith("Unterminated") else error.pos
            effort -= reached - at
            at = at + 1 if effort > 0 else max(at + 1, error.pos)
        except (ValueError, RecursionError):
            skipped = _SKIPPED.match(searched, at)
            at = skipped.end() if skipped else at + 1
        else:
            yield value


T = TypeVar("T", bound=msgspec.Struct)

LONGEST = 2000
"""The maximum number of characters in a memory or summary: one or two sentences, with a wide margin."""

_NAMES = {
    "content": ("content", "memory", "text"),
    "value": ("value", "text", "content"),
    "type": ("type", "kind"),
    "relation": ("relation", "type", "kind"),
}
"""Names that models use for an entry's members."""

_NO_TOPIC = ("null", "none", "n/a", "other", "general", "unknown", "topic")
"""The words that models write if there is no topic."""

CATEGORIES_OF_MODELS = [name for name in CATEGORIES if name not in ("credential", "summaries", "debug")]
"""The categories that a model may use: it sees no credentials, and writes summaries separately."""

_INVISIBLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters, including those that change the direction of a text."""

_WRAPPINGS = 4
"""The maximum number of levels of objects and lists that may wrap an answer: {"result": {"answer": {…}}}."""

_LONGEST_TOPIC = 60
"""The maximum number of characters in a topic: one to three words."""


class Distilled(msgspec.Struct):
    """A memory in a model's answer."""

    type: MemoryKind = "fact"  # the most neutral one, for an entry that names none
    category: Annotated[Any, Meta(extra_json_schema={"type": "string", "enum": CATEGORIES_OF_MODELS})] = None
    topic: Annotated[Any, Meta(extra_json_schema={"type": ["string", "null"]})] = None
    content: str = ""
    importance: float = UNRATED

    def __post_init__(self) -> None:
        content = read_usable_text(self.content)
        if content is None or not 0 <= self.importance <= 1 or is_about_project(content):
            raise ValueError("it is no memory")
        self.content = content
        self.category, self.topic = _match_category(self.category), _normalise_topic(self.topic)


class MemoryAnswer(msgspec.Struct):
    """A model's answer: the memories in a conversation or diary."""

    memories: list[Distilled]
    summary: str


class _TextEntry(msgspec.Struct):
    content: str


def schema_of_answer(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type
    """Return the JSON schema of an answer.

    Providers enforce only a schema without references that requires every member and allows no others. When
    an answer is read, some members may be missing.
    """
    if get_origin(kind) is list:
        return {"type": "array", "items": schema_of_answer(*get_args(kind))}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": [*get_args(kind)]}
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return msgspec.json.schema(kind)
    members = {field.name: schema_of_answer(field.type) for field in msgspec.structs.fields(kind)}
    return {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}


def read_answer(text: str, kind: type[T]) -> tuple[T, int] | None:
    """Return the usable part of an answer, and how many entries and texts are unusable; None if all are.

    The JSON may be within prose, after a draft or in a fenced block, and may be only a list of the entries.

    kind: a struct with a list of entries or a text, and perhaps more texts.
    """
    found = None
    first, *others = msgspec.structs.fields(kind)
    for members in _find_members(text, first):
        given, refused = members[first.name], 0
        if get_origin(first.type) is list:
            entries = _read_entries(given, *get_args(first.type))
            values: dict[str, Any] = {first.name: entries}
            refused = len(given) - len(entries)
            is_usable = bool(entries) or all(map(_says_nothing, given))
        else:
            values = {first.name: read_usable_text(given)}
            is_usable = values[first.name] is not None
        for name in (field.name for field in others):
            beside = members.get(name)
            shortened = beside[:LONGEST] if isinstance(beside, str) else ""
            values[name] = read_usable_text(shortened) or ""
            refused += bool(shortened.strip()) and not values[name]
        found = (kind(**values), refused) if is_usable else found
    return found


def _find_members(text: str, field: FieldInfo) -> Iterator[dict[str, Any]]:
    """Yield the members of each object in an answer that has this field; if none has it, top-level lists."""
    is_list = get_origin(field.type) is list
    alone = []
    is_found = False
    for value in find_json_values(text):
        if isinstance(value, list):
            alone.append(value)
        for each in _walk_objects(value):
            members = _fold_names(each)
            given = members.get(field.name, ...)
            if is_list and (isinstance(given, dict) or given is None):  # one entry, or none
                given = [] if given is None else [given]
            if isinstance(given, list if is_list else str):
                is_found = True
                yield members | {field.name: given}
    if is_list and not is_found:
        yield from ({field.name: value} for value in alone if value and all(map(_may_be_entry, value)))


def _fold_names(given: dict[str, Any]) -> dict[str, Any]:
    return {str(name).strip().lower(): value for name, value in given.items()}


def _walk_objects(value: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - a model's answer
    """Yield the objects in a value, outermost first, down to the depth to which models nest an answer."""
    level = [value]
    for _ in range(_WRAPPINGS):
        objects = [each for each in level if isinstance(each, dict)]
        yield from objects
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]


def _may_be_entry(given: Any) -> bool:  # noqa: ANN401 - a model's answer
    """Whether an item may be an entry of a bare list: a list of words or numbers is only part of a text."""
    return isinstance(given, dict) or (isinstance(given, str) and " " in given.strip())


def _read_entries(given: list[Any], kind: type[T]) -> list[T]:
    """Return the usable entries of a list, with their importance on a scale from 0 to 1."""
    entries = [{"content": each} if isinstance(each, str) else each for each in given]
    known = [_fold_names(each) for each in entries if isinstance(each, dict)]
    scale = detect_scale(each.get("importance") for each in known)
    found: list[T] = []
    for each in known:
        importance = scaled_importance(each.get("importance"), scale)
        each["importance"] = -1 if importance is None else importance
        with suppress(msgspec.ValidationError):
            found.append(_convert_entry(each, kind))
    return found


def _says_nothing(given: Any) -> bool:  # noqa: ANN401 - a model's answer
    """Whether an entry says that there are no memories."""
    return any(says_nothing(each.content) for each in _read_entries([given], _TextEntry))


def _match_category(given: object) -> str:
    """Return the known category that a text names, in any case or in the plural; otherwise `other`."""
    name = _INVISIBLE.sub("", given).strip().casefold() if isinstance(given, str) else OTHER
    forms = (resolve_alias(name), name.removesuffix("s"), f"{name.removesuffix('ies')}y")
    return next((form for form in forms if form in CATEGORIES), OTHER)


def _normalise_topic(given: object) -> str | None:
    """Return a topic with its case folded and its spaces collapsed; None if it is not usable."""
    text = read_usable_text(_INVISIBLE.sub("", given)) if isinstance(given, str) else None
    topic = " ".join(text.casefold().split()) if text else ""
    is_topic = bool(re.search(r"\w", topic)) and topic not in _NO_TOPIC and len(topic) <= _LONGEST_TOPIC
    return topic if is_topic and not list_key_kinds(topic) else None


def _convert_entry(members: dict[str, Any], kind: type[T]) -> T:
    """Convert an entry, accepting member synonyms and words in any case; raise ValidationError if invalid."""
    given = {}
    for field in msgspec.structs.fields(kind):
        names = (name for name in _NAMES.get(field.name, (field.name,)) if members.get(name) is not None)
        if (name := next(names, None)) is not None:
            value = members[name]
            is_word = get_origin(field.type) is Literal and isinstance(value, str)
            given[field.name] = _match_word(value, get_args(field.type)) if is_word else value
    return msgspec.convert(given, kind, strict=False)


def _match_word(text: str, words: tuple[str, ...]) -> str:
    """Return the word that a text matches, in any case or in the plural; otherwise the text unchanged."""
    word = text.strip().lower()
    return next((each for each in words if word in (each, f"{each}s")), text)


def read_usable_text(given: Any) -> str | None:  # noqa: ANN401 - a model's answer
    """Return `given` as an event's text; None if it is not text, too long, or a placeholder such as `…`."""
    if not isinstance(given, str) or len(given) > LONGEST or is_placeholder(given):
        return None
    # JSON may escape a lone surrogate.
    is_unicode = given.encode(errors="ignore").decode() == given
    return given.strip() if is_unicode else None

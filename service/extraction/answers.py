"""Reads the answer of a language model, whatever it contains."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Generic, TypeVar, get_args

import msgspec

from memlog.eventlog.event_fields import MemoryKind, Unit

T = TypeVar("T")

LONGEST = 2000
"""Characters of a memory or a summary: one or two sentences, with a wide margin."""

_STARTS = 20
"""Places at which an answer is tried to begin."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "memories": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "enum": [*get_args(MemoryKind)]},
                    "content": {"type": "string"},
                    "importance": {"type": "number"},
                },
                "required": ["type", "content", "importance"],
                "additionalProperties": False,
            },
        },
        "summary": {"type": "string"},
    },
    "required": ["memories", "summary"],
    "additionalProperties": False,
}


class Distilled(msgspec.Struct, frozen=True):
    """An entry of an answer."""

    kind: MemoryKind
    content: str
    importance: float


class _Entry(msgspec.Struct):
    type: MemoryKind
    content: str
    importance: Unit


class ModelAnswer(msgspec.Struct):
    """What is usable of an answer. refused: entries that are none, by their form."""

    memories: list[Distilled]
    summary: str = ""
    refused: int = 0


def read_answer(text: str) -> ModelAnswer | None:
    """What is usable of an answer; None where it has no such JSON.

    The object may stand in prose, behind a draft, or between fences, or be the list of memories alone: of
    several, that with the most memories is meant.
    """
    found = [answer for value in _values(text) if (answer := _read(value)) is not None]
    return max(found, key=lambda answer: (len(answer.memories), answer.summary != ""), default=None)


def _read(value: Any) -> ModelAnswer | None:  # noqa: ANN401 - what a model said
    if isinstance(value, list):
        return _answer(value, None) if value and all(isinstance(each, dict) for each in value) else None
    memories = value.get("memories")
    return _answer(memories, value.get("summary")) if isinstance(memories, list) else None


def _values(text: str) -> Iterator[Any]:
    """The JSON objects and lists in a text, each tried from where one may begin."""
    decoder = json.JSONDecoder()
    at = 0
    for _ in range(_STARTS):
        starts = [place for sign in "{[" if (place := text.find(sign, at)) >= 0]
        if not starts:
            return
        at = min(starts)
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        yield value


def _answer(entries: list[Any], summary: object) -> ModelAnswer:
    read = [_entry(each) for each in entries]
    memories = [each for each in read if each is not None]
    shortened = summary[:LONGEST] if isinstance(summary, str) else ""
    text = usable_text(shortened)
    refused = len(read) - len(memories) + (text is None and bool(shortened.strip()))
    return ModelAnswer(memories, text or "", refused)


def _entry(given: Any) -> Distilled | None:  # noqa: ANN401 - what a model said
    try:
        entry = msgspec.convert(given, _Entry)
    except msgspec.ValidationError:
        return None
    content = usable_text(entry.content)
    return None if content is None else Distilled(entry.type, content, entry.importance)


def usable_text(given: Any) -> str | None:  # noqa: ANN401 - what a model said
    """A text that an event can hold; None for anything else."""
    if not isinstance(given, str) or len(given) > LONGEST:
        return None
    # JSON may escape half of a pair of surrogates, which is no character.
    is_unicode = given.encode(errors="ignore").decode() == given
    return given.strip() or None if is_unicode else None


class Listed(msgspec.Struct, Generic[T]):
    """What is usable of a list. refused: entries that are none, by their form."""

    entries: list[T]
    refused: int


def listed(text: str, *, member: str, kind: type[T]) -> Listed[T] | None:
    """The list that is a member of an answer, or the answer itself; None where it has no such JSON."""
    for value in _values(text):
        given = value.get(member) if isinstance(value, dict) else value
        if not isinstance(given, list):
            continue
        entries: list[T] = []
        for each in given:
            with suppress(msgspec.ValidationError):
                entries.append(msgspec.convert(each, kind))
        return Listed(entries, len(given) - len(entries))
    return None


def read_summary(text: str) -> str | None:
    """The summary of an answer; None where it has none."""
    texts = (usable_text(value.get("summary")) for value in _values(text) if isinstance(value, dict))
    return next((found for found in texts if found is not None), None)
